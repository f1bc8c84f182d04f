"""Findings of a study of attention probes, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from headscope.core.heads import HeadId
from headscope.results.table import Table

LISTED = 5
_WAYS = {"dep-to-head": "from the word to its governor", "head-to-dep": "from the governor to the word"}


def sentences(tables: Mapping[str, Table]) -> list[str]:
    """How many governors are found, also without attention or without training, and by which heads, as sentences."""
    rows = {row["probe"]: row for row in tables["summary"]}
    differences: dict[tuple[str, str], Mapping[str, Any]] = {}
    if "attention_probe_differences" in tables:
        differences = {(row["probe"], row["than"]): row for row in tables["attention_probe_differences"]}
    return [*_found(rows), *_beyond(rows, differences), *_heads(tables)]


def _found(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if "attention" in rows:
        beside = f"; always taking the next word finds {_percent(rows['right-branching'])}" if "right-branching" in rows else ""
        found = f"A weighted sum of all heads finds the governor of {_percent(rows['attention'])} of the words"
        yield f"{found} ({_bounds(rows['attention'])}Clark et al. 2019: 61 %){beside}."
    if "attention-words" in rows:
        beside = (
            f"; the words and their distances without attention find {_percent(rows['words-distances'])}"
            if "words-distances" in rows
            else ""
        )
        found = f"With weights that depend on the two words, it finds {_percent(rows['attention-words'])}"
        yield f"{found} ({_bounds(rows['attention-words'])}Clark et al. 2019: 77 %){beside}."


def _beyond(rows: Mapping[str, Mapping[str, Any]], differences: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[str]:
    control = differences.get(("attention-words", "random-attention-words")) or differences.get(("attention", "random-attention"))
    if control is not None:
        yield (
            f"The same probe on a model with random weights finds {_percent(rows[control['than']])}: training, not the architecture, "
            f"accounts for {_points(control)}."
        )
    words = differences.get(("attention-words", "words-distances"))
    if words is not None:
        verdict = (
            "attention holds syntax that words and distances do not"
            if words["low"] > 0
            else "it is not clear whether attention adds anything"
        )
        yield f"Attention adds {_points(words)} to words and distances: {verdict}."


def _heads(tables: Mapping[str, Table]) -> Iterator[str]:
    if "attention_probe_heads" not in tables:
        return
    for probe in ("attention", "attention-words"):
        heads: dict[str, set[str]] = {}
        for row in tables["attention_probe_heads"].where(probe=probe).sort("rank"):
            if len(heads) < LISTED:
                heads.setdefault(str(HeadId.of_row(row, bare=True)), set()).add(row["direction"])  # all of one kind
        if heads:
            ways = set().union(*heads.values())
            how = _WAYS[ways.pop()] if len(ways) == 1 else "from the word to its governor or from the governor to the word"
            yield f"The heads that pull most towards the governor (probe {probe}) are {', '.join(heads)}, with their attention {how}."
            return


def _percent(row: Mapping[str, Any]) -> str:
    return f"{100 * row['uas']:.1f} %"


def _bounds(row: Mapping[str, Any]) -> str:
    low, high = row.get("low", math.nan), row.get("high", math.nan)
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f}; " if low == low else ""


def _points(row: Mapping[str, Any]) -> str:
    interval = f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if row["low"] == row["low"] else ""
    return f"{100 * row['difference']:.1f} points{interval}"
