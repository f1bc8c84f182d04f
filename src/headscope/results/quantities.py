"""Quantities with one number per head, by name: for figures, and for an order of heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.results.results import Results

if TYPE_CHECKING:
    from jaxtyping import Float64


def find(results: Results, named: str) -> tuple[str, str]:
    """The table that holds a quantity, and the quantity. If several tables have it, the name must include the measure,
    as in `coreference/all`.
    """
    tables = results.of_heads()
    holding = [name for name, table in tables.items() if named in table["quantity"]]
    if len(holding) == 1:
        return holding[0], named
    if holding:
        raise RunError(
            f"several measures have a quantity {named}: {' and '.join(holding)}", f"Name the measure as well: {holding[-1]}/{named}"
        )
    measure, _, quantity = named.partition("/")
    if measure in tables and quantity in tables[measure]["quantity"]:
        return measure, quantity
    known = sorted({quantity for table in tables.values() for quantity in table["quantity"]})
    raise RunError(f"the run has no quantity {named!r}", choose_from(named, known, "It has"))


def by_head(results: Results, named: str, layout: HeadLayout) -> Float64[np.ndarray, "head"]:
    """A quantity for every head of a model, in the model's order; the better value if it has two directions."""
    table, quantity = find(results, named)
    values: dict[tuple[str, int, int], float] = {}
    for row in results[table].where(quantity=quantity):
        place = row["kind"], row["layer"], row["head"]
        values[place] = max(values.get(place, -np.inf), row["value"])
    heads = [(head.kind, head.layer + 1, head.head + 1) for head in layout.ids()]
    if {*values} != {*heads}:
        raise RunError(f"{named} of that run is for heads that this model does not have", "Name a run of the same model")
    return np.array([values[head] for head in heads])
