"""Single heads as parsers: how often a word's favourite is its syntactic governor, relation by relation (Clark et al. §4.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from headscope.core.annotation import NONE, ROOT
from headscope.core.batch import MapBatch
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.errors import MeasureError
from headscope.measures.base import Columns, Level, Measure
from headscope.measures.contests import Contests, Selection
from headscope.measures.words import Words, favourites
from headscope.stats.bootstrap import group_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

ALL = "all"
CLITICS = frozenset({"'s", "’s", "'", "’"})
_REFERENCE_CLITICS = frozenset({"'s", "s'"})
_POSSESSIVES = frozenset({"poss", "nmod:poss", "det:poss"})
_UNLISTED = frozenset({"root", "punct"})  # no word can be picked for a root, and where punctuation hangs is a convention
_PUNCTUATION = frozenset({"PUNCT", "``", "''", ",", ".", ":", "-LRB-", "-RRB-", "HYPH", "NFP"})


@dataclass(frozen=True)
class _Cases:
    """The words of a batch that are scored: once for each relation, and once for "all"."""

    labels: tuple[str, ...]
    label: Int[np.ndarray, "case"]
    group: Int[np.ndarray, "case"]
    predictor: Int[torch.Tensor, "case"]  # the word, among the batch's, whose favourite is asked for
    fallback: Int[torch.Tensor, "case"]  # the word itself
    gold: Int[torch.Tensor, "case"]  # the governor's position in the maps, -1 for the root
    last: Int[torch.Tensor, "case"]  # the position of the sentence's last word
    offsets: Bool[np.ndarray, "case offset"]  # whether a fixed offset is right


@dataclass(frozen=True, kw_only=True)
class Relations(Measure):
    """Accuracy of every head and direction, of fixed offsets, and of the best head of each relation chosen on other documents.

    `punct` and `root` say whether such words count in "all"; `subtypes="fold"` reads `nsubj:pass` as `nsubj`. With
    `possessive="clitic"` the favourite of the clitic ('s) counts for the possessor before it, as BERT's word pieces suggest;
    `"reference"` is that rule with the released code's gaps. `least` is the number of words a relation needs to be listed.
    """

    name: ClassVar[str] = "relations"
    summary: ClassVar[str] = "every head as a dependency classifier: is the word it picks the syntactic head?"
    needs: ClassVar[str | None] = "trees"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"punct": "include", "root": "include", "possessive": "clitic", "selection": "in-sample", "least": 100},
        "reference": {
            "punct": "include",
            "root": "include",
            "possessive": "reference",
            "selection": "in-sample",
            "least": 100,
            "offsets": (-3, -2, -1, 0, 1, 2),
        },
    }

    level: Level = "word"
    offsets: tuple[int, ...] = (-3, -2, -1, 0, 1, 2, 3)
    punct: Literal["include", "exclude"] = "exclude"
    root: Literal["include", "exclude"] = "exclude"
    subtypes: Literal["keep", "fold"] = "keep"
    possessive: Literal["none", "clitic", "reference"] = "none"
    selection: Selection = "crossfit"
    least: int = 20

    def __post_init__(self) -> None:
        if self.level != "word":
            raise MeasureError(f"relations: level is {self.level!r}", "Relations hold between words: leave level out")
        if not self.offsets or max(map(abs, self.offsets)) > 100_000:
            raise MeasureError(f"relations: offsets are {self.offsets!r}", "Give whole numbers that fit in a sentence, such as [-1, 1]")

    @property
    def contests(self) -> Contests:
        """How counts are kept and become tables."""
        return Contests(
            self.name, ("dep-to-head", "head-to-dep"), tuple(f"{o:+d}" for o in self.offsets), self.selection, self.least, _UNLISTED
        )

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """No relation is known before the corpus is read: counts appear as labels do."""
        return self.contests.start(replicates, seed)

    def update(self, state: State, batch: MapBatch) -> None:
        """Score all heads of a site on a batch."""
        if batch.site.kind == "cross":
            return
        words, allowed, cases = batch.once(self, lambda: self._prepare(batch))
        if not len(cases.label):
            return
        chosen = favourites(batch, *words, allowed)
        right = chosen[:, cases.predictor] == cases.gold[:, None]
        if self.possessive == "reference":
            own = chosen[:, cases.fallback]
            right = torch.where(own == cases.last[:, None], own == cases.gold[:, None], right)
        self.contests.add(state, batch, cases.labels, cases.label, cases.group, right, cases.offsets)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and relation; and the best head of each relation beside the best fixed offset."""
        return self.contests.tables(state, layout)

    def _prepare(self, batch: MapBatch) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor, _Cases]:
        device = batch.weights.device
        words = Words.of(batch.queries)
        allowed = words.same_sentence(batch.keys.width)
        places = (torch.from_numpy(words.text).to(device), torch.from_numpy(words.place).to(device))
        return places, torch.from_numpy(allowed).to(device), self._cases(batch, words, device)

    def _cases(self, batch: MapBatch, words: Words, device: torch.device) -> _Cases:
        labels: dict[str, int] = {}
        rows: list[tuple[int, int, int, int, int, int]] = []
        guesses: list[list[bool]] = []
        for text, annotation in enumerate(batch.queries.texts):
            first = int(words.first[text])
            group = group_of(annotation.document)
            starts, ends = _bounds(annotation.sentences)
            for index, (word, head) in enumerate(zip(annotation.words, annotation.heads, strict=True)):
                if head == NONE or word.relation is None:
                    continue
                start, end = starts[index], ends[index]
                speaks = index + self._clitic_follows(annotation.words, index, end)
                guess = [
                    self._guess(index - start, speaks - start, offset, end - start) == max(head - start, ROOT) for offset in self.offsets
                ]
                governor = int(words.place[first + head]) if head >= 0 else -2
                final = int(words.place[first + end - 1])
                for label in self._labels(word.relation, word.upos, word.xpos, head):
                    rows.append((labels.setdefault(label, len(labels)), group, first + speaks, first + index, governor, final))
                    guesses.append(guess)
        columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        predictor, fallback, gold, last = (torch.from_numpy(column).to(device) for column in columns[2:])
        right = np.array(guesses, dtype=bool).reshape(-1, len(self.offsets))
        return _Cases(tuple(labels), columns[0], columns[1], predictor, fallback, gold, last, right)

    def _labels(self, relation: str, upos: str | None, xpos: str | None, head: int) -> Iterator[str]:
        folded = relation.partition(":")[0]
        yield folded if self.subtypes == "fold" else relation
        punctuation = folded == "punct" or upos in _PUNCTUATION or (upos is None and xpos in _PUNCTUATION)
        if (self.punct == "include" or not punctuation) and (self.root == "include" or head != ROOT):
            yield ALL

    def _clitic_follows(self, words: tuple[Any, ...], index: int, end: int) -> int:
        """1 if the next word speaks for this possessor, else 0."""
        if self.possessive == "none" or words[index].relation not in _POSSESSIVES or index + 1 >= end:
            return 0
        return int(words[index + 1].form in (CLITICS if self.possessive == "clitic" else _REFERENCE_CLITICS))

    def _guess(self, index: int, speaks: int, offset: int, size: int) -> int:
        """What a fixed offset picks for a word of a sentence: a word by number from 0, or ROOT; it never leaves the sentence."""
        own = min(max(index + offset, ROOT), size - 1)
        if self.possessive == "reference" and own == size - 1:
            return own
        return min(max(speaks + offset, ROOT), size - 1)


def _bounds(sentences: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """For each word the first index of its sentence in the text, and the one after its last."""
    edges = [i for i in range(len(sentences)) if i == 0 or sentences[i] != sentences[i - 1]] + [len(sentences)]
    starts = [start for start, end in pairwise(edges) for _ in range(start, end)]
    ends = [end for start, end in pairwise(edges) for _ in range(start, end)]
    return starts, ends
