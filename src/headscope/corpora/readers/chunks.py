"""Spans in a column with one cell per word: as BIO tags, or as brackets around stars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_TAG = re.compile(r"(?P<place>[BIESLU])-(?P<label>\S.*)")
_CELL = re.compile(r"(?P<opens>(?:\([^()*\s][^()*]*)*)\*(?P<closes>\)*)")
_NOTHING = frozenset({"*", "-", "_", ""})


class TaggedSpan(NamedTuple):
    """The words [start, end) under a label."""

    label: str
    start: int
    end: int


def is_tag(text: str) -> bool:
    """Whether this is `O` or a tag such as `B-person`."""
    return text == OUTSIDE or _TAG.fullmatch(text) is not None


def tagged_chunks(tags: Iterable[str]) -> list[TaggedSpan]:
    """The chunks that tags mark, in IOB1, IOB2 (BIO), IOBES or BILOU; all cells must be tags.

    A chunk begins at B, S and U, and at any other tag that does not continue the one before it.
    """
    found: list[TaggedSpan] = []
    goes_on = False  # whether the last chunk can be extended by one more word
    for position, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        if match is None:
            goes_on = False
            continue
        if goes_on and match["place"] in "IEL" and found[-1].label == match["label"]:
            found[-1] = found[-1]._replace(end=position + 1)
        else:
            found.append(TaggedSpan(match["label"], position, position + 1))
        goes_on = match["place"] in "BI"
    return found


def bracketed_chunks(cells: Sequence[str]) -> list[TaggedSpan] | None:
    """The chunks between `(label*` and `*)`, which may nest, in the order in which they begin; None if the brackets
    do not balance.
    """
    opened: list[TaggedSpan] = []
    found: list[TaggedSpan] = []
    for position, cell in enumerate(cells):
        if cell in _NOTHING:
            continue
        if (match := _CELL.fullmatch(cell)) is None:
            return None
        opened += (TaggedSpan(label, position, position) for label in match["opens"].split("(")[1:])
        for _ in match["closes"]:
            if not opened:
                return None
            found.append(opened.pop()._replace(end=position + 1))
    return None if opened else sorted(found, key=lambda chunk: (chunk.start, -chunk.end))
