"""Tables of a study of in-context learning: losses, how they change without heads, and losses by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.resampled import mean
from headscope.studies.in_context.choice import HeadSets
from headscope.studies.in_context.places import LOSSES, ContextPlaces

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.studies.in_context.spec import InContextSpec

# Late loss minus early loss, as in Olsson et al.; the loss of the first copy minus that of the second.
QUANTITIES = ("icl_score", "copy_drop", *LOSSES)
NONE, STRONGEST, RANDOM = "none", "strongest", "random"


def quantities_of(means: Float64[np.ndarray, "text system loss"]) -> Float64[np.ndarray, "text system quantity"]:
    """All quantities of each text under each set of gates, from its mean losses."""
    loss = dict(zip(LOSSES, np.moveaxis(means, -1, 0), strict=True))
    derived = [loss["late"] - loss["early"], loss["first_copy"] - loss["second_copy"]]
    return np.stack([*derived, *loss.values()], -1)


class _Resampling:
    """Means over texts with intervals by resampling documents, as columns of rows."""

    def __init__(self, documents: Sequence[str], spec: InContextSpec) -> None:
        self._documents, self._spec = documents, spec

    def rows(self, values: Float64[np.ndarray, "text column"], name: str, with_p: bool = False) -> list[dict[str, Any]]:
        """One dictionary for each column of values: the mean under `name`, its bounds, n and documents."""
        found = mean(values, self._documents, self._spec.replicates, self._spec.seed)
        columns = {name: found.value, "low": found.low, "high": found.high}
        columns |= {"p": found.p} if with_p else {}
        columns |= {"n": found.n, "documents": found.documents}
        return [{key: column[place].item() for key, column in columns.items()} for place in range(values.shape[1])]


def all_tables(kept: StateColumns, heads: Table, sets: HeadSets, places: ContextPlaces, spec: InContextSpec) -> dict[str, Table]:
    """`summary` (losses), `in_context_effects`, `in_context_draws`, `in_context_heads` and `in_context_loss`."""
    resampling = _Resampling(kept.words("document"), spec)
    values = quantities_of(kept.numbers("means"))
    present = [place for place in range(len(QUANTITIES)) if np.isfinite(values[:, 0, place]).any()]
    whole, parts = values[:, 0], values[:, 1:].reshape(len(values), len(spec.heads), 1 + spec.draws, -1)
    conditions = [(NONE, 0, whole)]
    for place, number in enumerate(spec.heads):
        conditions += [(STRONGEST, number, parts[:, place, 0]), (RANDOM, number, parts[:, place, 1:].mean(1))]
    summary = [
        {"quantity": QUANTITIES[quantity], "off": off, "heads": number, **resampling.rows(own[:, [quantity]], "value")[0]}
        for quantity in present
        for off, number, own in conditions
    ]
    effects, draws = [], []
    for quantity in present:
        name = QUANTITIES[quantity]
        for place, number in enumerate(spec.heads):
            strongest, each = parts[:, place, 0, quantity], parts[:, place, 1:, quantity]
            base = whole[:, quantity]
            random = each.mean(1)
            differences = {STRONGEST: strongest - base, RANDOM: random - base, "strongest minus random": strongest - random}
            rows = resampling.rows(np.stack(list(differences.values()), 1), "difference", True)
            effects += [{"quantity": name, "heads": number, "effect": effect, **row} for effect, row in zip(differences, rows, strict=True)]
            rows = resampling.rows(each - base[:, None], "difference", True)
            draws += [
                {"quantity": name, "heads": number, "draw": draw + 1, "off": sets.names(sets.random[number][draw]), **row}
                for draw, row in enumerate(rows)
            ]
    return {
        "summary": Table.from_rows(summary),
        "in_context_effects": Table.from_rows(effects),
        "in_context_draws": Table.from_rows(draws),
        "in_context_heads": _ranked(heads),
        "in_context_loss": _curves(kept.numbers("curves"), resampling, places, spec),
    }


def _ranked(heads: Table) -> Table:
    """The heads, sorted by the score by which they were chosen."""
    rows = sorted(heads, key=lambda row: -row["value"] if row["value"] == row["value"] else np.inf)
    return Table.from_rows([{"rank": rank, **row} for rank, row in enumerate(rows, 1)])


def _curves(
    curves: Float64[np.ndarray, "text condition bin"], resampling: _Resampling, places: ContextPlaces, spec: InContextSpec
) -> Table:
    """The loss in each bin of positions; the first and the last token of a bin are counted from 0."""
    bin_of = places.bin_of()
    firsts, lasts = (1 + np.searchsorted(bin_of, np.arange(places.bins), side) for side in ("left", "right"))
    conditions = [(NONE, 0), *((off, number) for number in spec.heads for off in (STRONGEST, RANDOM))]
    rows = []
    for place, (off, number) in enumerate(conditions):
        for first, after, row in zip(firsts.tolist(), lasts.tolist(), resampling.rows(curves[:, place], "loss"), strict=True):
            rows.append({"off": off, "heads": number, "first": first, "last": after - 1, **row})
    return Table.from_rows(rows)
