"""Checks of the columns that divide a corpus into slices."""

from __future__ import annotations

from headscope.core.slices import MOST, NO_VALUE, columns_of, slice_of
from headscope.core.suggest import choose_from
from headscope.corpora import Corpus
from headscope.errors import RunError

NAMED = 24  # columns that an error names


def require_column(corpus: Corpus, by: str, name: str) -> None:
    """Refuse a column in which no document has a value. The corpus is read until a document has one."""
    known: dict[str, None] = {}
    for document in corpus:
        if slice_of(document, by) != NO_VALUE:
            return
        known |= dict.fromkeys(columns_of(document))
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    raise RunError(f"no document of {name} has a value in the column {by!r}", choose_from(by, [*known][:NAMED], "The columns are") + more)


def too_many(corpus: Corpus, by: str) -> RunError:
    """The error for a column with too many values."""
    values = len({slice_of(document, by) for document in corpus})
    return RunError(
        f"the column {by!r} has {values:,} different values, and a run has at most {MOST} slices",
        "Use --by with a column of fewer values, or merge values in the corpus",
    )
