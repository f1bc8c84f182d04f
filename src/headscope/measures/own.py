"""User-defined measures, from a class, or from a file or module that the user names. Nothing else is imported."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from headscope.core.paths import problem_of
from headscope.errors import MeasureError
from headscope.measures.base import Measure

Named = str | type[Measure] | Measure
OWN: dict[str, type[Measure]] = {}  # the measures of this process, by name
_FROM: dict[str, str] = {}  # where another process finds each of them, by name


def add(cls: type[Measure], where: str, taken: Mapping[str, type[Measure]]) -> str:
    """Register a class under its name and return the name. `where`, as FILE.py:CLASS or MODULE:CLASS, is where other
    processes find the class.
    """
    if not (isinstance(cls, type) and issubclass(cls, Measure)) or inspect.isabstract(cls):
        lacking = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        remedy = f"Implement {lacking}" if lacking else "Derive it from headscope.measures.HeadMeans"
        raise MeasureError(f"{getattr(cls, '__name__', cls)!r} is not a measure", remedy)
    name = getattr(cls, "name", None)
    if not is_dataclass(cls) or not cls.__dataclass_params__.frozen or "__dataclass_fields__" not in vars(cls):  # type: ignore[attr-defined]
        raise MeasureError(f"{cls.__name__} is not a frozen dataclass", "Write @dataclass(frozen=True, kw_only=True) above it")
    if not isinstance(name, str) or not name.isidentifier() or not isinstance(getattr(cls, "summary", None), str):
        raise MeasureError(f"{cls.__name__} has no name or no summary", "Give it name: ClassVar[str], one word, and summary: ClassVar[str]")
    if name in taken:
        raise MeasureError(f"there is already a measure {name!r}", "Give yours another name")
    OWN[name], _FROM[name] = cls, where
    return name


def find(where: str) -> type[Measure]:
    """The class named by FILE.py:CLASS or MODULE:CLASS. Its module is executed, as by an import."""
    source, _, name = where.rpartition(":")
    module = _file(Path(source)) if source.endswith(".py") else _module(source)
    found: type[Measure] | None = getattr(module, name, None)
    if found is None:
        raise MeasureError(f"{source} has no {name!r}", "Name a class that it defines, as in reach.py:Reach")
    return found


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        remedy = "Name a file, as in ./reach.py:Reach, or a module that Python finds, as in mypackage.reach:Reach"
        raise MeasureError(f"{name!r} cannot be imported ({error})", remedy) from None


def _file(path: Path) -> ModuleType:
    if found := problem_of(path):
        raise MeasureError(f"{path}: {found[0]}", f"{found[1]}; a measure is named as in ./reach.py:Reach")
    # The name has a hash of the content, so that a changed file is a new module.
    called = f"headscope_own_{path.stem}_{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    if called not in sys.modules:
        spec = spec_from_file_location(called, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[called] = module  # dataclasses look the module up here
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[called]
            raise MeasureError(f"{path} cannot be run ({type(error).__name__}: {error})", "Fix it, or name another file") from error
    return sys.modules[called]


def named(
    measures: str | type[Measure] | Measure | Sequence[Named] | Mapping[Any, Mapping[str, Any]], taken: Mapping[str, type[Measure]]
) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Measures as in a specification: options by name, and where user-defined measures are found."""
    if isinstance(measures, Mapping):
        asked: list[tuple[Any, dict[str, Any]]] = [(one, dict(options)) for one, options in measures.items()]
    else:
        several = [measures] if isinstance(measures, str | type | Measure) else measures
        asked = [(one, {}) for one in several]
    found: dict[str, dict[str, Any]] = {}
    for one, options in asked:
        if isinstance(one, str) and ":" in one:
            name = add(find(one), one, taken)
        elif isinstance(one, str):
            name = one
        else:
            cls = one if isinstance(one, type) else type(one)
            name = cls.name if taken.get(getattr(cls, "name", "")) is cls else add(cls, f"{cls.__module__}:{cls.__qualname__}", taken)
            if isinstance(one, Measure):
                options = {field.name: value for field in fields(one) if (value := getattr(one, field.name)) != field.default} | options
        found[name] = options
    return found, tuple(_FROM[name] for name in found if name in OWN)


def known(where: Sequence[str], taken: Mapping[str, type[Measure]]) -> None:
    """Register the measures that this process does not have yet, from the places in a worker's specification."""
    for one in where:
        if one not in _FROM.values():
            add(find(one), one, taken)


def sources(measures: Sequence[Measure]) -> dict[str, str]:
    """A hash of the source of each user-defined measure, since its numbers change when its code does."""
    found = {}
    for measure in measures:
        if type(measure) in OWN.values():
            try:
                text = inspect.getsource(inspect.getmodule(measure) or type(measure))
            except (OSError, TypeError):  # the class was typed in, and there is no file
                text = ""
            found[measure.name] = hashlib.sha256(text.encode()).hexdigest()[:16] if text else "unknown"
    return found
