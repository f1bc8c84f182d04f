"""Single heads as parsers: how often a word's favourite is its syntactic governor, relation by relation (Clark et
al. §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.annotation import NONE, ROOT
from headscope.core.batch import CLS, SEP, MapBatch
from headscope.core.document import Word
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.errors import MeasureError
from headscope.measures.base import Champion, Columns, Level, Measure
from headscope.measures.cases import Cases
from headscope.measures.contests import ALL, CONTROL, Contests, Selection, control_group, own_label
from headscope.measures.words import SentenceIndex, WordIndex
from headscope.stats.bootstrap import groups_of, key_of
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    import torch
    from jaxtyping import Int

CLITICS = frozenset({"'s", "’s", "'", "’"})
_REFERENCE_CLITICS = frozenset({"'s", "s'"})
_POSSESSIVES = frozenset({"poss", "nmod:poss", "det:poss"})
_UNLISTED = frozenset({"root", "punct"})  # no word can be picked for a root, and where punctuation hangs is a convention
_PUNCTUATION = frozenset({"PUNCT", "``", "''", ",", ".", ":", "-LRB-", "-RRB-", "HYPH", "NFP"})


@dataclass(frozen=True)
class _Scored:
    """The words of a batch that are scored: once for their relation, and once for "all"."""

    cases: Cases
    predictor: Int[torch.Tensor, "case"]  # the word, among the batch's, whose favourite is asked for
    fallback: Int[torch.Tensor, "case"]  # the word itself
    gold: Int[torch.Tensor, "case"]  # the governor's position in the maps, -2 for the root
    last: Int[torch.Tensor, "case"]  # the position of the sentence's last word


@dataclass(frozen=True, kw_only=True)
class Relations(Measure):
    """Accuracy of every head and direction, of fixed offsets, and of the best head of each relation chosen on other
    documents.

    `punct` and `root` say whether such words count in "all"; `subtypes="fold"` reads `nsubj:pass` as `nsubj`. With
    `possessive="clitic"` the favourite of the clitic ('s) counts for the possessor before it, as BERT's word pieces
    suggest; `"reference"` is that rule with the released code's gaps. `least` is the number of words a relation
    needs to be listed. `specials="candidates"` lets a word pick [CLS] and [SEP], too, which is never right (Clark et
    al., footnote 3). `control="permuted"` scores the heads against the trees of other sentences of the same length,
    too: what chance gives.
    """

    name: ClassVar[str] = "relations"
    summary: ClassVar[str] = "every head as a dependency classifier: is the word it picks the syntactic head?"
    reads: ClassVar[str | None] = "trees"
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
    specials: Literal["ignore", "candidates"] = "ignore"
    selection: Selection = "crossfit"
    folds: int = 2
    least: int = 20
    control: Literal["permuted", "none"] = "permuted"

    def __post_init__(self) -> None:
        if self.level != "word":
            raise MeasureError(f"relations: level is {self.level!r}", "Relations hold between words: leave level out")
        if not self.offsets or max(map(abs, self.offsets)) > 100_000:
            raise MeasureError(f"relations: offsets are {self.offsets!r}", "Give whole numbers that fit in a sentence, such as [-1, 1]")
        _ = self.contests  # which refuses folds that cannot be

    @property
    def contests(self) -> Contests:
        """How counts are kept and become tables."""
        return Contests(
            self.name,
            ("dep-to-head", "head-to-dep"),
            tuple(f"{o:+d}" for o in self.offsets),
            self.selection,
            self.least,
            _UNLISTED,
            folds=self.folds,
        )

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """No relation is known before the corpus is read: counts appear as labels do."""
        return self.contests.start(replicates, seed)

    def update(self, state: State, batch: MapBatch) -> None:
        """Score all heads of a site on a batch."""
        import torch

        if batch.site.kind == "cross":
            return
        (text, place), sentences, scored = batch.once(self, lambda: self._prepare(batch))
        if not len(scored.cases):
            return
        chosen = sentences.favourites(batch.weights)[:, text, :, place].transpose(0, 1)  # [direction, word, head]
        right = chosen[:, scored.predictor] == scored.gold[:, None]
        if self.possessive == "reference":
            own = chosen[:, scored.fallback]
            right = torch.where(own == scored.last[:, None], own == scored.gold[:, None], right)
        self.contests.add(state, batch, scored.cases, right)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and relation; and the best head of each relation beside the best fixed offset."""
        return self.contests.tables(state, layout)

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """Every relation and direction."""
        return self.contests.resampled(state, layout, least)

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The best head of each relation."""
        return self.contests.champions(state, layout)

    def _prepare(self, batch: MapBatch) -> tuple[tuple[torch.Tensor, torch.Tensor], SentenceIndex, _Scored]:
        import torch

        device = batch.weights.device
        words = WordIndex.of(batch.queries)
        places = (torch.from_numpy(words.text).to(device), torch.from_numpy(words.place).to(device))
        further = batch.keys.chosen("cls and sep", lambda form, role: role in (CLS, SEP)) if self.specials == "candidates" else None
        return places, SentenceIndex(words, batch.keys.width, device, further), self._scored(batch, words, device)

    def _scored(self, batch: MapBatch, words: WordIndex, device: torch.device) -> _Scored:
        import torch

        texts = batch.queries.texts
        labels: dict[str, int] = {}
        given = [word for text in texts for word in text.words]
        head = np.array([head for text in texts for head in text.heads], dtype=np.int64)
        document = np.repeat(np.array([key_of(text.document) for text in texts], dtype=np.int64), [len(text.words) for text in texts])
        group = groups_of(document)
        parts = [(*self._part(words, given, head, labels, self._clitic_follows(given, words.bounds()[1]), ""), group)]
        for draw in range(max((len(text.others) for text in texts), default=0) if self.control == "permuted" else 0):
            others = [word for text in texts for word in (text.others[draw] if text.others else (None,) * len(text.words))]
            heads = [head for text in texts for head in (text.other_heads[draw] if text.others else (NONE,) * len(text.words))]
            control = self._part(words, others, np.array(heads, dtype=np.int64), labels, np.zeros(len(words), dtype=np.int64), CONTROL)
            parts.append((*control, control_group(draw, group)))
        groups = np.concatenate([own[part[0]] for *part, own in parts])
        word, label, speaks, gold, offsets = (np.concatenate(columns) for columns in zip(*(part[:-1] for part in parts), strict=True))
        cases = Cases.of(tuple(labels), label, document[word], groups, offsets, device)
        last = words.place[words.bounds()[1] - 1][word]
        return _Scored(cases, *(torch.from_numpy(column).to(device) for column in (speaks, word, gold, last)))

    def _part(
        self,
        words: WordIndex,
        given: Sequence[Word | None],
        head: Int[np.ndarray, "n"],
        labels: dict[str, int],
        clitic: Int[np.ndarray, "n"],
        prefix: str,
    ) -> tuple[Int[np.ndarray, "case"], ...]:
        """The cases that one annotation gives: the word, its label, who speaks for it, its governor, and which
        offsets are right.
        """
        # There are few different annotations, and very many words.
        tags = [None if word is None else (word.relation, word.upos, word.xpos) for word in given]
        said = {tag: self._tag(word, labels, prefix) for tag, word in dict(zip(tags, given, strict=True)).items()}
        number_of, counts_in_all = ({tag: pair[side] for tag, pair in said.items()} for side in (0, 1))
        relation = np.fromiter(map(number_of.__getitem__, tags), dtype=np.int64, count=len(tags))
        in_all = np.fromiter(map(counts_in_all.__getitem__, tags), dtype=bool, count=len(tags))
        in_all &= (head != ROOT) | (self.root == "include")
        number = np.arange(len(words))
        start, end = words.bounds()
        governor = np.where(head >= 0, head + words.first[words.text], head)  # among the batch's words
        speaks = number + clitic
        offsets = self._guesses(number - start, speaks - start, end - start) == np.where(head >= 0, governor - start, ROOT)[:, None]
        gold = np.where(head >= 0, words.place[np.maximum(governor, 0)], -2)
        scored = (head != NONE) & (relation >= 0)
        word = np.concatenate([np.flatnonzero(scored), np.flatnonzero(scored & in_all)])
        every = np.full(np.count_nonzero(scored & in_all), _number(labels, prefix + ALL))
        return word, np.concatenate([relation[scored], every]), speaks[word], gold[word], offsets[word]

    def _tag(self, word: Word | None, labels: dict[str, int], prefix: str) -> tuple[int, bool]:
        """The number of a word's label, -1 for none, and whether it counts among all."""
        if word is None:
            return -1, False
        number = _number(labels, prefix + self._label(word)) if word.relation else -1
        return number, self.punct == "include" or not is_punctuation(word)

    def _label(self, word: Word) -> str:
        relation = word.relation or ""
        return own_label(relation.partition(":")[0] if self.subtypes == "fold" else relation)

    def _clitic_follows(self, words: Sequence[Word], end: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """1 for a possessor whose next word, of the same sentence, speaks for it; else 0."""
        follows = np.zeros(len(words), dtype=np.int64)
        clitics = {"none": frozenset[str](), "clitic": CLITICS, "reference": _REFERENCE_CLITICS}[self.possessive]
        for number in range(len(words) - 1) if clitics else ():
            if words[number].relation in _POSSESSIVES and number + 1 < end[number]:
                follows[number] = words[number + 1].form in clitics
        return follows

    def _guesses(
        self, index: Int[np.ndarray, "n"], speaks: Int[np.ndarray, "n"], size: Int[np.ndarray, "n"]
    ) -> Int[np.ndarray, "n offset"]:
        """What each fixed offset picks, by numbers in the sentence from 0, or ROOT: a guess never leaves the
        sentence.
        """
        offsets, last = np.array(self.offsets), size[:, None] - 1
        own, spoken = (np.clip(place[:, None] + offsets, ROOT, last) for place in (index, speaks))
        guesses: Int[np.ndarray, "n offset"] = np.where(own == last, own, spoken) if self.possessive == "reference" else spoken
        return guesses


def _number(labels: dict[str, int], label: str) -> int:
    return labels.setdefault(label, len(labels))


def is_punctuation(word: Word) -> bool:
    """Whether a word is punctuation by its relation or by its tag."""
    relation = word.relation or ""
    return relation == "punct" or relation.startswith("punct:") or (word.xpos if word.upos is None else word.upos) in _PUNCTUATION
