"""The same heads on two tasks: whether a model misses on one what it misses on the other (Michel et al. 2019, §3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headscope.ablation.summary import LOWER
from headscope.errors import RunError
from headscope.runs.results import Results
from headscope.runs.table import Table
from headscope.stats.correlation import pearson, spearman


def across(first: Results, second: Results) -> Table:
    """Correlation of what is lost without each head in two studies, by kind of attention: above 0, what is missed is the same.

    `p` is that of a permutation test, which deals out the heads' losses anew.
    """
    lost = [_lost(results) for results in (first, second)]
    if {*lost[0]} != {*lost[1]}:
        raise RunError(
            "the two studies are of models with different heads", "Compare two tasks of one model, or of models fine-tuned from one"
        )
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(place[0] for place in lost[0]):
        places = [place for place in lost[0] if place[0] == kind]
        one, other = (np.array([side[place] for place in places]) for side in lost)
        for method, correlate in (("pearson", pearson), ("spearman", spearman)):
            value, n = correlate(one, other)
            rows.append({"kind": kind, "method": method, "value": float(value), "p": _permuted(one, other, correlate), "n": int(n)})
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})


def _lost(results: Results) -> Mapping[tuple[str, int, int], float]:
    """How much worse the score is without each head, whichever way is up."""
    if results.study != "ablation" or "ablation" not in results:
        raise RunError(f"{results.path} has not switched off each head", "Make a study with headscope ablate --parts heads")
    sign = 1 if results.manifest["settings"]["score"] in LOWER else -1
    return {(row["kind"], row["layer"], row["head"]): sign * row["difference"] for row in results["ablation"]}


def _permuted(one: np.ndarray, other: np.ndarray, correlate: Any, times: int = 9999) -> float:
    """Two-sided; how often heads dealt out by chance agree as well or as badly."""
    rng = np.random.default_rng(0)
    found = abs(float(correlate(one, other)[0]))
    shuffled = np.stack([rng.permutation(other) for _ in range(times)])
    chance = np.abs(correlate(np.broadcast_to(one, shuffled.shape), shuffled)[0])
    return float((1 + (chance >= found - 1e-12).sum()) / (times + 1))
