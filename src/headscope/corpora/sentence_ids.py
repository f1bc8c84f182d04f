"""Documents by the ids of their sentences, for treebanks without `# newdoc`: `wsj_0001-1` and `wsj_0001-2` are of `wsj_0001`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from headscope.corpora.blocks import LineBlock

AHEAD = 500  # sentences that are looked at before the ids of a file are taken to name documents
_ID = re.compile(r"(.+)[-.]s?([0-9]{1,9})")
_SPLIT = re.compile(r"(?:.*[^a-z])?(?:train|dev|devel|development|test|valid|validation|sent|sentence|s)", re.IGNORECASE | re.DOTALL)


@dataclass(eq=False)
class Group:
    """Sentences one after the other whose ids name the same document. Two groups are never equal."""

    name: str
    last: int = -1  # number of a sentence

    def takes(self, name: str, number: int) -> bool:
        """Whether a sentence goes on with the document: within one, sentences are numbered upwards."""
        if name != self.name or number <= self.last:
            return False
        self.last = number
        return True


def grouped(blocks: Iterable[LineBlock]) -> Iterator[tuple[LineBlock, Group | None]]:
    """The blocks of a file, each with the document that its id names; None for all if the first ids do not agree on what they name."""
    blocks = iter(blocks)
    first = list(islice(blocks, AHEAD))
    if not _consistent(first):
        yield from ((block, None) for block in chain(first, blocks))
        return
    yield from _groups(chain(first, blocks))


def _consistent(blocks: list[LineBlock]) -> bool:
    """Whether ids name documents: all have the form, none is a part of a treebank, and most neighbours share a name that does not recur."""
    if any(comment.key in ("newdoc", "newdoc id") for block in blocks for comment in block.comments):
        return False
    groups = [group for block, group in _groups(blocks) if block.rows]
    names = [group.name for group in dict.fromkeys(groups) if group is not None]
    if None in groups or any(_SPLIT.fullmatch(name) for name in names):
        return False
    return len(set(names)) == len(names) > 1 and 2 * len(names) <= len(groups)


def _groups(blocks: Iterable[LineBlock]) -> Iterator[tuple[LineBlock, Group | None]]:
    group: Group | None = None
    for block in blocks:
        if block.rows:
            match = _ID.fullmatch(block.comment("sent_id") or "")
            if match is None:
                group = None
            elif group is None or not group.takes(match[1], int(match[2])):
                group = Group(match[1], int(match[2]))
        yield block, group
