"""Fast reading of valid CoNLL-U sentences, column by column instead of row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import NamedTuple

from headscope.core.document import Word
from headscope.corpora.files import Line
from headscope.corpora.readers.draft import Anchor
from headscope.corpora.tree import tree_faults

COLUMNS = 10
_WIDTH = COLUMNS + 1  # with a mark after each row
_LONGEST = 512  # words of a sentence
_IDS = [str(number) for number in range(1, _LONGEST + 1)]
_HEADS = {"_": None, "0": 0, **{id: int(id) for id in _IDS}}
_EMPTY = {"_": None, "": None}
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_NO_SPACE = "SpaceAfter=No"


class Columns(NamedTuple):
    """Words, the lines they came from, coreference brackets, and the lines of multi-word tokens."""

    words: list[Word]
    lines: list[int]
    anchors: list[Anchor]
    ranges: list[int]


def parse_columns(rows: Sequence[Line], universal: bool) -> Columns | None:
    """The words of a sentence, the same as from reading row by row; None for an invalid sentence, or one with empty
    nodes or words written `_`.
    """
    numbers, texts, invalid = zip(*rows, strict=True)
    joined = "\t\n\t".join(texts)  # no line contains a line end
    cells = joined.split("\t")
    size = len(rows)
    if any(invalid) or len(cells) != size * _WIDTH - 1 or cells[COLUMNS::_WIDTH] != ["\n"] * (size - 1):
        return None
    ids, forms, lemmas, upos, xpos, _, heads, relations, _, misc = (cells[place::_WIDTH] for place in range(COLUMNS))
    lines: Sequence[int] = numbers
    ranges: list[int] = []
    last_words: list[tuple[int, int, bool]] = []
    if ids != _IDS[:size]:
        found = _ranges(ids, misc)
        if found is None:
            return None
        last_words = found
        ranges = [line for line, id in zip(lines, ids, strict=True) if "-" in id]
        kept = ["-" not in id for id in ids]
        lines = list(compress(lines, kept))
        forms, lemmas, upos, xpos, heads, relations, misc = (
            list(compress(column, kept)) for column in (forms, lemmas, upos, xpos, heads, relations, misc)
        )
        size = len(lines)
    if "_" in forms or not all(map(str.strip, forms)) or not _HEADS.keys() >= set(heads):
        return None
    governors = list(map(_HEADS.__getitem__, heads))
    if next(tree_faults(governors), None) is not None:
        return None
    spaces = [_space_after(text) for text in misc] if _NO_SPACE in joined else [True] * size
    for first, last, space in last_words:
        spaces[first - 1 : last] = [False] * (last - first) + [space]
    coarse, fine = _given(upos), _given(xpos)
    tags = (coarse, fine) if universal else (repeat(None), [own or other for own, other in zip(fine, coarse, strict=True)])
    words = list(map(Word, forms, _given(lemmas), *tags, governors, _given(relations), spaces))
    anchors = [
        Anchor(place, place + 1, entity, line)
        for place, (line, text) in enumerate(zip(lines, misc, strict=True) if "Entity=" in joined else ())
        if (entity := entity_of(text)) is not None
    ]
    return Columns(words, list(lines), anchors, ranges)


def _ranges(ids: Sequence[str], misc: Sequence[str]) -> list[tuple[int, int, bool]] | None:
    """The first and the last word of each multi-word token, and whether a space follows it; None if anything is wrong
    with the ids.
    """
    found: list[tuple[int, int, bool]] = []
    words = last = 0
    for id, text in zip(ids, misc, strict=True):
        if (match := _RANGE.fullmatch(id)) is None:
            words += 1
            if words > _LONGEST or id != _IDS[words - 1]:
                return None
            continue
        first, end = int(match[1]), int(match[2])
        if first != words + 1 or end < first or words < last:
            return None
        last = end
        found.append((first, end, _space_after(text)))
    return found if words >= last else None


def _given(column: Sequence[str]) -> Iterable[str | None]:
    """The values of a column, None where there is none."""
    return map(_EMPTY.get, column, column) if "_" in column or "" in column else column


def _space_after(misc: str) -> bool:
    return _NO_SPACE not in misc or _NO_SPACE not in misc.split("|")


def entity_of(misc: str) -> str | None:
    """The coreference brackets in the last column."""
    if "Entity=" not in misc:
        return None
    return next((item.removeprefix("Entity=") for item in misc.split("|") if item.startswith("Entity=")), None)
