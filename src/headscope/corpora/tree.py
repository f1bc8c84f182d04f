"""Faults of a dependency tree given as heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class TreeFault(NamedTuple):
    """The fault of a tree at the word in position `word` (from 1)."""

    word: int
    kind: str
    problem: str


def tree_faults(heads: Sequence[int | None]) -> Iterator[TreeFault]:
    """The faults of heads: heads outside the sentence, and one fault per cycle. Missing heads and several roots are not
    faults.
    """
    size = len(heads)
    for word, head in enumerate(heads, start=1):
        if head is not None and head > size:
            yield TreeFault(word, "head outside the sentence", f"head {head} in a sentence of {size} words")
    state = [0] * (size + 1)  # 0: not visited; otherwise the word whose walk came through
    for start in range(1, size + 1):
        word = start
        while not state[word]:
            state[word] = start
            head = heads[word - 1]
            if not head or head > size:
                break
            if state[head] == start:
                yield TreeFault(head, "cycle", f"{_cycle(heads, head)}: the heads form a cycle")
                break
            word = head


class RootedTree(NamedTuple):
    """Heads with one root; `moved` are the words, counted from 1, that were attached to the root to form a single
    tree.
    """

    heads: list[int]
    moved: tuple[int, ...]


def single_root(given: Sequence[int]) -> RootedTree:
    """Heads as a tree with one root: other roots, and a word of each cycle, become its dependents."""
    heads = [head if head != place else 0 for place, head in enumerate(given, 1)]
    heads = [head if 0 <= head <= len(heads) else 0 for head in heads]
    for fault in list(tree_faults(heads)):
        heads[fault.word - 1] = 0
    top = heads.index(0) + 1
    moved = tuple(place for place, head in enumerate(heads, 1) if head == 0 and place != top)
    return RootedTree([top if place in moved else head for place, head in enumerate(heads, 1)], moved)


def roots(heads: Sequence[int | None]) -> int:
    """The number of words attached to the root."""
    return list(heads).count(0)


def _cycle(heads: Sequence[int | None], start: int) -> str:
    path = [start]
    while (head := heads[path[-1] - 1]) and head != start and len(path) < 6:
        path.append(head)
    return "word " + " -> ".join(map(str, [*path, start if head == start else "..."]))
