from __future__ import annotations

from collections import Counter

from headscope.core.document import Edge, Word
from headscope.studies.edge_probe.task import Control

TRAIN = [Edge("t", ("a",), (0, 1))] * 6 + [Edge("t", ("b", "c"), (1, 2))] * 3 + [Edge("t", (), (2, 3))]


def test_control_labels_depend_on_the_last_word_of_the_first_span() -> None:
    words = [Word(form) for form in ("old", "dogs", "bark", "at", "Dogs")]
    edges = [Edge("t", ("a",), (0, 2), (2, 3)), Edge("t", ("a",), (1, 2)), Edge("t", ("b",), (4, 5), (0, 1)), Edge("t", ("b",), (2, 4))]
    control = Control(TRAIN)
    relabelled = control.relabelled(edges, words)
    dogs, at = control.labels("t", "dogs"), control.labels("t", "at")
    assert [edge.labels for edge in relabelled] == [dogs, dogs, dogs, at]
    assert [(edge.task, edge.first, edge.second) for edge in relabelled] == [(edge.task, edge.first, edge.second) for edge in edges]


def test_control_labels_have_the_frequencies_of_the_true_labels() -> None:
    control = Control(TRAIN)
    drawn = Counter(control.labels("t", f"word{number}") for number in range(20_000))
    assert set(drawn) == {("a",), ("b", "c"), ()}
    for labels, share in {("a",): 0.6, ("b", "c"): 0.3, (): 0.1}.items():
        assert abs(drawn[labels] / 20_000 - share) < 0.015  # more than four standard errors


def test_control_labels_depend_on_seed_and_task_but_not_on_order() -> None:
    types = [f"word{number}" for number in range(200)]

    def all_labels(control: Control, task: str = "t") -> list[tuple[str, ...]]:
        return [control.labels(task, form) for form in types]

    one = all_labels(Control(TRAIN, seed=1))
    assert one == all_labels(Control(reversed(TRAIN), seed=1))
    # Two independent draws agree for 0.36 + 0.09 + 0.01 = 0.46 of the types: about 92 of 200.
    for other in (all_labels(Control(TRAIN, seed=2)), all_labels(Control(TRAIN, seed=1), "u")):
        assert 60 < sum(mine == theirs for mine, theirs in zip(one, other, strict=True)) < 125


def test_control_labels_are_empty_without_training_targets() -> None:
    assert Control([]).labels("t", "word") == ()
