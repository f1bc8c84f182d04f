"""Figures, report and command of a keyword study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.drawing.theme import render
from headscope.figures import draw
from headscope.report.sections import study_section
from headscope.results.results import Results
from headscope.views.words import findings


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study made by the command on documents of the embedded corpus, cut after 48 tokens."""
    folder = tmp_path_factory.mktemp("studies") / "keys"
    options = ["--max-length", "48", "--replicates", "20", "--folds", "2"]
    done = CliRunner().invoke(app, ["probe", "keywords", *options, "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert "F1 of words" in done.output
    again = CliRunner().invoke(app, ["probe", "keywords", *options, "--out", str(folder)])
    assert "already holds a run" in str(again.exception)
    return Results.open(folder)


@pytest.mark.parametrize("name", ["keywords", "keyword_losses", "keyword_curves", "keyword_scores"])
def test_figures_contain_their_labels_and_the_signature(study: Results, name: str) -> None:
    drawn = render(draw(name, study), "svg").decode()
    texts = {
        "keywords": ["words of keyphrases"],
        "keyword_losses": ["Cross-entropy on other documents (nats per word)", "Saved compared with the share of keywords alone"],
        "keyword_curves": ["Threshold", "Heads kept", "F1 on other documents", "F1 of words", "F1 of phrases"],
        "keyword_scores": ["F1 of phrases"],
    }
    assert all(words in drawn for words in texts[name])
    assert study.signature[-12:] in drawn


def test_ranked_heads_and_curves_are_those_of_the_tables(study: Results) -> None:
    best = list(study["keywords_ranking"].head(20))
    ranked = draw("keyword_losses", study).axes[0]
    labels = [f"{row['rank']}. {row['layer']}-{row['head']} {row['received']}" for row in best]
    assert [text.get_text() for text in ranked.get_yticklabels()] == labels
    left, right = draw("keyword_curves", study).axes
    for axes, by in ((left, "threshold"), (right, "heads")):
        for level in ("words", "phrases"):
            rows = study["keywords_curves"].where(by=by, level=level)
            line = next(line for line in axes.lines if line.get_label() == f"F1 of {level}")
            assert np.asarray(line.get_xdata()).tolist() == rows[by]
            assert np.asarray(line.get_ydata()).tolist() == rows["f1"]


def test_both_panels_of_the_scores_have_the_same_order_of_systems(study: Results) -> None:
    words, phrases = draw("keyword_scores", study).axes
    names = [text.get_text() for text in words.get_yticklabels()]
    for axes, level in ((words, "words"), (phrases, "phrases")):
        for name, bar in zip(names, axes.patches, strict=True):
            row = next(iter(study["keywords_scores"].where(system=name, level=level)))
            assert bar.get_width() == pytest.approx(row["f1"])  # type: ignore[attr-defined]


def test_findings_match_the_tables_and_the_report_has_all_figures(study: Results, tmp_path: Path) -> None:
    texts = findings(study)
    row = next(iter(study["keywords_scores"].where(system="all heads", level="words")))
    assert f"an F1 of {row['f1']:.2f} [{row['low']:.2f} {row['high']:.2f}]" in texts[0]
    mixed = max(study["keywords_weights"].where(system="scalar mix"), key=lambda row: row["share"])
    assert f"the largest weights are those of {mixed['layer']}-{mixed['head']} ({mixed['share']:.0%})" in texts[-1]
    section = study_section(study)
    assert [figure["name"] for figure in section["figures"]] == ["keywords", "keyword_losses", "keyword_curves", "keyword_scores"]
    assert study.path is not None
    hs.open_study(study.path).report(tmp_path / "page.html")
    assert "Keyphrases from attention" in (tmp_path / "page.html").read_text()
