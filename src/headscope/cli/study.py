"""The command of a study, derived from its declaration: an option for each setting that has a description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import typer

from headscope.cli.help import Command, CommandGroup, with_metavars
from headscope.cli.options import examples, names, numbers
from headscope.errors import RunError
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from headscope.results.results import Results
    from headscope.studies.base import Study
    from headscope.studies.spec import StudySpec

Option = typer.Option
_FIRST, _LAST = (
    ("model", "corpus", "dev", "look", "chosen_on"),
    ("cache", "cache_limit", "max_length", "limit", "limit_dev", "format", "on_error", "replicates", "seed", "dtype"),
)
_NONE = "none"  # an empty list
PLAN = "print what the study would do and how long it would take, from a trial of some seconds, without running all of it"


class StudyCommand(Command):
    """A study as a command. Its options are determined when the command is called or prints its help.

    A command that takes more than the settings of its study derives from this one, and is put into
    `StudyGroup.special`.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        super().__init__(study.verb.rpartition(" ")[2], help=examples(study.help), rich_markup_mode=None)

    def options(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The parameters of the command by name, each with its annotation and its default."""
        return _options(self._study, self._study.spec)

    def call(self, **given: Any) -> Results | None:
        """The results of the study with these options; None if it was only planned."""
        return _call(self._study, **given)

    @cached_property
    def _command(self) -> Any:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(help=self.help)(with_metavars(self._function()))
        return typer.main.get_command(app)

    def _function(self) -> Callable[..., None]:
        """The function behind the command, with a parameter for each option."""

        def call(**given: Any) -> None:
            self.call(**given)

        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **made) for name, made in self.options()]
        call.__name__ = self._study.function
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    @property
    def params(self) -> Any:
        """The options."""
        return self._command.params

    @params.setter
    def params(self, value: Any) -> None:
        """Ignored: the options follow from the study."""

    @property
    def callback(self) -> Any:
        """What the command does."""
        return self._command.callback

    @callback.setter
    def callback(self, value: Any) -> None:
        """Ignored: what the command does follows from the study."""


class StudyGroup(CommandGroup):
    """A group of commands, and after them its studies: in the group `probe` those whose verbs begin with `probe`, in
    any other group those with verbs of one word.

    `special` has, by the name of the study, the commands that take more than the settings of the study.
    """

    special: ClassVar[dict[str, type[StudyCommand]]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for study in REGISTRY.values():
            group, _, verb = study.verb.rpartition(" ")
            if group == (self.name if self.name == "probe" else ""):
                self.commands[verb] = self.special.get(study.name, StudyCommand)(study)


def run_study(
    study: Study,
    settings: Mapping[str, Any],
    out: Path | None,
    device: str | None,
    resume: bool,
    overwrite: bool,
    quiet: bool,
    where: str = "the options",
    plan: bool = False,
) -> Results | None:
    """The results of a study, computed with a progress bar and printed as a summary. With `plan`, print what the study
    would cost and return None. `where` names the source of the settings in errors.
    """
    from headscope.cli.printing.progress import bar, interrupted, print_line
    from headscope.cli.printing.summary import summarise
    from headscope.studies.execute import execute

    spec = study.make(settings, where)
    if plan:
        from headscope.studies.plan import plan_study

        for line in plan_study(study, spec, device=device).lines():
            typer.echo(line)
        return None
    folder = out or study.usual_folder(spec)
    notify = None if quiet else print_line
    with interrupted(folder), bar(study.doing, hidden=quiet) as progress:
        results = execute(study, spec, folder, device=device, resume=resume, overwrite=overwrite, progress=progress, notify=notify)
    summarise(results, quiet)
    return results


def _call(study: Study, **given: Any) -> Results | None:
    """Run a study with the settings of a file, overridden by the given ones."""
    spec = study.spec
    kept: Path | None = given.pop("settings")
    out, device, resume, overwrite, quiet, plan = (given.pop(name) for name in ("out", "device", "resume", "overwrite", "quiet", "plan"))
    old_format = given.pop("old_format")
    given["format"] = given["format"] or old_format
    settings: dict[str, Any] = {}
    if kept is not None:
        from headscope.engine.spec import read_spec

        settings = read_spec(kept)
        named = settings.pop("out", None)
        out = out or (Path(named) if named is not None else None)
    settings |= {name: _value(spec.model_fields[name], value) for name, value in given.items() if value is not None}
    _require(study, settings)
    where = str(kept) if kept is not None else "the options"
    return run_study(study, settings, out, device, resume, overwrite, quiet, where, plan)


def _require(study: Study, settings: Mapping[str, Any]) -> None:
    """Raise an error that names the first argument that is not given and has no default."""
    for name in study.arguments:
        field = study.spec.model_fields[name]
        if field.is_required() and name not in settings:
            usage = f"headscope {study.verb} {' '.join(_argument(study, argument) for argument in study.arguments)}"
            raise RunError(f"{_argument(study, name)} is missing: {field.description}", f"Use {usage}")


def _argument(study: Study, name: str) -> str:
    """The name of an argument in help."""
    return (study.spec.model_fields[name].title or name).upper()


def _options(study: Study, spec: type[StudySpec]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parameters of a command: the settings first, then how the work is done."""
    fields = {name: field for name, field in spec.model_fields.items() if field.description}
    between = [name for name in fields if name not in (*_FIRST, *_LAST)]
    line = "TOML file with settings; options override it"
    for name in study.arguments:
        argument = typer.Argument(metavar=_argument(study, name), help=fields[name].description, show_default=False)
        yield name, {"annotation": Annotated[str | None, argument], "default": None}
    toml = Option("--settings", help=line) if study.arguments else typer.Argument(help=line, show_default=False)
    yield "settings", {"annotation": Annotated[Path | None, toml], "default": None}
    for name in (*(name for name in _FIRST if name in fields), *between, *(name for name in _LAST if name in fields)):
        if name not in study.arguments:
            yield name, {"annotation": _annotation(name, fields[name]), "default": None}
    hidden = Option("--format", hidden=True)
    yield "old_format", {"annotation": Annotated[str | None, hidden], "default": None}
    models = "-".join(_argument(study, name) for name in study.arguments or ("model",))
    usual = f"folder for the results [default: runs/{study.folder}-{models}-CORPUS]"
    yield "out", {"annotation": Annotated[Path | None, Option("--out", "-o", help=usual)], "default": None}
    yield (
        "device",
        {
            "annotation": Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")],
            "default": None,
        },
    )
    switches = {
        "resume": "continue the study in the folder",
        "overwrite": "replace the study in the folder",
        "plan": PLAN,
    }
    for name, line in switches.items():
        yield name, {"annotation": Annotated[bool, Option(f"--{name}", help=line)], "default": False}
    yield (
        "quiet",
        {"annotation": Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")], "default": False},
    )


def _annotation(name: str, field: FieldInfo) -> Any:
    """The type and the option with which the command line reads a setting. None stands for a setting that is not given,
    so that a file may give it.
    """
    line = f"{field.description}{_default(field)}"
    flag = "--corpus-format" if name == "format" else f"--{name.replace('_', '-')}"
    if name in _FIRST[1:]:
        return Annotated[list[str] | None, Option(flag, help=line)]
    plain = next((kind for kind in (bool, int, float) if kind in _kinds(field.annotation)), str)
    if plain is bool:
        off = "" if field.default is False else f"/--no-{name.replace('_', '-')}"
        return Annotated[bool | None, Option(flag + off, help=line)]
    least = next((limit.ge for limit in field.metadata if hasattr(limit, "ge")), None)
    if plain in (int, float):
        return Annotated[plain | None, Option(flag, help=line, min=0 if name.startswith("limit") else least)]
    return Annotated[str | None, Option(flag, help=line, metavar=_values(field.annotation))]


def _values(annotation: Any) -> str | None:
    """The values that a setting can have, as help writes them; None if they cannot be listed."""
    if get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_values, get_args(annotation))), None)
    if get_origin(annotation) is tuple:
        return "NAME,NAME" if _values(get_args(annotation)[0]) else None
    return "|".join(map(str, get_args(annotation))) if get_origin(annotation) is Literal else None


def _default(field: FieldInfo) -> str:
    """The note on the default in help; empty if there is none, or if the description has it."""
    value = field.default
    if "[default:" in (field.description or "") or value is None or isinstance(value, bool) or field.default_factory is not None:
        return ""
    if isinstance(value, tuple):
        return f" [default: {','.join(map(str, value)) or _NONE}]"
    return f" [default: {value}]"


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The kinds of values of a setting that are not lists."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(kind for part in get_args(annotation) for kind in _kinds(part))
    return (
        () if get_origin(annotation) is tuple else (type(get_args(annotation)[0]),) if get_origin(annotation) is Literal else (annotation,)
    )


def _value(field: FieldInfo, value: Any) -> Any:
    """A value of the command line as the specification takes it: lists split at commas, ranges of integers."""
    from headscope.studies.spec import holds_several

    if not isinstance(value, str) or not holds_several(field.annotation):
        return value
    if value == _NONE:
        return ()
    return numbers(value) if "int" in str(field.annotation) else names(value)
