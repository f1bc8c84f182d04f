"""Coreference scores compared with worked examples and with slow implementations of the definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from headscope.core.document import Mention
from headscope.corpora.agreement.coreference import CoreferenceParts, Entity, b_cubed, best_total, ceaf, entities, links, muc

Metric = Callable[[Sequence[Entity], Sequence[Entity]], CoreferenceParts]


def partition(*groups: str) -> list[Entity]:
    """One entity per string; its mentions are the letters."""
    return [frozenset((ord(letter), ord(letter) + 1, 0) for letter in group) for group in groups]


def scores(parts: CoreferenceParts) -> tuple[float, float, float]:
    precision, recall = parts.precise / parts.second, parts.recalled / parts.first
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


KEY, RESPONSE = partition("ABC", "DEFG"), partition("AB", "CD", "FGHI")


@pytest.mark.parametrize(
    ("metric", "precision", "recall", "f1"),
    [
        # Recall: ABC splits into AB, C and DEFG into D, E, FG: 1 + 1 of 2 + 3 links. Precision: 1 + 0 + 1 of 1 + 1 + 3.
        (muc, 2 / 5, 2 / 5, 0.4),
        # Recall: A, B 2/3; C 1/3; D 1/4; E 0; F, G 2/4. Precision: A, B 1; C, D 1/2; F, G 2/4; H, I 0.
        (b_cubed, 4 / 8, (5 / 3 + 5 / 4) / 7, 0.45455),
        # Similarity: ABC and AB 4/5, DEFG and FGHI 4/8. The sum 1.3 is divided by 3 and by 2 entities.
        (ceaf, 1.3 / 3, 1.3 / 2, 0.52),
        # AB and FG are the common pairs, of 1 + 1 + 6 in the response and 3 + 6 in the key.
        (links, 2 / 8, 2 / 9, 4 / 17),
    ],
)
def test_scores_match_the_worked_example(metric: Metric, precision: float, recall: float, f1: float) -> None:
    assert scores(metric(KEY, RESPONSE)) == pytest.approx((precision, recall, f1), abs=1e-5)
    assert scores(metric(RESPONSE, KEY)) == pytest.approx((recall, precision, f1), abs=1e-5)


@pytest.mark.parametrize(
    ("key", "response", "b_cubed_f1", "muc_f1", "ceaf_f1"),
    [
        # Bagga and Baldwin 1998: merging an entity of 5 with another of 5 is worse than with one of 2. MUC does not
        # distinguish the two cases: in both, 9 of 10 links are right.
        (("12345", "67", "89ABC"), ("12345", "6789ABC"), 2 * 0.7619 / 1.7619, 0.9474, 2 * (1 + 10 / 12) / 5),
        (("12345", "67", "89ABC"), ("1234589ABC", "67"), 2 * 0.5833 / 1.5833, 0.9474, 2 * (10 / 15 + 1) / 5),
    ],
)
def test_scores_match_the_examples_of_bagga_and_baldwin(
    key: tuple[str, ...], response: tuple[str, ...], b_cubed_f1: float, muc_f1: float, ceaf_f1: float
) -> None:
    first, second = partition(*key), partition(*response)
    assert scores(b_cubed(first, second))[2] == pytest.approx(b_cubed_f1, abs=1e-4)
    assert scores(muc(first, second)) == pytest.approx((0.9, 1, muc_f1), abs=1e-4)
    assert scores(ceaf(first, second))[2] == pytest.approx(ceaf_f1, abs=1e-4)


def test_scores_of_one_entity_against_four_singletons_match_values_by_hand() -> None:
    whole, single = partition("ABCD"), partition("A", "B", "C", "D")
    assert muc(whole, single) == (0, 3, 0, 0)
    assert scores(b_cubed(whole, single)) == (1, 1 / 4, 2 / 5)
    assert ceaf(whole, single) == (2 / 5, 1, 2 / 5, 4)
    assert links(whole, single) == (0, 6, 0, 0)


@st.composite
def some_entities(draw: st.DrawFn, size: int = 9, most: int = 5) -> list[Entity]:
    """Mentions distributed over a few entities; some mentions are in none."""
    owners = draw(st.lists(st.integers(-1, most - 1), min_size=size, max_size=size))
    groups = [frozenset((i, i + 1, 0) for i, owner in enumerate(owners) if owner == group) for group in range(most)]
    return [group for group in groups if group]


def slow_muc(first: Sequence[Entity], second: Sequence[Entity]) -> tuple[int, int]:
    """The links kept and the links needed. The entities of the other side cut an entity into pieces; a mention that
    the other side lacks is one piece.
    """
    kept = needed = 0
    for entity in first:
        pieces = {next((j for j, other in enumerate(second) if span in other), span) for span in entity}
        kept, needed = kept + len(entity) - len(pieces), needed + len(entity) - 1
    return kept, needed


def slow_b_cubed(first: Sequence[Entity], second: Sequence[Entity]) -> tuple[float, int]:
    total, mentions = 0.0, 0
    for entity in first:
        for span in entity:
            other = next((other for other in second if span in other), frozenset())
            total, mentions = total + len(entity & other) / len(entity), mentions + 1
    return total, mentions


def slow_ceaf(first: Sequence[Entity], second: Sequence[Entity]) -> float:
    few, many = sorted((first, second), key=len)
    return max(sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(few, order, strict=False)) for order in permutations(many, len(few)))


def slow_links(side: Sequence[Entity]) -> set[frozenset[object]]:
    return {frozenset(pair) for entity in side for pair in combinations(entity, 2)}


@given(some_entities(), some_entities())
def test_slow_implementations_give_the_same_scores(first: list[Entity], second: list[Entity]) -> None:
    assert muc(first, second) == (*slow_muc(first, second), *slow_muc(second, first))
    assert b_cubed(first, second) == pytest.approx((*slow_b_cubed(first, second), *slow_b_cubed(second, first)))
    assert ceaf(first, second).recalled == pytest.approx(slow_ceaf(first, second))
    common = len(slow_links(first) & slow_links(second))
    assert links(first, second) == (common, len(slow_links(first)), common, len(slow_links(second)))


@given(some_entities(), some_entities())
def test_swapping_the_sides_swaps_precision_and_recall(first: list[Entity], second: list[Entity]) -> None:
    for metric in (muc, b_cubed, ceaf, links):
        recalled, n_first, precise, n_second = metric(first, second)
        assert metric(second, first) == pytest.approx((precise, n_second, recalled, n_first))


@given(some_entities())
def test_two_equal_sides_score_perfectly(first: list[Entity]) -> None:
    for metric in (muc, b_cubed, ceaf, links):
        recalled, n_first, precise, n_second = metric(first, first[::-1])
        assert recalled == precise == pytest.approx(n_first)
        assert n_first == n_second


@given(some_entities(), some_entities())
def test_muc_and_links_ignore_singletons(first: list[Entity], second: list[Entity]) -> None:
    chains = [[entity for entity in side if len(entity) > 1] for side in (first, second)]
    for metric in (muc, links):
        assert metric(*chains) == metric(first, second)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12), st.sampled_from([0.1, 0.4, 1.0]))
def test_the_best_matching_equals_that_of_scipy(seed: int, rows: int, columns: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    # Few distinct values, so that there are ties.
    gains = rng.integers(1, 6, size=(rows, columns)) / 5 * (rng.random((rows, columns)) < density)
    chosen = linear_sum_assignment(gains, maximize=True)
    named = {(i, j): float(gains[i, j]) for i, j in zip(*np.nonzero(gains), strict=True)}
    assert best_total(named) == pytest.approx(gains[chosen].sum())


def test_mentions_are_grouped_into_entities() -> None:
    mentions = [Mention("b", 1, 2), Mention("a", 0, 1), Mention("c", 2, 4), Mention("b", 2, 4), Mention("a", 2, 4)]
    a, b, c = {(0, 1, 0), (2, 4, 0)}, {(1, 2, 0), (2, 4, 1)}, {(2, 4, 2)}
    assert entities(mentions) == [a, b, c], "a span of three entities is numbered in the order of their first mentions"
    assert entities(mentions, singletons=False) == [a, b]
    assert entities([]) == []
