"""The table `summary` of a study of twins: what was found of the heads of each model, in words."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.results.table import Table

_WORDS = {
    "twin": "mean distance to the twin in {other}",
    "own": "mean distance to the nearest neighbour in {model}",
    "untrained": "mean distance to the nearest head of an untrained {other}",
    "nearer_than_untrained": "share of heads whose twin is nearer than any head of an untrained {other}",
    "mutual": "share of heads that are their twin's twin",
    "depth": "correlation of a head's depth with its twin's",
    "words": "mean share of attention that goes to words",
    "faint": "share of faint heads, which give little to words",
}
_CLOSER = {
    "twin": "share of heads with a twin closer than {epsilon}",
    "own": "share of heads with such a neighbour in {model}",
    "untrained": "share of heads with such a head in an untrained {other}",
}


def summary(table: Table, names: Sequence[str]) -> Table:
    """The rows of `twins_summary` that are of one model, each told in words; `names` are those of the models."""
    rows = []
    for row in table:
        model, other = names if row["side"] == "a" else names[::-1]
        quantity, _, epsilon = row["quantity"].partition("_")
        words = _CLOSER[quantity] if epsilon and quantity in _CLOSER else _WORDS.get(row["quantity"])
        if row["side"] != "both" and words is not None:
            told = {"model": model, "what": words.format(model=model, other=other, epsilon=epsilon)}
            rows.append({**told, **{name: row[name] for name in ("value", "low", "high", "n", "documents")}})
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})
