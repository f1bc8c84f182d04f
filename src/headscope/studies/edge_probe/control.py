"""A control task for every task (Hewitt and Liang 2019, https://aclanthology.org/D19-1275): labels drawn by lot for each word type.

Such labels say nothing about language. A probe that learns them too has memorised words, and what it scores on the true labels
beyond that, its selectivity, is what can be laid to the states it reads.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from headscope.core.document import Edge, Word


class Control:
    """Labels by lot, with the frequencies that label sets have in the edges given: those that a probe is trained on.

    The type of an edge is the last word of its first span, without regard to case, which not every model sees. Its labels depend on
    the type, the task and the seed, and on nothing else: not on the order of edges, nor on the words around.
    """

    def __init__(self, edges: Iterable[Edge], seed: int = 0) -> None:
        counts = Counter(edge.labels for edge in edges)
        self._labels = sorted(counts)
        self._ends = list(accumulate(counts[labels] for labels in self._labels))
        self._seed = seed

    def labels(self, task: str, form: str) -> tuple[str, ...]:
        """The labels of a word type; none where there were no edges to draw from."""
        if not self._labels:
            return ()
        name = f"{self._seed}\n{task}\n{form.casefold()}"
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        return self._labels[bisect_right(self._ends, number % self._ends[-1])]

    def relabelled(self, edges: Iterable[Edge], words: Sequence[Word]) -> list[Edge]:
        """The same spans with labels by lot; `words` are those that the edges count."""
        return [replace(edge, labels=self.labels(edge.task, words[edge.first[1] - 1].form)) for edge in edges]
