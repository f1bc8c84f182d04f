"""Turns in the decisions on examples, and intervals, compared with numbers worked out by hand and with plain loops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headscope.core.annotation import Annotation
from headscope.core.document import Edge, Word
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.stats.bootstrap import poisson_weights
from headscope.studies.edge_probe.reading import _inside, apart
from headscope.studies.edge_probe.tables import Turn, marked, settled, shown_labels, turn, verdict
from headscope.studies.edge_probe.task import f1
from headscope.studies.edge_probe.task_results import TaskResults
from headscope.studies.edge_probe.tasks import inside

NAMES = ("A", "B", "C")


def test_the_turn_with_the_largest_margin_by_hand() -> None:
    beliefs = np.array([[0.9, 0.2, 0.0], [0.6, 0.5, 0.1], [0.3, 0.8, 0.1], [0.4, 0.7, 0.9]])
    # A leads B by .7 at layer 0, and B leads A by .5 at layer 2: the margin is .5. A leads C by .9 at layer 0, and C
    # leads A by .5 at layer 3: the margin is not larger.
    found = turn(beliefs, NAMES)
    assert found == Turn(found.margin, "A", "B", 0, 2)
    assert found.margin == pytest.approx(0.5)
    assert verdict(turn(beliefs, NAMES), ["B"]) == "corrected"
    assert verdict(turn(beliefs, NAMES), ["A"]) == "spoiled"
    assert verdict(turn(beliefs, NAMES), ["C"]) == "changed"
    assert settled(beliefs) == 3
    assert settled(beliefs[:3]) == 2
    assert settled(beliefs[:2]) == 0


def test_beliefs_without_a_turn_have_no_positive_margin() -> None:
    beliefs = np.array([[0.9, 0.2, 0.1], [0.8, 0.3, 0.1]])
    assert turn(beliefs, NAMES).margin <= 0


def test_turns_equal_a_search_over_all_pairs_and_layers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        beliefs = rng.random((5, 3))
        best = max(
            min(beliefs[first, a] - beliefs[first, b], beliefs[last, b] - beliefs[last, a])
            for first in range(5)
            for last in range(first + 1, 5)
            for a in range(3)
            for b in range(3)
            if a != b
        )
        assert turn(beliefs, NAMES).margin == pytest.approx(best)
        alone = max(
            min(sign * (beliefs[first, a] - 0.5), -sign * (beliefs[last, a] - 0.5))
            for first in range(5)
            for last in range(first + 1, 5)
            for a in range(3)
            for sign in (1, -1)
        )
        assert turn(beliefs, NAMES, several=True).margin == pytest.approx(alone)


def test_with_several_labels_each_label_is_compared_with_its_absence() -> None:
    beliefs = np.array([[0.9, 0.6], [0.1, 0.7]])
    found = turn(beliefs, ("X", "Y"), several=True)
    assert found == Turn(found.margin, "X", "not X", 0, 1)
    assert found.margin == pytest.approx(0.4)
    assert verdict(found, ["Y"], several=True) == "corrected"
    assert verdict(found, ["X", "Y"], several=True) == "spoiled"
    assert settled(beliefs, several=True) == 1
    assert shown_labels(beliefs, np.array([False, True]), found, ("X", "Y")) == [0, 1]


def _text(document: str, words: str, number: int = 1) -> Encoded:
    annotation = Annotation.of_sentence(document, tuple(Word(word) for word in words.split()))
    return Encoded(f"{document}/{number}", annotation, np.zeros(0, int), np.zeros(0, int), (), (), ())


def test_spans_are_marked_in_the_text_and_gaps_are_shortened() -> None:
    text = _text("d", " ".join(f"w{number}" for number in range(60)))
    assert marked(_text("d", "he smoked Toronto"), Edge("t", ("x",), (2, 3))) == "he smoked [Toronto]"
    assert marked(_text("d", "the big cat sat"), Edge("t", ("x",), (0, 3), (2, 3))) == "[the big [cat]1]2 sat"
    far = marked(text, Edge("t", ("x",), (20, 21), (50, 52)))
    assert far.startswith("… w10 ")
    assert "w30 … w40" in far
    assert far.endswith("[w50 w51]2 w52 w53 w54 w55 w56 w57 w58 w59")


def test_whole_documents_are_held_out() -> None:
    texts = [_text(f"d{number}", "a b", place) for number in range(10) for place in range(3)]
    chosen = apart(texts, 0.2, "key")
    assert len(chosen) == 6
    names = {texts[number].document for number in chosen}
    assert all((text.document in names) == (number in chosen) for number, text in enumerate(texts))
    assert {texts[number].id for number in chosen} == {texts[29 - number].id for number in apart(texts[::-1], 0.2, "key")}
    assert len(apart(texts[:3], 0.2, "key")) == 1  # with one document, single texts are held out
    with pytest.raises(RunError, match="too few texts"):
        apart(texts[:1], 0.2, "key")


def test_the_fast_selection_of_edges_equals_the_plain_one() -> None:
    edges = [Edge("t", ("x",), (start, start + size)) for start in range(30) for size in (1, 3)]
    for positions in (range(5), range(7, 20), range(25, 33), (4, 5, 9)):
        assert _inside(edges, list(positions)) == inside(edges, list(positions))


def test_replicates_resample_documents_and_seeds() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 9, size=(3, 2, 4, 5, 3)).astype(float)
    task: Any = SimpleNamespace(documents=[f"d{number}" for number in range(5)], layers=4)
    results = TaskResults(
        task,
        [0, 1, 2],
        counts,
        np.zeros((3, 2, 4, 4)),
        np.zeros((3, 2, 4)),
        np.zeros((3, 4, 0, 2)),
        np.zeros((4, 5, 3)),
        replicates=6,
        seed=9,
    )
    np.testing.assert_allclose(results.scores, np.mean([f1(counts[seed].sum(2)) for seed in range(3)], axis=0))
    weights = poisson_weights(task.documents, 6, 9)[:, 1:]
    for replicate in range(6):
        drawn = results.drawn_seeds[replicate]
        plain = np.mean([f1((counts[seed] * weights[:, replicate, None]).sum(2)) for seed in drawn], axis=0)
        np.testing.assert_allclose(results.drawn[replicate], plain)
    assert len({tuple(row) for row in results.drawn_seeds.tolist()}) > 1
