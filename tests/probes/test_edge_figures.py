"""Figures, page and findings of an edge-probing study, and expected layers that are marked as not interpretable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import headscope as hs
from headscope.drawing.theme import render
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.choices import Negatives
from headscope.studies.edge_probe.findings import sentences
from headscope.studies.edge_probe.summary import doubt

pytestmark = pytest.mark.filterwarnings("ignore:.*logistic regression on one layer")  # it beats briefly trained probes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tenney1", ["expected layer", "centre of gravity", "Part of speech", "Coreference"]),
        ("tenney2", ["Mixing weights", "Score added", "K(s)"]),
        ("tenney3", ["Belief", "(true)"]),
        ("layerscores", ["layer ℓ alone", "random labels", "F1"]),
    ],
)
def test_figures_contain_their_labels_and_other_figures_are_refused(edge_study: hs.StudyResult, name: str, words: list[str]) -> None:
    drawn = render(edge_study.plot(name), "svg").decode()
    for word in words:
        assert word in drawn
    with pytest.raises(RunError, match=r"headscope ablate"):
        edge_study.plot("michel1")


def test_figure_3_shows_one_sentence_for_several_tasks_with_optional_bars(edge_study: hs.StudyResult) -> None:
    shared = [row for row in edge_study["edge_examples"] if row["kind"] == "sentence"]
    assert sorted(row["task"] for row in shared) == ["coref", "pos"]
    assert len({row["id"] for row in shared}) == 1
    assert min(row["margin"] for row in shared) > 0
    figure = edge_study.plot("tenney3")
    assert sorted(axes.get_title(loc="left").split(" 1:")[0] for axes in figure.axes) == ["Coreference", "Part of speech"]
    for axes, row in zip(edge_study.plot("tenney3", bars=True).axes, shared, strict=True):
        own = edge_study["edge_beliefs"].where(task=row["task"], example=row["example"])
        means = {label: np.mean(own.where(label=label)["belief"]) for label in own["label"] if not own.where(label=label)["gold"][0]}
        legend = axes.get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        true = [f"{row['gold']} (true)"] if any(own["gold"]) else []
        assert names == [*true, max(means, key=means.__getitem__)]
        assert len(axes.patches) == 13 * len(names)
    with pytest.raises(RunError, match="tenney1 has no option bars"):
        edge_study.plot("tenney1", bars=True)


def _doubted(study: hs.StudyResult, task: str) -> hs.StudyResult:
    """The study with all expected layers set to 3, and that of `task` marked as not interpretable."""
    tasks = study["edge_tasks"]
    columns = {name: list(tasks[name]) for name in tasks.columns}
    columns["doubt"] = ["layers add nothing" if name == task else None for name in tasks["task"]]
    columns["expected_layer"] = [3.0] * len(tasks)
    return hs.StudyResult(Results(study.results.manifest, {**study.results, "edge_tasks": Table.of(columns)}))


def test_expected_layers_that_are_not_interpretable_are_marked(edge_study: hs.StudyResult) -> None:
    doubted = _doubted(edge_study, "coref")
    axes = doubted.plot("tenney1").axes[0]
    points = {line.get_label(): line for line in axes.lines if str(line.get_label()).startswith("expected")}
    assert set(points) == {"expected layer", "expected layer, not interpretable"}
    assert points["expected layer, not interpretable"].get_markerfacecolor() == "white"
    panels = doubted.plot("tenney2").axes[1::2]
    shown = {
        name: " ".join(text.get_text() for text in axes.texts) for name, axes in zip(doubted["edge_tasks"]["task"], panels, strict=True)
    }
    assert "expected layer 3.00 (not interpretable)" in shown["coref"]
    assert "expected layer 3.00, K" in shown["pos"]
    lines = {name: len(axes.lines) for name, axes in zip(doubted["edge_tasks"]["task"], panels, strict=True)}
    assert lines["pos"] == lines["coref"] + 1, "an expected layer that is not interpretable has no dashed line"
    assert "expected layer is 3.00 (not interpretable)" in str(doubted)
    assert "coref" not in str(doubted).splitlines()[0]


@dataclass
class _Probed:
    """The input of `doubt`: scores by layer, and their replicates."""

    curve: np.ndarray
    again: np.ndarray
    negatives: Negatives = "keep"
    replicates: int = 2

    @property
    def size(self) -> int:
        return len(self.curve)

    @property
    def drawn(self) -> np.ndarray:
        return self.again[:, None]

    def interval(self, value: float, replicates: np.ndarray) -> tuple[float, float]:
        return float(replicates.min()), float(replicates.max())


@pytest.mark.parametrize(
    ("again", "why"),
    [
        ([[0.5, 0.8, 0.7], [0.5, 0.6, 0.6]], None),
        ([[0.5, 0.8, 0.9], [0.5, 0.6, 0.45]], "layers do not add significantly to the score (0.20 [-0.05 0.40])"),
    ],
)
def test_an_expected_layer_is_doubted_if_layers_do_not_add_significantly(again: list[list[float]], why: str | None) -> None:
    found = doubt(_Probed(np.array([0.5, 0.6, 0.7]), np.array(again)))  # type: ignore[arg-type]
    assert found is None if why is None else (found or "").startswith(why)


def test_the_page_has_four_figures_and_their_sections(edge_study: hs.StudyResult) -> None:
    text = edge_study.report().read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml;base64") == 4
    assert "What each layer encodes" in text
    assert "Selectivity" in text


def test_findings_state_the_numbers_of_the_tables() -> None:
    row = {
        "task": ["pos", "coref"], "n": [1200, 10], "embeddings": [0.5, 0.7], "all_layers": [0.9, 0.7], "expected_layer": [2.5, math.nan],
        "low": [2.0, math.nan], "high": [3.0, math.nan], "centre": [4.0, 6.0], "control": [0.6, math.nan], "selectivity": [0.3, math.nan],
    }  # fmt: skip
    turns = {
        "task": ["pos", "pos"], "text": ["[a] b", "c [d]"], "turn": ["spoiled", "corrected"], "before": ["X", "Y"], "before_layer": [0, 1],
        "after": ["Y", "Z"], "after_layer": [3, 5],
    }  # fmt: skip
    shown = sentences({"edge_tasks": Table.of(row), "edge_examples": Table.of(turns)})
    assert shown == [
        "pos: F1 is 0.500 with the embeddings and 0.900 with all layers; the expected layer is 2.50 [2.00 3.00], "
        "the centre of gravity 4.00 (n = 1,200).",
        "coref: F1 is 0.700 with the embeddings and 0.700 with all layers; the expected layer is –, the centre of gravity 6.00 (n = 10).",
        "Selectivity (F1 with all layers minus F1 on random labels): pos +0.30.",
        "Example of pos, corrected by later layers: c [d]: Y by layers 0 to 1, Z by layers 0 to 5.",
    ]
