"""The tour and the exercises: their commands exist, their Python runs, and their numbers match a run of the embedded
model on the embedded corpus.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import headscope as hs
from headscope.cli.main import app
from headscope.models.model import Model
from headscope.results.formats import display
from helpers.pages import README, ROOT, commands, python_of

PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


@cache
def program() -> Any:
    return typer.main.get_command(app)


def parse(command: str) -> None:
    """Parse a command line as the program does, without running the command."""
    args, group, context = shlex.split(command)[1:], program(), None
    name: str | None = "headscope"
    while True:
        context = group.make_context(name, list(args), parent=context)
        if not hasattr(group, "resolve_command"):
            return
        name, group, args = group.resolve_command(context, args)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_of_the_documentation_exist(page: Path) -> None:
    for command in commands(page):
        try:
            parse(command)
        except Exception as error:  # a page may name a command without its required arguments
            if type(error).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):
                raise AssertionError(f"{command}: {error}") from error


def test_invalid_command_lines_are_detected() -> None:
    parse("headscope probe edge --tasks pos --out EDGE")
    for wrong in ("runn --out RUN", "run --outt RUN", "probe edgy --out P", "show RUN x --limit many"):
        with pytest.raises(Exception, match=r"[Nn]o such|[Ii]nvalid|integer"):
            parse(f"headscope {wrong}")


def test_a_command_that_continues_on_the_next_line_is_read_as_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    headscope run --limit 2 \\\n        --out RUN    # a run\n    headscope show RUN\n", encoding="utf-8")
    assert commands(page) == ["headscope run --limit 2 --out RUN", "headscope show RUN"]


@pytest.fixture(scope="module")
def syntax() -> hs.Run:
    return hs.run("mini", "sampler", ["relations", "tokens", "positions"], replicates=0, gallery=0)


@pytest.fixture(scope="module")
def best(syntax: hs.Run) -> dict[str, dict[str, Any]]:
    return {row["label"]: row for row in syntax.results["relations_best"]}


def test_the_best_heads_of_the_tour_match_the_run(best: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    number, one_or_two_heads = r"(-?0\.\d+)", r"(\S+(?: \| \S+)?)"
    shares = rf"{number} \[.*?\] +{one_or_two_heads} +{number} \[.*?\] +{number} \[.*?\] +{number} +{number} ± {number}$"
    pattern = rf"^ ([a-z]+) +(\d+) \((\d+)\*\) +{one_or_two_heads} +{shares}"
    rows = re.findall(pattern, text, re.MULTILINE)
    assert len(rows) == 6
    for label, n, documents, heads, *numbers in rows:
        row = best[label]
        assert str(row["documents"]) == documents
        expected = [f"{row[name]:.2f}" for name in ("value", "baseline", "lift", "in_sample", "chance")] + [f"{row['chance_error']:.3f}"]
        assert [str(row["n"]), row["heads"], row["rule"]] == [n, heads, numbers[1]], label
        assert [numbers[0], *numbers[2:]] == expected, label


def test_the_numbers_on_the_language_model_of_the_tour_match_a_run(mini_decoder: Model) -> None:
    run = hs.run(mini_decoder, "sampler", ["relations", "tokens", "positions"], replicates=0, gallery=0)
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8").partition("## A language model")[2]

    def top(measure: str, quantity: str) -> tuple[str, str]:
        row = next(iter(run[measure].table.where(quantity=quantity).sort("value", descending=True)))
        return f"{row['layer']}-{row['head']}", f"{row['value']:.2f}".removeprefix("0")

    (previous_head, previous), (first_token_head, first) = top("positions", "previous"), top("tokens", "to_cls")
    assert (
        f"Head {previous_head} gives {previous} of its attention to the previous token, head {first_token_head} {first} to the first token"
        in text
    )
    (row,) = run.results["relations_best"].where(label="obj")
    assert f"{row['heads']} picks the verb of {100 * row['value']:.0f} %" in text
    assert f"right for {100 * row['baseline']:.0f} %" in text


def test_the_best_heads_of_the_exercises_match_the_run(best: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "docs" / "teachers.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([\w:]+)` \| (\d+) \| ([\d, -]+) \| ([\d.]+)(?: \[.*?\])? \| (?:\S+ )?([\d.]*) ?\| ([\d.]*) ?\| ([\d.]+) \|",
        text,
        re.MULTILINE,
    )
    assert len(rows) == 9
    for label, n, heads, *numbers in rows:
        row = best[label]
        assert (str(row["n"]), row["heads"].replace(" | ", ", ")) == (n, heads)
        for number, name in zip(numbers, ("value", "baseline", "lift", "in_sample"), strict=True):
            assert number in ("", f"{row[name]:.2f}".removeprefix("0")), (label, name)
    for few, stated in ((False, 0.01), (True, 0.05)):
        bias = [row["in_sample"] - row["value"] for row in best.values() if (row["n"] < 100) == few]
        assert round(sum(bias) / len(bias), 2) == stated


def test_the_surface_patterns_of_the_exercises_match_the_run(syntax: hs.Run) -> None:
    def above_half(measure: str, quantity: str) -> list[str]:
        rows = syntax[measure].table.where(quantity=quantity).sort("value", descending=True)
        return [f"{row['layer']}-{row['head']}" for row in rows if row["value"] > 0.5]

    assert sorted(above_half("positions", "previous")) == ["2-1", "2-12", "2-2", "2-9"]
    assert above_half("positions", "next") == ["1-5", "2-3", "7-12"]
    assert above_half("positions", "self") == ["3-1"]
    assert len(above_half("tokens", "to_sep")) == 23
    layers = syntax["tokens"].layers.where(quantity="to_sep")["value"]
    text = (ROOT / "docs" / "teachers.md").read_text(encoding="utf-8")
    assert " ".join(f"{value:.2f}".removeprefix("0") for value in layers) in text


def test_the_latex_of_the_page_on_runs_matches_the_run(syntax: hs.Run) -> None:
    text = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^encoder & (\d+) & (\d+) & to\\_sep & ([\d.]+) .* & (\d+) & (\d+) & ([\d.]+) \\\\$", text, re.MULTILINE)
    highest = syntax["tokens"].table.where(quantity="to_sep").sort("value", descending=True).head(3)
    columns = ("layer", "head", "value", "n", "documents", "baseline")
    assert rows == [tuple(display(row[name]) for name in columns) for row in highest]
    means = syntax["tokens"].layers.where(quantity="to_sep")["value"]
    assert f"layer {means.index(max(means)) + 1} has the highest mean, {max(means):.2f}" in text


def test_the_python_of_the_tour_runs_and_returns_the_stated_heads(syntax: hs.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = python_of(ROOT / "docs" / "tour.md")[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hs, "run", lambda *given: syntax, raising=False)  # run once for all tests of this file
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["best"]["heads"] == ["8-4"]
    assert Path("obj.svg").stat().st_size > 10_000
    assert Path("keys.html").stat().st_size > 10_000
    found = names["view"].grid("8-4")
    strongest = {word: found.columns[int(found.weights[number].argmax())] for number, word in enumerate(found.rows)}
    assert strongest["keys"] == "lost"
    assert strongest["door"] == "opened"
