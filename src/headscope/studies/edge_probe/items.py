"""The targets of a task as arrays: which tokens of which texts, and which labels (METHODS §8.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Edge
from headscope.encoding.texts import Encoded
from headscope.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


@dataclass(frozen=True)
class Laid:
    """What one text has to label. `tokens` are those of any span; spans [start, end) count these, each span once per
    slot.
    """

    text: int
    tokens: Int[np.ndarray, "token"]
    spans: tuple[Int[np.ndarray, "span 2"], ...]  # of each slot
    of: tuple[Int[np.ndarray, "target"], ...]  # of each slot: the span of each target
    targets: Int[np.ndarray, "target"]  # their numbers


@dataclass(frozen=True)
class Items:
    """All targets of a task in some texts. `edges` are by the words of their text, whose number is in `texts`; `labels`
    has a row each.

    A label that is in `edges` and not in `names` has no column: nothing could have been learned of it.
    """

    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    texts: Int[np.ndarray, "target"]
    labels: Bool[np.ndarray, "target label"]
    slots: int
    sources: Sequence[Encoded]  # all texts

    def __len__(self) -> int:
        return len(self.edges)

    @cached_property
    def laid(self) -> list[Laid]:
        """The texts that have targets, in order."""
        starts = np.flatnonzero(np.diff(self.texts, prepend=-1))
        return [self._lay(range(start, stop)) for start, stop in zip(starts, [*starts[1:], len(self)], strict=True)]

    def _lay(self, numbers: range) -> Laid:
        text = self.sources[int(self.texts[numbers[0]])]
        pieces = _pieces(text)
        spans = [[(pieces[span[0]][0], pieces[span[1] - 1][1]) for span in _spans(self.edges[number])] for number in numbers]
        tokens = np.array(sorted({token for target in spans for span in target for token in range(*span)}), dtype=np.int64)
        place = {int(token): number for number, token in enumerate(tokens)}
        slots = []
        for slot in range(self.slots):
            known = {span: number for number, span in enumerate(dict.fromkeys(target[slot] for target in spans))}
            moved = np.array([(place[start], place[end - 1] + 1) for start, end in known], dtype=np.int64)
            slots.append((moved, np.array([known[target[slot]] for target in spans], dtype=np.int64)))
        return Laid(
            int(self.texts[numbers[0]]),
            tokens,
            tuple(s for s, _ in slots),
            tuple(of for _, of in slots),
            np.arange(numbers.start, numbers.stop),
        )

    def some(self, chosen: Int[np.ndarray, "some"]) -> Items:
        """Some of the targets, by their numbers, which must ascend."""
        return Items(self.names, tuple(self.edges[n] for n in chosen), self.texts[chosen], self.labels[chosen], self.slots, self.sources)

    def of_texts(self, texts: Iterable[int]) -> Items:
        """The targets of some texts."""
        return self.some(np.flatnonzero(np.isin(self.texts, list(texts))))

    def relabelled(self, labels: Sequence[tuple[str, ...]]) -> Items:
        """The same targets with other labels."""
        return Items(self.names, self.edges, self.texts, _columns(labels, self.names), self.slots, self.sources)


def items(task: str, texts: Sequence[Encoded], edges: Sequence[Sequence[Edge]], names: Sequence[str] | None = None) -> Items:
    """The targets of a task. `edges` are those of each text, by its words; `names` the labels, by default all that
    there are, sorted.
    """
    targets = [(number, edge) for number, (_, edges_of_text) in enumerate(zip(texts, edges, strict=True)) for edge in edges_of_text]
    pairs = {edge.second is not None for _, edge in targets}
    if len(pairs) > 1:
        raise RunError(f"some targets of {task} have two spans and some have one", "Give them names of their own")
    labels = [edge.labels for _, edge in targets]
    known = tuple(names) if names is not None else tuple(sorted({label for labels_of_edge in labels for label in labels_of_edge}))
    numbers = np.array([number for number, _ in targets], dtype=np.int64)
    return Items(known, tuple(edge for _, edge in targets), numbers, _columns(labels, known), 1 + (True in pairs), texts)


def _columns(labels: Sequence[tuple[str, ...]], names: Sequence[str]) -> Bool[np.ndarray, "target label"]:
    column: Mapping[str, int] = {name: number for number, name in enumerate(names)}
    columns = np.zeros((len(labels), len(names)), dtype=bool)
    for row, labels_of_target in zip(columns, labels, strict=True):
        row[[column[label] for label in labels_of_target if label in column]] = True
    return columns


def _spans(edge: Edge) -> list[tuple[int, int]]:
    return [edge.first] if edge.second is None else [edge.first, edge.second]


def _pieces(text: Encoded) -> dict[int, tuple[int, int]]:
    """The tokens [start, end) of each word."""
    tokens: dict[int, tuple[int, int]] = {}
    for token, word in enumerate(text.word_of):
        if word >= 0:
            tokens[word] = (tokens.get(word, (token, 0))[0], token + 1)
    return tokens
