"""Further tables: the accuracy of each rule, and counts of texts and cases."""

from __future__ import annotations

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.measures.base import Columns, Rows
from headscope.measures.contests import Contests
from headscope.stats.bootstrap import group_weights
from headscope.stats.inference import share_interval
from headscope.stats.selection import share

_RULES: dict[str, type] = {
    **{"kind": object, "label": object, "rule": object, "value": np.float64, "low": np.float64, "high": np.float64, "n": np.int64},
    "documents": np.int64,
}
_COUNTS: dict[str, type] = {"kind": object, "what": object, "n": np.int64}


def rules_table(contests: Contests, state: State, layout: HeadLayout) -> Columns:
    """One row per label and rule: the share of cases in which the rule is right, with its interval."""
    rows = Rows(_RULES)
    weights = group_weights(*(int(number) for number in state["draws"]))
    for kind in dict.fromkeys(site.kind for site in layout.sites):
        for label, n in contests.listed(state, kind):
            right = state[f"rule/{kind}/{label}"]
            value, support = right.sum(0) / n.sum(), contests.support(state, kind, label)
            low, high = share_interval(value, share(right, n, weights), support)
            names = {"kind": kind, "label": label, "rule": contests.rules}
            rows.add(len(value), **names, value=value, low=low, high=high, n=int(n.sum()), documents=int(support.documents))
    return rows.columns


def counts_table(contests: Contests, state: State) -> Columns:
    """One row per counted item."""
    rows = Rows(_COUNTS)
    for kind, counts in state.family("count/").items():
        rows.add(len(counts), kind=kind, what=contests.counted, n=counts)
    return rows.columns
