"""`--help`: placeholders and choices of values, lists of names, and suggestions for misspelt ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

import headscope
from headscope.core.suggest import did_you_mean

# The choices of options that have the same meaning in every command.
CHOICES: Mapping[str, str] = {
    "dtype": "float32|float16|bfloat16",
    "embedding": "metric|nonmetric|classical",
    "engine": "local|processes|ray",
    "kind": "encoder|decoder|cross",
    "level": "token|word",
    "linkage": "average|complete|single",
    "map": "weights|norm|value-zeroing",
    "on_error": "raise|skip",
    "order": "layer|tree",
    "overlong": "drop|truncate|window|error",
    "preset": "recommended|paper|reference",
    "segment_ids": "pair|zeros",
    "specials": "show|hide|renormalise",
    "table_format": "csv|tsv|json|markdown|latex|parquet|arrow",
    "unit": "sentence|paragraph|document|pair|segment",
    "weights": "trained|random",
    "word_rows": "mean|first|max",
}
# Placeholders for options whose names do not say what to write.
_MEANT: Mapping[str, str] = {
    "address": "HOST:PORT",
    "by": "NAME",
    "corpus": "FILE",
    "dev": "FILE",
    "chosen_on": "FILE",
    "look": "FILE",
    "measures": "NAME,NAME",
    "other": "MODEL",
    "option": "MEASURE.OPTION=VALUE",
    "highlight": "LINK",
    "keep": "SHARE",
    "run": "FOLDER",
    "sort": "COLUMN",
    "structural": "FOLDER",
    "where": "COLUMN=VALUE",
}
_KINDS: Mapping[type, str] = {int: "N", float: "X"}


class Command(TyperCommand):
    """A command that suggests an option for a misspelt one, and whose help ends with `lists` of names."""

    lists: ClassVar[Mapping[str, Callable[[], Mapping[str, str]]]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
                known = [name for param in self.get_params(ctx) if not getattr(param, "hidden", False) for name in param.opts]
                error.message = f"No such option {option}. {did_you_mean(option, [name for name in known if name.startswith('-')])}".strip()  # type: ignore[attr-defined]
                error.possibilities = None
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options. The types of arguments are omitted: their names say what they are."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                name, line = record
                argument = param.param_type_name == "argument"
                sections["Arguments" if argument else "Options"].append((name.partition(" <")[0] if argument else name, line))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the lists."""
        for title, lines in self.lists.items():
            with formatter.section(title):
                formatter.write_dl([*lines().items()], col_max=24)
        super().format_epilog(ctx, formatter)


class CommandGroup(TyperGroup):
    """A group of commands that suggests a command for a misspelt one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"suggest_commands": False})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of that name, and the arguments that follow it."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if hasattr(error, "message") and args and args[0] not in self.commands:
                error.message = f"{error.message.rstrip('.')}. {did_you_mean(args[0], self.commands)}".strip()
            raise


def with_metavars(function: Callable[..., None]) -> Callable[..., None]:
    """The same function, with a placeholder for the value of each parameter in its declaration."""
    function.__annotations__ = get_type_hints(function, include_extras=True)  # evaluated once, not at each call
    for name, hint in function.__annotations__.items():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, (ArgumentInfo, OptionInfo)) and info.metavar is None:
                info.metavar = _metavar(name.rstrip("_"), get_args(hint)[0], info)
    return function


def _metavar(name: str, annotation: Any, info: ArgumentInfo | OptionInfo) -> str | None:
    """The placeholder that help shows for a value; None for a switch."""
    kind = _kind(annotation)
    if kind is bool:
        return None
    if kind in _KINDS:
        return _KINDS[kind]
    if kind is str and name == "format":
        name = "table_format" if (info.help or "").startswith("csv") else name
    if kind is str and name in CHOICES:
        return CHOICES[name]
    if isinstance(info, OptionInfo) and kind is Path and name not in _MEANT:
        return "FOLDER" if (info.help or "").startswith("folder") else "FILE"
    return (_MEANT.get(name, name.rpartition("_")[2]) if isinstance(info, OptionInfo) else name).upper()


def _kind(annotation: Any) -> Any:
    """The type of one value of an option that may be missing or be repeated."""
    if get_origin(annotation) in (Union, UnionType):
        return next(_kind(part) for part in get_args(annotation) if part is not type(None))
    return _kind(get_args(annotation)[0]) if get_origin(annotation) is list else annotation


def measure_summaries() -> dict[str, str]:
    """The summary of each measure, read from the files of measures: importing them would take seconds."""
    summaries = {}
    for path in sorted((Path(headscope.__file__).parent / "measures").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                constants = dict(_constants(node))
                if {"name", "summary"} <= constants.keys():
                    summaries[constants["name"]] = constants["summary"]
    return summaries


def _constants(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(line.value, ast.Constant):
            yield line.target.id, str(line.value.value)
