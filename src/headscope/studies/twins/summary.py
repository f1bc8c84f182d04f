"""The table `summary` of a study of twins: what was found of the heads of both models, in words."""

from __future__ import annotations

import math
from typing import Any

from headscope.results.table import Table
from headscope.studies.twins.heads import LETTERS

_WORDS = {
    "twin": "mean distance to the twin in the other model",
    "own": "mean distance to the nearest neighbour in the own model",
    "untrained": "mean distance to the nearest head of the untrained other",
    "nearer_than_untrained": "heads whose twin is nearer than any head of the untrained other",
    "mutual": "heads that are their twin's twin",
    "depth": "correlation of a head's depth with its twin's",
    "words": "mean share of attention that goes to words",
    "faint": "faint heads, which give little of their attention to words",
}
_CLOSER = {
    "twin": "heads with a twin closer than {}",
    "own": "heads with a neighbour in the own model closer than {}",
    "untrained": "heads with a head of the untrained other closer than {}",
}


def summary(table: Table) -> Table:
    """One row per quantity of `twins_summary` that the heads of a model have, with the numbers of `a` and of `b`; heads are shares."""
    rows: dict[str, dict[str, Any]] = {}
    for row in table:
        if row["side"] in LETTERS and (what := _what(row["quantity"])) is not None:
            numbers = {row["side"]: row["value"], f"{row['side']}_low": row["low"], f"{row['side']}_high": row["high"]}
            rows.setdefault(what, {"what": what, "n": row["n"], "documents": row["documents"]}).update(numbers)
    columns = ("what", *(letter + bound for letter in LETTERS for bound in ("", "_low", "_high")), "n", "documents")
    return Table.of({name: [row.get(name, math.nan) for row in rows.values()] for name in columns})


def _what(quantity: str) -> str | None:
    """A quantity in words; None for differences of others."""
    name, _, epsilon = quantity.partition("_")
    return _CLOSER[name].format(epsilon) if epsilon and name in _CLOSER else _WORDS.get(quantity)
