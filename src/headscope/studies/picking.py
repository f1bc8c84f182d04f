"""The texts of a corpus that a study uses: the first ones, or some drawn from all documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import count, islice
from typing import NamedTuple

from headscope.core.hashing import digest
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.studies.spec import Pick


class _Candidate(NamedTuple):
    """A text that may be drawn, its number, and what was counted while it was read."""

    number: int
    text: Encoded
    counted: list[Tally]


def picked(
    texts: Iterable[Encoded],
    limit: int | None,
    pick: Pick = "random",
    seed: int = 0,
    *,
    tally: Tally | None = None,
    corpus: Corpus | None = None,
) -> Iterator[Encoded]:
    """The requested texts, in corpus order: the first ones, or some drawn by name from all documents.

    All texts are read to draw some. What is counted meanwhile, in `tally` and in what the `corpus` skipped, is kept
    only for drawn texts: everything that was counted after the text before. If all texts are drawn, nothing is lost.
    """
    if limit is None or pick == "first":
        yield from islice(texts, limit)
        return

    def tallies() -> list[Tally]:  # each iteration over a corpus has a separate tally
        return [*([tally] if tally is not None else []), *([corpus.skipped] if corpus is not None else [])]

    before = tally.take() if tally is not None else Tally()
    total = count()
    candidates = (_Candidate(next(total), text, [each.take() for each in tallies()]) for text in texts)
    drawn = nsmallest(limit, candidates, key=lambda candidate: digest(seed, candidate.text.id))
    drawn.sort(key=lambda candidate: candidate.number)
    whole = len(drawn) == next(total)
    for place, each in enumerate(tallies()):
        after = each.take()  # the last text
        for candidate in drawn:
            each.update(candidate.counted[place])
        if whole:
            each.update(after)
    if tally is not None:
        tally.update(before)
    yield from (candidate.text for candidate in drawn)
