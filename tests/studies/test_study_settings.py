"""Settings of every study on the command line, in a file and in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec
from helpers.changed_settings import changed, current, usual
from helpers.small import SmallStudies
from helpers.study_laws import Caught, Headscope, complete, parameters, written


def toml(settings: Mapping[str, Any]) -> str:
    """Settings as the text of a TOML file, in which strings, numbers and lists are written as in JSON."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def outcome(study: Study, settings: Mapping[str, Any]) -> StudySpec | str:
    """The specification of the settings, or the error message of the command line."""
    try:
        made: StudySpec = study.make(settings, "the options")
        return made
    except RunError as error:
        return f"headscope: {error}\n"


def test_a_file_and_flags_give_the_same_settings(
    study: Study, small: SmallStudies, specified: Callable[..., Caught | str], tmp_path: Path
) -> None:
    settings = {name: value for name, value in small.settings(study.name).items() if name in parameters(study)}
    file = tmp_path / "settings.toml"
    file.write_text(toml({**settings, "out": "THERE"}))
    taken = {name: value for name, value in settings.items() if name in complete(study, {})}
    by_file, by_flags = specified(*written(study, taken, file)), specified(*written(study, settings), "--out", "THERE")
    assert isinstance(by_file, Caught), by_file
    assert isinstance(by_flags, Caught), by_flags
    assert by_file.spec == by_flags.spec == study.make(settings)
    assert by_file.out == by_flags.out == Path("THERE")
    both = specified(*written(study, taken, file), "--seed", "5", "--out", "HERE")
    assert isinstance(both, Caught), both
    assert (both.spec, both.out) == (study.make({**settings, "seed": 5}), Path("HERE"))


def test_without_options_every_setting_has_its_default(study: Study, specified: Callable[..., Caught | str]) -> None:
    caught = specified(*written(study, {}))
    assert isinstance(caught, Caught), caught
    assert caught.spec == usual(study.spec)
    assert str(caught.out).startswith(f"runs/{study.folder}-")


def test_every_option_changes_its_setting(study: Study, specified: Callable[..., Caught | str]) -> None:
    """A changed value has the same effect by its flag and by its name, or is refused with the same message."""
    spec = usual(study.spec)
    for name, parameter in parameters(study).items():
        value = changed(study.spec.model_fields[name].annotation, current(spec, name))
        if value is False and not parameter.secondary_opts:
            continue
        caught = specified(*written(study, {name: value}))
        expected = outcome(study, complete(study, {name: value}))
        assert (caught.spec if isinstance(caught, Caught) else caught) == expected, name


def test_help_names_every_option(study: Study, headscope: Headscope) -> None:
    code, out, _ = headscope(*study.verb.split(), "--help")
    assert code == 0
    shown = " ".join(out.split())
    for text in (study.help, *(field.description for field in study.spec.model_fields.values() if field.description)):
        assert cleandoc(text).splitlines()[0] in shown, text
    assert all(parameter.opts[0] in out for parameter in parameters(study).values() if parameter.param_type_name == "option")
    *group, verb = study.verb.split()
    assert re.search(rf"^  {verb} ", headscope(*group, "--help")[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "old", "now"),
    [
        ("attention_probe", {"cache_bytes": 3 * 2**29}, {"cache_limit": 1.5}),
        ("edge_probe", {"dev_limit": 7}, {"limit_dev": 7}),
        ("edge_probe", {"dev_limit": None}, {"limit_dev": None}),
    ],
)
def test_old_names_of_settings_are_accepted_by_their_study(name: str, old: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Folders of older versions have them. An old name is refused together with the new one, and by other studies."""
    assert REGISTRY[name].make(old) == REGISTRY[name].make(now)
    for study, settings in ((name, {**old, **now}), ("flow", old)):
        with pytest.raises(RunError, match=f"there is no setting '{next(iter(old))}'"):
            REGISTRY[study].make(settings)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_study_is_a_documented_function(name: str) -> None:
    """The function is documented, and its parameters are the corpora, the folder and all settings."""
    function = getattr(hs, REGISTRY[name].function)
    assert function.__doc__
    taken = signature(function).parameters
    assert {*REGISTRY[name].corpora, "out"} <= taken.keys()
    assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())


def test_every_study_can_be_executed_by_its_name_in_python(study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hs.study` passes the settings on unchanged."""
    caught: list[Any] = []

    def catch(study: Study | str, settings: StudySpec, out: Path | None = None, **how: Any) -> Results:
        caught.append((settings, out))
        return Results({"study": "", "signature": "", "warnings": []}, {})

    monkeypatch.setattr("headscope.studies.execute.execute", catch)
    settings = small.settings(study.name)
    hs.study(study.name, settings.pop("model"), "OUT", **settings)
    assert caught == [(study.make(small.settings(study.name)), Path("OUT"))]
