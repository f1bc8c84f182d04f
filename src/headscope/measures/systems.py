"""Rules and heads as systems, compared on every label: the rows of Clark et al. 2019, Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.measures.base import Columns, Rows
from headscope.measures.contests import ALL, Contests, names_of
from headscope.stats.bootstrap import group_weights
from headscope.stats.inference import share_interval
from headscope.stats.selection import SelectedScore, folds_of

if TYPE_CHECKING:
    from jaxtyping import Int64

ONE, EACH = "one head", "best head of each kind"
_COLUMNS: dict[str, type] = {
    **{"kind": object, "system": object, "direction": object, "heads": object, "label": object},
    **{"value": np.float64, "low": np.float64, "high": np.float64, "n": np.int64, "documents": np.int64},
}


def systems_table(contests: Contests, state: State, layout: HeadLayout) -> Columns:
    """One row per system and label: its share of right answers, with its interval.

    Systems are the rules and, per direction, `one head`, which is chosen on all cases and scored on every label, and
    `best head of each kind`, which is chosen per label. If `selection` is crossfit, heads are chosen on other documents
    than those they are scored on.
    """
    rows = Rows(_COLUMNS)
    weights = group_weights(*(int(number) for number in state["draws"]))
    for kind, flat in layout.by_kind().items():
        ids = [layout.ids()[number] for number in flat]
        listed = contests.listed(state, kind)

        def add(system: str, direction: str, heads: str, label: str, scored: SelectedScore, kind: str = kind) -> None:
            support = contests.support(state, kind, label)
            low, high = share_interval(np.array(scored.value), scored.resampled(weights), support)
            bounds = {"value": scored.value, "low": low, "high": high}
            names = {"kind": kind, "system": system, "direction": direction, "heads": heads, "label": label}
            rows.add(1, **names, **bounds, n=int(scored.n.sum()), documents=int(support.documents))

        for place, rule in enumerate(contests.rules):
            for label, n in listed:
                add(rule, "", "", label, SelectedScore((), state[f"rule/{kind}/{label}"][:, place], n))
        for way, direction in enumerate(contests.directions):
            overall = [(n, contests.choose(n, state[f"right/{label}"][:, way, flat])) for label, n in listed if label == ALL]
            for label, n in listed:
                right = state[f"right/{label}"][:, way, flat]
                for total, chosen in overall:
                    add(ONE, direction, names_of(ids, chosen.picks), label, _by(chosen.picks, total, n, right))
                best = contests.choose(n, right)
                add(EACH, direction, names_of(ids, best.picks), label, best)
    return rows.columns


def _by(
    picks: Sequence[int], total: Int64[np.ndarray, "group"], n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group head"]
) -> SelectedScore:
    """The cases of a label; those of each fold are answered by the head that was chosen for that fold on all cases."""
    if not picks:
        return SelectedScore((), np.zeros_like(n), np.zeros_like(n))
    fold = folds_of(total > 0, len(picks))
    return SelectedScore(tuple(picks), right[np.arange(len(n)), np.array(picks)[fold]], n)
