"""Slices: the documents of a corpus that have one value of a column, such as a genre.

A column is a name in the metadata of documents, or one of those that any corpus has: `label`, `subset`, `speaker` and
`length`. A document belongs to one slice, so that slices share no document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document
from headscope.core.numbering import Numbering

if TYPE_CHECKING:
    from jaxtyping import Int64

NO_VALUE = "(none)"  # the slice of documents that have no value
MOST = 32  # slices of a run: each has separate states and tables
LENGTHS = (16, 64, 256, 1024)  # words: the upper bounds of the slices by length
SLICES: Numbering[str] = Numbering(NO_VALUE)


def slice_of(document: Document, column: str) -> str:
    """The slice of a document, from its value in a column."""
    value = document.metadata.get(column)
    if value is None and column in _ANY:
        value = _ANY[column](document)
    return NO_VALUE if value is None or value == "" else str(value)


def columns_of(document: Document) -> list[str]:
    """The columns in which a document has a value."""
    return [column for column in dict.fromkeys([*document.metadata, *_ANY]) if slice_of(document, column) != NO_VALUE]


def numbers_of(slices: Iterable[str]) -> Int64[np.ndarray, "text"]:
    """The numbers of slices in SLICES."""
    names = list(slices)
    numbers = {name: SLICES.number(name) for name in dict.fromkeys(names)}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def in_order(slices: Iterable[str]) -> list[str]:
    """Slices in natural order: numbers in names by their size, and documents without a value last."""
    return sorted(
        slices, key=lambda name: (name == NO_VALUE, [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)])
    )


def _speaker(document: Document) -> str | None:
    """The speaker of all sentences, if there is only one."""
    speakers = {sentence.speaker for sentence in document.sentences}
    return speakers.pop() if len(speakers) == 1 else None


def _length(document: Document) -> str:
    """The range of lengths that a document belongs to, as in `17-64 words`."""
    words = sum(len(sentence) for sentence in document.sentences)
    above = [bound for bound in LENGTHS if words > bound]
    below = [bound for bound in LENGTHS if words <= bound]
    first = above[-1] + 1 if above else 1
    return f"{first}-{below[0]} words" if below else f"{first} words or more"


_ANY = {"label": lambda document: document.label, "subset": lambda document: document.subset, "speaker": _speaker, "length": _length}
