"""What `--help` lists, and the suggestions for misspelt names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.help import CHOICES, measure_summaries
from headscope.cli.main import app
from headscope.engine.spec import RunSpec
from headscope.figures import known_figures
from headscope.measures import REGISTRY as MEASURES
from headscope.results.formats import FORMATS
from headscope.studies.registry import REGISTRY as STUDIES

Headscope = Callable[..., tuple[int, str, str]]


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    for name in inner:
        yield from verbs(inner[name], (*path, name))
    if not inner:
        yield path


VERBS = [*verbs(get_command(app))]


def help_of(*verb: str) -> str:
    result = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    return result.output


def section(text: str, title: str) -> dict[str, str]:
    """The entries of one list in a help text, by name."""
    lines = text.partition(f"\n{title}:\n")[2].splitlines()
    entries: dict[str, str] = {}
    for line in lines:
        if match := re.match(r"  (\S+)\s\s+(\S.*)", line):
            entries[match[1]] = match[2]
        elif line.startswith("   ") and entries:
            entries[[*entries][-1]] += f" {line.strip()}"
    return entries


def test_measure_summaries_equal_those_of_the_registry() -> None:
    assert measure_summaries() == {name: cls.summary for name, cls in sorted(MEASURES.items())}


def test_help_lists_every_measure_and_every_figure() -> None:
    assert section(help_of("run"), "Measures") == {name: cls.summary for name, cls in MEASURES.items()}
    assert section(help_of("plot"), "Figures") == known_figures()


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_no_bare_types_as_values(verb: tuple[str, ...]) -> None:
    text = help_of(*verb)
    assert not re.search(r"<(str|int|float|path|list)\b", text)
    assert not re.search(r"^  (-\w, )?--\S+ (TEXT|INTEGER|FLOAT|PATH|STR|INT)\b", text, re.MULTILINE)


def literals(annotation: Any) -> tuple[Any, ...]:
    parts = get_args(annotation)
    return parts if parts and all(isinstance(part, str) for part in parts) else next(filter(None, map(literals, parts)), ())


def test_choices_of_run_options_are_those_of_the_specification() -> None:
    text = " ".join(help_of("run").split())
    fields = {name: literals(field.annotation) for name, field in RunSpec.model_fields.items()}
    chosen = {name: values for name, values in fields.items() if values}
    assert len(chosen) == 9
    for name, values in chosen.items():
        assert CHOICES[name] == "|".join(values)
        assert f"--{name.replace('_', '-')} {'|'.join(values)} " in text
    assert CHOICES["table_format"] == "|".join(FORMATS)
    assert f"--format {'|'.join(FORMATS)}" in help_of("show")


def test_choices_of_study_options_are_those_of_the_specifications() -> None:
    for study in STUDIES.values():
        text = " ".join(help_of(*study.verb.split()).split())
        for name, field in study.spec.model_fields.items():
            values = literals(field.annotation)
            if field.description and values and "tuple" not in str(field.annotation):
                assert f"--{name.replace('_', '-')} {'|'.join(values)} " in text, (study.name, name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("help") / "run"
    hs.run("mini", "sampler", ["relations", "tokens"], limit=3, replicates=0, gallery=0, out=out)
    return out


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("runn", "run"),
        ("corpus stat", "stats"),
        ("probe edgy", "edge"),
        ("run --mesures entropy", "--measures"),
        ("flow --prest reference", "--preset"),
        ("run --measures entrpy", "entropy"),
        ("run --preset recomended", "recommended"),
        ("run -O entropy.levl=word", "level"),
        ("flow --norm frobenus", "frobenius"),
        ("show RUN tokns", "tokens"),
        ("show RUN tokens --quantity sep", "to_sep"),
        ("show RUN tokens --head 99-1", "9-1"),
        ("show RUN tokens --head 8.4", "8-4"),
        ("show RUN tokens --sort valeu", "value"),
        ("show RUN tokens --format tvs", "tsv"),
        ("show RUN relations --where label=al", "all"),
        ("plot RUN clark22", "clark2"),
        ("plot RUN heatmap --quantity to_spe", "to_sep"),
        ("heads RUN --only inducton", "induction"),
        ("replicate clark2018", "clark2019"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(headscope: Headscope, folder: Path, command: str, meant: str) -> None:
    code, _, error = headscope(*(str(folder) if word == "RUN" else word for word in command.split()))
    assert code == 2
    assert f"Did you mean {meant}?" in error


def test_a_name_unlike_all_others_gets_no_suggestion(headscope: Headscope, folder: Path) -> None:
    _, _, error = headscope("show", folder, "tokens", "--quantity", "moon")
    assert error.startswith("headscope: tokens has no quantity 'moon'. It has to_cls, to_sep, ")
