"""Figures, sentences, report and commands of an ablation study."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.drawing.theme import render
from headscope.errors import RunError
from headscope.figures import draw
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.ablation.findings import sentences, within


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hs.StudyResult:
    out = tmp_path_factory.mktemp("ablation") / "study"
    return hs.ablate(
        "mini", "sampler", out, limit=3, replicates=50, steps=2, orders=1, max_length=24, parts=["heads", "importance", "pruning"]
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("michel1", ["loss without the head", "loss of the whole model: ", "Framed: p", "3 texts"]),
        ("histogram", ["Heads", "minus with it"]),
        ("michel3", ["Heads switched off", "by importance", "by measured loss", "at random"]),
        ("importance", ["Importance, from gradients", "loss of"]),
    ],
)
def test_figures_contain_their_labels_and_a_figure_of_another_study_is_refused(study: hs.StudyResult, name: str, words: list[str]) -> None:
    drawn = render(study.plot(name), "svg").decode()
    for word in words:
        assert word in drawn
    with pytest.raises(RunError, match=r"westera1 shows flow_coreference.*headscope flow"):
        study.plot("westera1")


def test_bands_stay_within_the_range_of_the_score(study: hs.StudyResult) -> None:
    assert within("f1_macro") == within("masked_accuracy") == within("keyphrase_spans") == (0, 1)
    assert within("bleu_tokenized") == (0, 100)
    assert within("matthews") == (-1, 1)
    assert within("own") == (-math.inf, math.inf)
    pruning = study["pruning"]
    columns = {name: list(pruning[name]) for name in pruning.columns}
    columns["low"], columns["high"] = [-100.0] * len(pruning), [1.0] * len(pruning)
    wide = Results(study.results.manifest, {**study.results, "pruning": Table.of(columns)})
    for band in draw("michel3", wide).axes[0].collections:
        assert np.asarray(band.get_paths()[0].vertices, dtype=float)[:, 1].min() == 0


def test_curves_start_at_the_score_of_all_heads_on_the_evaluation_texts() -> None:
    summary = Table.of({"what": ["loss of the whole model"], "value": [2.7]})
    columns = {"order": ["importance"] * 2, "share": [0.5, 1.0], "score": [2.75, 4.0], "difference": [0.25, 1.5]}
    columns |= {"low": [0.125, 1.25], "high": [0.5, 1.75], "n": [6, 6]}
    results = Results({"settings": {"score": "loss"}, "signature": "s"}, {"summary": summary, "pruning": Table.of(columns)})
    axes = draw("michel3", results).axes[0]
    curve, whole = axes.lines
    assert list(np.asarray(curve.get_ydata())) == [2.5, 2.75, 4.0]
    assert set(np.asarray(whole.get_ydata())) == {2.5}
    band = np.asarray(axes.collections[0].get_paths()[0].vertices, dtype=float)
    assert {tuple(point) for point in band} == {(0.0, 2.5), (50.0, 2.625), (50.0, 3.0), (100.0, 3.75), (100.0, 4.25)}


def test_a_study_is_reported_alone_and_on_the_page_of_a_run_with_a_flow_study(study: hs.StudyResult, tmp_path: Path) -> None:
    text = study.report().read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64") == 4
    assert "Which heads are needed" in text
    flow = hs.flow("mini", "sampler", measures=["A"], parts=["trees"], limit=3, replicates=10)
    run = hs.run("mini", "sampler", ["entropy"], limit=3, replicates=0, gallery=0)
    both = run.report(tmp_path / "page.html", [flow, study]).read_text(encoding="utf-8")
    assert both.index('id="study-1"') < both.index("Influence between words", both.index('id="study-1"')) < both.index('id="study-2"')
    assert str(hs.open_study(study.results.path or "")) == str(study)


def test_sentences_match_those_worked_out_by_hand() -> None:
    ablation = Table.of(
        {
            "kind": ["encoder"] * 3, "layer": [1, 1, 2], "head": [1, 2, 1], "difference": [0.25, -0.5, 0.01], "p": [0.001, 0.002, 0.5],
            "p_holm": [0.003, 0.004, 0.5],
        }
    )  # fmt: skip
    harmed, helped = sentences({"ablation": ablation}, "loss")
    assert harmed == "For 1 of 3 heads, loss is worse when the head alone is switched off (p < 0.01): 1-1 (+0.25)."
    corrected = "After Holm's correction for 3 tests, the change is significant for 2 of 3 heads (p < .05)."
    assert helped == f"For one other head, loss is better (p < 0.01). {corrected}"
    assert "1-2 (-0.5)" in sentences({"ablation": ablation}, "accuracy")[0]
    nothing = {"p": [math.nan] * 3, "p_holm": [math.nan] * 3, "documents": [2] * 3}
    untested = Table.of({name: ablation[name] for name in ablation.columns} | nothing)
    assert sentences({"ablation": untested}, "loss") == [
        "The effect of single heads was not tested: 2 documents: intervals and p values need 6 or more."
    ]
    prunable = Table.of(
        {"order": ["importance", "random 1", "random 2"], "share": [0.4, 0.1, 0.2], "base": [1.0] * 3, "tolerance": [0.01] * 3}
    )
    assert sentences({"prunable": prunable}, "accuracy") == [
        "Share of heads that can be removed before accuracy is worse by more than 1% of its value: 40% in order of importance, "
        "15% in random order."
    ]


def test_the_commands_save_studies_and_refuse_an_unsuitable_score(tmp_path: Path) -> None:
    out = tmp_path / "weights"
    done = CliRunner().invoke(app, ["importance", "--limit", "3", "--replicates", "10", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert len(hs.open_study(out)["importance"]) == 144
    done = CliRunner().invoke(app, ["ablate", "--parts", "layers", "--limit", "2", "--replicates", "10", "--out", str(tmp_path / "layers")])
    assert done.exit_code == 0, done.output
    assert "loss of the whole model" in done.output
    with pytest.raises(RunError, match="cannot be scored by bleu"):
        CliRunner().invoke(app, ["ablate", "--score", "bleu", "--out", str(tmp_path / "x")], catch_exceptions=False)
