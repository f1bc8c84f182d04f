"""The same heads on several tasks: whether a model misses on one what it misses on another (Michel et al. 2019,
§3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import RunError
from headscope.results.table import Table
from headscope.stats.correlation import pearson, spearman
from headscope.studies.ablation.summary import LOWER, base_score

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.results.results import Results

    Place = tuple[str, int, int]


def task_correlations(studies: Sequence[Results]) -> Table:
    """Correlation of what is lost without each head in two studies, for all pairs of studies and by kind of attention:
    above 0, what is missed is the same.

    `p` is that of a permutation test, which deals out the heads' losses anew.
    """
    tasks = losses(studies)
    kinds = dict.fromkeys(kind for kind, _, _ in next(iter(tasks.values())))
    rows: list[dict[str, Any]] = []
    for (first, lost), (second, also_lost) in combinations(tasks.items(), 2):
        for kind in kinds:
            values, others = (np.array([side[place] for place in lost if place[0] == kind]) for side in (lost, also_lost))
            for method, correlate in (("pearson", pearson), ("spearman", spearman)):
                value, n = correlate(values, others)
                numbers = {"value": float(value), "p": _permuted(values, others, correlate), "n": int(n)}
                rows.append({"first": first, "second": second, "kind": kind, "method": method, **numbers})
    return Table.from_rows(rows)


def losses(studies: Sequence[Results], relative: bool = False) -> dict[str, dict[Place, float]]:
    """By study, how much worse the score is without each head: a loss is above 0, whichever way is up; if
    `relative`, as a share of the score.
    """
    lost = {}
    for name, results in named_studies(studies).items():
        sign = 1 if results.manifest["settings"]["score"] in LOWER else -1
        share = abs(base_score(results)) if relative else 1
        if not share:
            raise RunError(f"the score of {name} is 0, so that nothing can be lost", "Show scores instead of what is lost")
        lost[name] = {_place(row): sign * row["difference"] / share for row in results["ablation"]}
    return lost


def scores(studies: Sequence[Results]) -> dict[str, dict[Place, float]]:
    """By study, the score without each head."""
    return {name: {_place(row): row["score"] for row in results["ablation"]} for name, results in named_studies(studies).items()}


def named_studies(studies: Sequence[Results]) -> dict[str, Results]:
    """Studies of the same heads by name: that of their folder, numbered where two have the same."""
    for results in studies:
        if results.study != "ablation" or "ablation" not in results:
            raise RunError(f"{results.path} has not switched off each head", "Make a study with headscope ablate --parts heads")
    if len({frozenset(map(_place, results["ablation"])) for results in studies}) > 1:
        raise RunError("the studies are of models with different heads", "Compare tasks of one model, or of models fine-tuned from one")
    names = [results.path.name if results.path is not None else "study" for results in studies]
    unique = [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
    return dict(zip(unique, studies, strict=True))


def _place(row: Mapping[str, Any]) -> Place:
    return row["kind"], row["layer"], row["head"]


def _permuted(values: Float64[np.ndarray, "head"], others: Float64[np.ndarray, "head"], correlate: Any, times: int = 9999) -> float:
    """The p of a permutation test, two-sided: how often heads dealt out by chance agree as well or as badly."""
    rng = np.random.default_rng(0)
    correlation = abs(float(correlate(values, others)[0]))
    shuffled = np.stack([rng.permutation(others) for _ in range(times)])
    chance = np.abs(correlate(np.broadcast_to(values, shuffled.shape), shuffled)[0])
    return float((1 + (chance >= correlation - 1e-12).sum()) / (times + 1))
