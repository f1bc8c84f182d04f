"""Figures, report and command of a flow study."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.drawing.theme import render
from headscope.errors import RunError
from headscope.figures import draw
from headscope.report import page
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.flow.findings import sentences


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hs.StudyResult:
    out = tmp_path_factory.mktemp("figures") / "flow"
    return hs.flow("mini", "sampler", out, measures=["A", "G"], norm="sum", limit=10, items=12, replicates=50)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("westera1", ["same entity", "another entity", "6 pairs of one entity and 6 of two"]),
        ("westera2", ["open classes", "closed classes", "10 sentences"]),
        ("trees", ["distance in the sentence", "head is the next word", "Share of arcs"]),
        ("agreement", ["A and G", "10 sentences"]),
    ],
)
def test_figures_contain_their_labels(study: hs.StudyResult, name: str, words: list[str]) -> None:
    drawn = render(study.plot(name), "svg").decode()
    for word in words:
        assert word in drawn
    assert len(re.findall("A: attention", drawn)) == {"westera1": 1, "westera2": 1, "trees": 2, "agreement": 0}[name]


def test_legends_of_the_tree_figure_are_beside_the_curves(study: hs.StudyResult) -> None:
    figure = draw("trees", study.results)
    figure.draw_without_rendering()
    for axes in figure.axes:
        box = axes.get_legend()
        assert box is not None
        assert box.get_window_extent().x0 >= axes.get_window_extent().x1


def test_an_interval_that_does_not_contain_its_value_is_drawn(study: hs.StudyResult) -> None:
    """With few replicates, all of them may lie above the difference, or the interval may be missing."""
    table = study["flow_coreference"]
    columns = {name: list(table[name]) for name in table.columns}
    columns["low"][:2] = [columns["difference"][0] + 1, float("nan")]
    columns["high"][:2] = [columns["difference"][0] + 2, float("nan")]
    few = Results(study.results.manifest, {"flow_coreference": Table.of(columns)}, None)
    assert b"same entity" in render(draw("westera1", few), "svg")


def test_a_run_is_not_accepted_as_a_study_and_a_study_not_as_a_run(study: hs.StudyResult, tmp_path: Path) -> None:
    run = hs.run("mini", "sampler", ["entropy"], tmp_path / "run", limit=4, replicates=0, gallery=0)
    with pytest.raises(RunError, match=r"westera1 shows flow_coreference.*headscope flow --parts coreference"):
        draw("westera1", run.results)
    with pytest.raises(RunError, match="Run again with --measures coreference"):
        draw("table2", study.results)
    with pytest.raises(RunError, match="holds a study of flow"):
        hs.open_run(study.results.path or "")
    with pytest.raises(RunError, match="holds a run"):
        hs.open_study(tmp_path / "run")
    with pytest.raises(RunError, match="is a run, not a study"):
        page(study.results, [run.results])
    both = page(run.results, [study.results])
    assert both.count("data:image/svg+xml;base64") == 4
    assert "Every head" in both
    assert "Influence between words" in both


def test_the_report_of_a_study_has_its_figures_and_sentences(study: hs.StudyResult) -> None:
    path = study.report()
    text = path.read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64") == 4
    assert 'data-view="explorer"' not in text
    for line in sentences(study.results):
        assert line.split(",")[0] in text.replace("&#39;", "'")
    assert "t 23.38" in text
    assert str(hs.open_study(path.parent)) == str(study)


def test_sentences_match_those_worked_out_by_hand() -> None:
    """The numbers of each test differ. A sentence has the d, t, p and n of one row: the row of the regression."""
    row: dict[str, list[Any]] = {
        "measure": ["A"] * 3, "preset": ["recommended"] * 3, "test": ["welch", "matched", "regression"], "mean_same": [0.03, 0.04, 0.03],
        "mean_different": [0.02, 0.01, 0.02], "difference": [0.01, 0.03, 0.005], "t": [7.1, 2.2, 3.9], "p": [0.078, 0.033, 0.0004],
        "d": [0.32, 0.85, 0.5], "n_same": [20, 14, 20], "n_different": [22, 14, 22], "documents": [9, 7, 8],
    }  # fmt: skip
    significant = sentences({"flow_coreference_headline": Table.of(row)})
    assert significant == [
        "Influence from a noun to a later pronoun, by attention (A), is 25% higher between mentions of the same entity than between "
        "others, controlling for distance (d = 0.50, t = 3.90, p < .001 over 42 pairs)."
    ]
    not_significant = sentences({"flow_coreference_headline": Table.of({**row, "p_documents": [0.01, 0.02, 0.25]})})
    assert not_significant == [
        "Influence from a noun to a later pronoun, by attention (A), is not significantly higher or lower between mentions of the same "
        "entity than between others, controlling for distance (d = 0.50, t = 3.90, p < .001 over 42 pairs; p = .250 over 8 documents)."
    ]
    few = sentences({"flow_coreference_headline": Table.of({**row, "p_documents": [0.01, 0.02, float("nan")], "documents": [9, 7, 3]})})
    assert few[0].endswith("p < .001 over 42 pairs; 3 documents: intervals and p values need 6 or more).")
    assert "not significantly higher or lower" in few[0]
    assert "too few to test" in sentences({"flow_coreference_headline": Table.of({**row, "p": [0.078, 0.033, float("nan")]})})[0]


def test_sentences_of_a_study_have_the_numbers_of_one_row(study: hs.StudyResult) -> None:
    """Every number in brackets is looked up in the tables of the study."""
    wanted = {
        "Influence from a noun": study["flow_coreference_headline"].where(preset="recommended", test="regression"),
        "The influence of a word": study["flow_class_headlines"].where(preset="recommended", test="paired", first="open", second="closed"),
    }
    for start, rows in wanted.items():
        lines = [line for line in sentences(study.results) if line.startswith(start)]
        assert len(lines) == len(rows) == 2
        for line, row in zip(lines, rows, strict=True):
            n = row["n_same"] + row["n_different"] if "n_same" in row else row["n_first"]
            p = "p < .001" if row["p"] < 0.001 else f"p = {row['p']:.3f}".replace("0.", ".", 1)
            assert f"(d = {row['d']:.2f}, t = {row['t']:.2f}, {p} over {n} " in line, line
            assert f" {row['documents']} documents" in line


def test_the_command_saves_a_study_and_refuses_an_existing_folder(tmp_path: Path) -> None:
    out = tmp_path / "flow"
    options = ["--measures", "A,G", "--norm", "sum", "--limit", "3", "--items", "4", "--replicates", "10", "--context", "24"]
    done = CliRunner().invoke(app, ["flow", *options, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "same entity minus other" in done.output
    assert "headscope report" in done.output
    shown = CliRunner().invoke(app, ["show", str(out), "flow_agreement", "--format", "csv"])
    assert shown.output.startswith('"first","second","over","layer","value"')
    figure = tmp_path / "figure.pdf"
    assert CliRunner().invoke(app, ["plot", str(out), "trees", "-o", str(figure)]).exit_code == 0
    assert figure.read_bytes().startswith(b"%PDF")
    with pytest.raises(RunError, match="already holds a run"):
        CliRunner().invoke(app, ["flow", *options, "--out", str(out)], catch_exceptions=False)
