"""The declarations of every study, and the input that every study refuses."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from headscope.cli.main import app
from headscope.errors import HeadscopeError
from headscope.figures import RUN_FIGURES
from headscope.results.results import Results
from headscope.results.specification import Role
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec
from helpers.small import BESIDE, CUT, NEEDY, PLAIN, TOY, SmallStudies
from helpers.study_laws import Caught, Headscope, refusal, written

# Declarations


def test_declared_names_are_settings_and_declared_texts_are_not_empty(study: Study) -> None:
    fields = study.spec.model_fields
    assert study.corpora[0] == "corpus"
    for name in (*study.corpora, *study.files):
        assert name in fields, f"{study.name} declares {name}, which is not a setting"
        assert Role.CONTENT in fields[name].metadata or Role.NEUTRAL in fields[name].metadata, f"{name} is neither content nor neutral"
    undeclared = [name for name, field in fields.items() if Role.CONTENT in field.metadata and name not in (*study.corpora, *study.files)]
    assert undeclared == ["model"], "a setting that is hashed by content must be declared as a corpus or a file"
    assert not {*study.takes} & {*fields}
    assert issubclass(study.spec, StudySpec)
    for text in (study.title, study.about, study.published, study.doing, study.folder):
        assert text.strip() == text != ""


def test_names_of_studies_and_figures_are_unique() -> None:
    studies = [*REGISTRY.values(), TOY]
    for what in ("name", "verb", "function", "folder"):
        assert max(Counter(getattr(study, what) for study in studies).values()) == 1, what
    figures = Counter(figure.name for study in studies for figure in study.figures)
    assert max(figures.values()) == 1
    assert not {*RUN_FIGURES} & {*figures}


def test_declared_tables_have_declared_columns(study: Study, small: SmallStudies) -> None:
    results = Results.open(small.folder(study.name))
    present = [compared for compared in study.compared if compared.table in results]
    assert present, "the small study has no table that is compared: change its entry in SMALL"
    for compared in present:
        bounds = [bound for own in compared.numbers.values() if own is not None for bound in own]
        assert {*compared.keys, *compared.numbers, *bounds} <= {*results[compared.table].columns}, compared.table
    assert any(figure.table in results for figure in study.figures) or not study.figures
    assert "summary" in results
    numbers = study.replicates(results)
    assert {*numbers} <= {compared.table for compared in study.compared}


def test_declared_figures_are_documented_functions(study: Study) -> None:
    """They are functions of the module `figures`, and their parameters include the declared choices."""
    for figure in study.figures:
        assert figure.line.strip() == figure.line != ""
        assert bool(figure.title) == bool(figure.about), figure.name
        if type(study).draw is Study.draw:
            module = __import__(f"{type(study).__module__}.figures", fromlist=[figure.draw])
            parameters = signature(getattr(module, figure.draw)).parameters
            assert {*figure.choices} <= {*parameters}, figure.name


def examples(study: Study) -> list[list[str]]:
    """The examples of the help text as lists of words, without the comments after #."""
    lines = [line.strip() for line in study.help.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("headscope ")]


def test_help_begins_with_a_sentence_and_has_examples_that_parse(study: Study, specified: Callable[..., Caught | str]) -> None:
    first, _, rest = cleandoc(study.help).partition("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]+\.", first), "the help of a command must begin with a sentence on a separate line"
    assert rest
    verb = study.verb.split()
    assert any(words[: len(verb)] == verb for words in examples(study)), "the help of a command must contain an example"
    whole: Any = get_command(app)
    for words in examples(study):
        command, context = whole, None
        while hasattr(command, "commands"):
            context = command.make_context(words[0], words, parent=context, resilient_parsing=False)
            name, command, words = command.resolve_command(context, words)
        values = command.make_context(name, words, parent=context).params
        if name == "plot":
            assert values["figure"] in [figure.name for figure in study.figures]
    for words in examples(study):
        if words[: len(verb)] == verb and not any(word.endswith(".toml") for word in words):
            assert isinstance(caught := specified(*words), Caught), caught


# Refused input


def wrong_settings(study: Study) -> dict[str, dict[str, Any]]:
    """Settings that must be refused, by the reason."""
    found: dict[str, dict[str, Any]] = {
        "an unknown setting": {"colour": 1},
        "a wrong number": {"max_length": 0},
        "a number that is none": {"seed": "many"},
        "a wrong word": {"dtype": "float5"},
        "a missing corpus": {"corpus": ["nowhere.conllu"]},
        "no corpus": {"corpus": list[str]()},
        "a corpus named twice": {"corpus": ["excerpt.conllu", "excerpt.conllu"]},
        "an unknown format": {"format": "paper"},
        **{f"a missing {name}": {name: ["nowhere.conllu"]} for name in study.corpora[1:]},
    }
    for name in study.files:
        if Role.CONTENT in study.spec.model_fields[name].metadata:
            found[f"a missing {name}"] = {name: "nowhere.txt", **BESIDE.get(name, {})}
    if study.name not in CUT:
        found["texts longer than the model reads"] = {"max_length": 100_000}
    if study.annotation is not None or study.name in NEEDY:
        found["a corpus without annotation"] = {"corpus": ["plain.txt"], **NEEDY.get(study.name, {})}
    return found


def test_wrong_settings_are_refused_and_nothing_is_written(study: Study, small: SmallStudies, tmp_path: Path) -> None:
    for what, changes in wrong_settings(study).items():
        with pytest.raises(HeadscopeError) as refused:
            small.execute(study.name, tmp_path / "out", changes)
        assert "\n" not in str(refused.value), what
        error = refused.value
        helps = error.remedy or re.search(r"should be|name at least one", error.problem)
        assert helps, f"{what}: {error} names no remedy"
        assert not (tmp_path / "out").exists(), what


def test_every_study_declares_its_annotation_or_is_in_needy_or_plain(study: Study) -> None:
    assert study.annotation is not None or study.name in {*NEEDY, *PLAIN}, (
        f"add {study.name} to NEEDY, with settings that need annotation, or to PLAIN, in tests/helpers/small.py"
    )


def test_the_command_line_refuses_invalid_input_in_one_line(
    study: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope
) -> None:
    out = tmp_path / "out"
    assert "nowhere.conllu" in refusal(headscope, *written(study, {"corpus": ["nowhere.conllu"]}), "--out", out)
    file = tmp_path / "settings.toml"
    file.write_text('colour = "red"\n')
    assert "there is no setting 'colour'" in refusal(headscope, *written(study, {}, file), "--out", out)
    assert not out.exists()
    out.write_text("a file")
    refusal(headscope, *written(study, {"corpus": [small.material / "excerpt.conllu"]}), "--out", out)
    assert out.read_text() == "a file"


def test_unknown_arguments_of_a_study_are_refused(study: Study, small: SmallStudies, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=rf"{study.function}\(\) takes no colour"):
        small.execute(study.name, tmp_path / "out", colour=len)
    assert not (tmp_path / "out").exists()
