"""The studies that the laws of studies are tested on, and their commands: parameters, written settings, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

from headscope.cli.main import app
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec
from helpers.changed_settings import usual
from helpers.small import TOY

Headscope = Callable[..., tuple[int, str, str]]
STUDIES = [*REGISTRY, TOY.name]
# Results that read like those of a study, but are not made by one.
OTHERS = ["replication", *(["joined"] if "edge_probe" in REGISTRY else [])]


def refusal(headscope: Headscope, *arguments: str | Path) -> str:
    """Run a command that must be refused, and return its message: one line without a traceback."""
    code, out, error = headscope(*arguments)
    assert (code, out) == (2, ""), (arguments, out, error)
    assert re.fullmatch(r"headscope: [^\n]+\n", error), error
    return error


class Caught(Exception):
    """Raised instead of executing a command: it has the specification and the folder of the command."""

    def __init__(self, spec: StudySpec, out: Path | None) -> None:
        self.spec, self.out = spec, out


@cache
def command_of(study: Study) -> Any:
    """The command of a study."""
    command: Any = get_command(app)
    for word in study.verb.split():
        command = command.commands[word]
    return command


def parameters(study: Study) -> dict[str, Any]:
    """The parameters of the command that are settings, by name."""
    fields = [name for name, field in study.spec.model_fields.items() if field.description]
    found = {parameter.name: parameter for parameter in command_of(study).params}
    return {name: found[name] for name in fields}


def complete(study: Study, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and defaults for the settings that are positional arguments of the command."""
    spec, found = usual(study.spec), parameters(study)
    return {**{name: getattr(spec, name) for name in found if found[name].param_type_name == "argument"}, **settings}


def written(study: Study, settings: Mapping[str, Any], file: Path | None = None) -> list[str]:
    """The arguments of a command with these settings, and with a file of settings. A list is joined by commas, or its
    flag is repeated.
    """
    arguments, flags, values = [], list[str](), complete(study, settings)
    for name, parameter in parameters(study).items():
        value = values.get(name)
        if value is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(value)
        elif isinstance(value, bool):
            flags += (parameter.opts if value else parameter.secondary_opts)[:1]
        elif parameter.multiple:
            flags += [part for text in value for part in (parameter.opts[0], str(text))]
        elif isinstance(value, list | tuple):
            flags += [parameter.opts[0], ",".join(map(str, value)) or "none"]
        else:
            flags += [parameter.opts[0], str(value)]
    named = [] if file is None else [str(file)] if not arguments else ["--settings", str(file)]
    return [*study.verb.split(), *arguments, *named, *flags]
