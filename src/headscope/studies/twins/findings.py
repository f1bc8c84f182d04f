"""Whether heads have twins in another model, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headscope.results.table import spelled
from headscope.studies.twins.heads import LETTERS, Twins


def sentences(found: Twins) -> list[str]:
    """What was compared; how far heads are from their twins, beside their own model's and an untrained one's; who has one; where."""
    rows = {(row["side"], row["quantity"]): row for row in found.table("twins_summary")}
    said = [opening(found)]
    for letter in LETTERS:
        said += [_distance(found, letter, rows), _close(found, letter, rows)]
    return [*said, _mutual(found), *_depth(found, rows), *_faint(found)]


def opening(found: Twins) -> str:
    """What was compared."""
    kinds = found.a.kind if found.a.kind == found.b.kind else f"{found.a.kind} and {found.b.kind}"
    of = "1 document" if found.documents == 1 else f"{found.documents:,} documents"
    return (
        f"{len(found.a.ids)} heads of {found.a.name} and {len(found.b.ids)} of {found.b.name}, {kinds} attention between {found.level}s, "
        f"{found.n:,} rows of {found.texts:,} text{'s' if found.texts > 1 else ''} of {of}; Jensen-Shannon divergences in nats"
    )


def _distance(found: Twins, letter: str, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    heads, other = (found.a, found.b) if letter == "a" else (found.b, found.a)
    said = f"A head of {heads.name} is {spelled(rows[letter, 'twin'])} from its twin in {other.name}, on average"
    more, nearer = [], ""
    if (letter, "own") in rows:
        more.append(f"{spelled(rows[letter, 'own'])} from its nearest neighbour in {heads.name}")
    if (letter, "untrained") in rows:
        more.append(f"{spelled(rows[letter, 'untrained'])} from the nearest head of an untrained {other.name}")
        nearer = f" For {percent(rows[letter, 'nearer_than_untrained'])} of its heads the twin is nearer than that."
    return f"{said}{', ' if len(more) == 2 else ' and ' if more else ''}{' and '.join(more)}.{nearer}"


def _close(found: Twins, letter: str, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    heads, other = (found.a, found.b) if letter == "a" else (found.b, found.a)
    told = []
    for epsilon in found.epsilons:
        beside = [
            f"{name} {percent(rows[key])}"
            for name, key in ((heads.name, (letter, f"own_{epsilon:g}")), (f"untrained {other.name}", (letter, f"untrained_{epsilon:g}")))
            if key in rows
        ]
        within = percent(rows[letter, f"twin_{epsilon:g}"])
        told.append(f"{within} closer than {epsilon:g}" + (f" ({', '.join(beside)})" if beside else ""))
    return f"Heads of {heads.name} with a twin in {other.name}: {', '.join(told)}." if told else ""


def _mutual(found: Twins) -> str:
    pairs = found.mutual()
    told = ", ".join(f"{a} and {b} ({distance:.3f})" for a, b, distance in pairs[:5])
    closest = f"; the closest are {told}" if len(pairs) > 1 else f": {told}" if pairs else ""
    return f"{len(pairs)} pair{'s are' if len(pairs) != 1 else ' is'} each other's twins{closest}."


def _depth(found: Twins, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[str]:
    told = [
        f"{spelled(rows[letter, 'depth'])} for heads of {(found.a if letter == 'a' else found.b).name}"
        for letter in LETTERS
        if (letter, "depth") in rows
    ]
    return [f"Depth of a head and depth of its twin correlate: {' and '.join(told)}."] if told else []


def _faint(found: Twins) -> list[str]:
    told = []
    for letter in LETTERS:
        heads, _, each = found.of(letter)
        if faint := int((each.words[0] < found.least).sum()):
            told.append(f"{faint} of {heads.name}")
    if not told:
        return []
    return [f"Faint: {' and '.join(told)} give less than {found.least:.0%} of their attention to words: little of them is compared."]


def percent(row: Mapping[str, Any]) -> str:
    """A share of heads, as in `42 % [40 44]`."""
    bounds = "" if math.isnan(row["low"]) else f" [{100 * row['low']:.0f} {100 * row['high']:.0f}]"
    return f"{100 * row['value']:.0f} %{bounds}"
