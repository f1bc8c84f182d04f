"""The gap between an entrant's accuracies on two groups of cases: ratios and differences, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout, Kind
from headscope.core.state import State
from headscope.measures.base import Columns, Rows
from headscope.measures.contests import Contests
from headscope.stats.bootstrap import GROUPS, group_weights
from headscope.stats.inference import Support, interval
from headscope.stats.selection import crossfit, folds_of, in_sample, share

if TYPE_CHECKING:
    from jaxtyping import Float64, Int, Int64

BEST = "best head of all"  # one head for both labels; the table of best heads chooses one per label
_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("kind", "label", "versus", "entrant", "direction"), object),
    **dict.fromkeys(("value", "versus_value"), np.float64),
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high", "difference", "difference_low", "difference_high"), np.float64),
    **{"n": np.int64, "versus_n": np.int64, "documents": np.int64},
}


def gaps_table(contests: Contests, state: State, layout: HeadLayout, pairs: Sequence[tuple[str, str]]) -> Columns:
    """One row per pair of labels and entrant. The entrants are the best head of "all", chosen according to `selection`;
    the rules; and every head in every direction.
    """
    rows = Rows(_COLUMNS)
    weights = group_weights(*(int(number) for number in state["draws"]))
    for kind in dict.fromkeys(site.kind for site in layout.sites):
        cases = dict(contests.listed(state, kind))
        for label, versus in pairs:
            if label in cases and versus in cases:
                entrants = _Entrants(contests, state, layout, kind, cases["all"])
                right = entrants.right(label), entrants.right(versus)
                support = contests.support(state, kind, label).both(contests.support(state, kind, versus))
                _add(rows, kind, (label, versus), entrants, right, (cases[label], cases[versus]), support, weights)
    return rows.columns


class _Entrants:
    """All entrants of a kind of attention, on one axis."""

    def __init__(self, contests: Contests, state: State, layout: HeadLayout, kind: Kind, n: Int64[np.ndarray, "group"]) -> None:
        self._state = state
        self._kind = kind
        self._flat = [number for number, id in enumerate(layout.ids()) if id.kind == kind]
        heads = [str(id) for id in layout.ids() if id.kind == kind]
        self._best = self._chosen(contests, n)
        found = [(BEST, "")] * (self._best is not None) + [(rule, "") for rule in contests.rules]
        found += [(head, direction) for direction in contests.directions for head in heads]
        self.names, self.directions = zip(*found, strict=True)

    def right(self, label: str) -> Int64[np.ndarray, "group entrant"]:
        """The right answers of each entrant."""
        heads = self._heads(label)
        best = [] if self._best is None else [heads[np.arange(GROUPS), self._best][:, None]]
        return np.concatenate([*best, self._state[f"rule/{self._kind}/{label}"], heads], axis=1)

    def _heads(self, label: str) -> Int64[np.ndarray, "group entrant"]:
        right: Int64[np.ndarray, "group entrant"] = self._state[f"right/{label}"][:, :, self._flat].reshape(GROUPS, -1)
        return right

    def _chosen(self, contests: Contests, n: Int64[np.ndarray, "group"]) -> Int[np.ndarray, "group"] | None:
        """The head that represents each group of documents; None if the documents cannot be divided into folds."""
        if contests.selection == "in-sample":
            return np.full(GROUPS, in_sample(n, self._heads("all")).picks[0])
        picks = crossfit(n, self._heads("all"), folds=contests.folds).picks
        return np.array(picks)[folds_of(n > 0, contests.folds)] if picks else None


def _add(
    rows: Rows,
    kind: Kind,
    labels: tuple[str, str],
    entrants: _Entrants,
    right: tuple[Int64[np.ndarray, "group entrant"], Int64[np.ndarray, "group entrant"]],
    n: tuple[Int64[np.ndarray, "group"], Int64[np.ndarray, "group"]],
    support: Support,
    weights: Float64[np.ndarray, "replicate group"],
) -> None:
    value, other = (one.sum(0) / count.sum() for one, count in zip(right, n, strict=True))
    drawn, others = (share(one, count, weights) for one, count in zip(right, n, strict=True))
    ratio_low, ratio_high = interval(_ratio(value, other), _ratio(drawn, others), support, (0, np.inf))
    low, high = interval(value - other, drawn - others, support, (-1, 1))
    rows.add(
        len(value),
        kind=kind,
        label=labels[0],
        versus=labels[1],
        entrant=entrants.names,
        direction=entrants.directions,
        value=value,
        versus_value=other,
        ratio=_ratio(value, other),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        difference=value - other,
        difference_low=low,
        difference_high=high,
        n=int(n[0].sum()),
        versus_n=int(n[1].sum()),
        documents=int(support.documents),
    )


def _ratio(one: Float64[np.ndarray, "*shape"], other: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """`one` divided by `other`; NaN where `other` is 0."""
    ratio: Float64[np.ndarray, "*shape"] = np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)
    return ratio
