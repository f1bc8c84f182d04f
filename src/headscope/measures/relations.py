"""Single heads as parsers: how often the word that a word attends to most is its syntactic governor, relation by
relation (Clark et al. §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.batch import CLS, SEP, WORD, MapBatch, RoleTest, Side
from headscope.core.document import Word
from headscope.core.heads import HeadLayout
from headscope.core.rows import RowNeeds
from headscope.core.state import State
from headscope.core.transfer import to_device
from headscope.core.trees import NONE, ROOT, TAGS, Tag
from headscope.errors import MeasureError
from headscope.measures.base import Champion, Columns, Level, Measure
from headscope.measures.cases import LABEL_SETS, Cases
from headscope.measures.contests import ALL, CONTROL, Contests, Selection, control_group, own_label
from headscope.measures.weights.words import SentenceIndex, WordIndex, trees_of
from headscope.stats.bootstrap import groups_of, keys_of
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Int, Shaped

CLITICS = frozenset({"'s", "’s", "'", "’"})
_REFERENCE_CLITICS = frozenset({"'s", "s'"})
_POSSESSIVES = frozenset({"poss", "nmod:poss", "det:poss"})
_UNLISTED = frozenset({"root", "punct"})  # a root has no governor to pick, and the governor of punctuation is a convention
_CLS_OR_SEP = RoleTest(frozenset({CLS, SEP}))
_PUNCTUATION = frozenset({"PUNCT", "``", "''", ",", ".", ":", "-LRB-", "-RRB-", "HYPH", "NFP"})


@dataclass(frozen=True)
class _Scored:
    """The words of a batch that are scored, and the places of all words in the maps."""

    sentences: SentenceIndex
    cases: Cases
    text: Int[torch.Tensor, "case"]
    speaks: Int[torch.Tensor, "case"]  # the position whose most attended word counts
    own: Int[torch.Tensor, "case"]  # the position of the word itself
    gold: Int[torch.Tensor, "case"]  # the governor's position, -2 for the root
    last: Int[torch.Tensor, "case"]  # the position of the sentence's last word


@dataclass(frozen=True, kw_only=True)
class Relations(Measure):
    """Accuracy of every head and direction, of fixed offsets, and of the best head of each relation, chosen on other
    documents.

    `punct` and `root` say whether such words count in "all"; `subtypes="fold"` reads `nsubj:pass` as `nsubj`. With
    `possessive="clitic"` the word that the clitic ('s) attends to most counts for the possessor before it, as BERT's
    word pieces suggest; `"reference"` is that rule with the gaps of the released code. `least` is the number of words
    that a relation needs to be listed. With `specials="candidates"`, a word can also pick [CLS] and [SEP], which is
    never right (Clark et al., footnote 3). `control="permuted"` also scores the heads against the trees of other
    sentences of the same length, which gives chance.
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
        _ = self.contests  # raises an error for invalid folds

    def row_needs(self) -> RowNeeds | None:
        """The weights within sentences; None (maps) if special tokens can be picked."""
        return RowNeeds(sentences=True) if self.specials == "ignore" else None

    @property
    def contests(self) -> Contests:
        """How counts are stored and turned into tables."""
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
        """A state without counts. Relations are added as they occur in the corpus."""
        return self.contests.start(replicates, seed)

    def update(self, state: State, batch: MapBatch) -> None:
        """Score all heads of a site on a batch."""
        if batch.site.kind == "cross":
            return
        scored: _Scored = batch.prepared(self, self.prepare)
        if not len(scored.cases):
            return
        chosen = scored.sentences.favourites(batch)  # [direction, text, head, position]
        self.contests.add(state, batch, scored.cases, self._counts(scored, chosen))

    def _counts(
        self, scored: _Scored, chosen: Int[torch.Tensor, "direction text head position"]
    ) -> Shaped[torch.Tensor, "cell direction head"]:
        """The number of right answers of each head, per cell."""
        import torch

        if self.possessive != "reference":
            return scored.cases.count_chosen(chosen, scored.text, scored.speaks, scored.gold)
        speaker, own = (chosen[:, scored.text, :, place].transpose(0, 1) for place in (scored.speaks, scored.own))
        gold = scored.gold[:, None]
        return scored.cases.count(torch.where(own == scored.last[:, None], own == gold, speaker == gold))

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and relation; and the best head of each relation with the best fixed offset."""
        return self.contests.tables(state, layout)

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """Every relation and direction."""
        return self.contests.resampled(state, layout, least)

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The best head of each relation."""
        return self.contests.champions(state, layout)

    def prepare(self, queries: Side, keys: Side, device: torch.device) -> _Scored:
        """The words of a batch that are scored: once for their own tree, and once for each draw of the control. Most of
        this is computed on the device; the host only joins the trees.
        """
        import torch

        words = WordIndex.of(queries)
        tags, heads = trees_of(queries)
        if self.control == "none":
            tags, heads = tags[:1], heads[:1]
        start, end = words.bounds()
        number = np.arange(len(words))
        speaks = number + self._clitic_follows(queries, words, tags[0], end)
        group = groups_of(keys_of([text.document for text in queries.texts]))
        of_words = (number, speaks, words.text, words.place, words.first[words.text], start, end, group[words.text])
        number_, speaks_, text, place, first, start_, end_, group_ = to_device(np.stack(of_words), device)
        tag, head = to_device(np.stack([tags, heads]), device).long()  # [tree, word]
        labels = _label_sets(self.subtypes, self.punct, self.root).of(tag, head).masked_fill(head == NONE, -1)
        draws = torch.arange(len(tag) - 1, device=device)[:, None]
        groups = torch.cat([group_[None], control_group(draws, group_)])
        speaker = torch.cat([speaks_[None], number_.expand(len(tag) - 1, -1)])  # in the control, no clitic replaces a possessor
        governor = head + first  # its number among the batch's words
        gold = torch.where(head >= 0, place[governor.clamp(0, max(0, len(words) - 1))], -2)
        in_sentence = torch.where(head >= 0, governor - start_, ROOT)
        rules = self._right(in_sentence, number_ - start_, speaks_ - start_, end_ - start_)
        texts, places, lasts = (tensor.expand_as(tag).reshape(-1) for tensor in (text, place, place[end_ - 1]))
        cases = Cases.of(labels.view(-1), groups.view(-1), rules.flatten(1), texts, len(words), queries.texts)
        further = keys.chosen("cls and sep", _CLS_OR_SEP) if self.specials == "candidates" else None
        return _Scored(
            SentenceIndex(words, keys.width, device, further, keys.places),
            cases,
            texts,
            place[speaker].view(-1),
            places,
            gold.view(-1),
            lasts,
        )

    def _clitic_follows(self, side: Side, words: WordIndex, tags: Int[np.ndarray, "n"], end: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """1 for a possessor if the next word, in the same sentence, is a clitic that is scored in its place; else 0."""
        follows = np.zeros(len(words), dtype=np.int64)
        if self.possessive != "none":
            clitics = CLITICS if self.possessive == "clitic" else _REFERENCE_CLITICS
            chosen = side.chosen(f"{self.possessive} clitics", lambda form, role: role == WORD and form in clitics)
            is_clitic = chosen[words.text, words.place]
            possessor = np.array([tag.relation in _POSSESSIVES for tag in TAGS.items])[tags]
            follows[:-1] = possessor[:-1] & is_clitic[1:] & (np.arange(1, len(words)) < end[:-1])
        return follows

    def _right(
        self,
        governor: Int[torch.Tensor, "tree word"],
        index: Int[torch.Tensor, "word"],
        speaks: Int[torch.Tensor, "word"],
        size: Int[torch.Tensor, "word"],
    ) -> Bool[torch.Tensor, "offset tree word"]:
        """For each fixed offset, whether it picks the governors. Words are numbered within the sentence from 0, or
        ROOT; a guess never leaves the sentence. In the trees of other sentences, after the first, every word is scored
        itself, and no clitic in its place.
        """
        import torch

        offsets, last = to_device(np.array(self.offsets), size.device)[:, None], size - 1
        plain, guess = (torch.minimum((place + offsets).clamp_min(ROOT), last) for place in (index, speaks))
        if self.possessive == "reference":
            guess = torch.where(plain == last, plain, guess)
        return torch.cat([governor[None, :1] == guess[:, None], governor[None, 1:] == plain[:, None]], 1)


class _LabelSets:
    """The sets of labels under which words are counted, as numbers, by the tags of the words."""

    def __init__(self, subtypes: str, punct: str, root: str) -> None:
        self._fold, self._punct, self._root = subtypes == "fold", punct == "include", root == "include"
        self._table = np.zeros((2, 2, 0), dtype=np.int64)  # own tree or control, root or not, tag
        self._on_device: dict[torch.device, Int[torch.Tensor, "2 2 tag"]] = {}

    def of(self, tags: Int[torch.Tensor, "tree word"], head: Int[torch.Tensor, "tree word"]) -> Int[torch.Tensor, "tree word"]:
        """The numbers of the words' sets of labels, -1 for none. The first tree is the words' own."""
        import torch

        known, width = len(TAGS.items), self._table.shape[-1]
        if width < known:
            columns = [self._column(tag) for tag in TAGS.items[width:known]]
            self._table = np.concatenate([self._table, np.stack(columns, -1)], -1)
            self._on_device.clear()
        if tags.device not in self._on_device:
            self._on_device[tags.device] = to_device(self._table, tags.device)
        table = self._on_device[tags.device]
        control = (torch.arange(len(tags), device=tags.device) > 0).long()[:, None]
        # One look-up in the flat table is faster than an index of three numbers.
        return table.view(-1)[(2 * control + (head == ROOT)) * table.shape[-1] + tags]

    def _column(self, tag: Tag) -> Int[np.ndarray, "2 2"]:
        if not tag.relation:
            return np.full((2, 2), -1)
        label = own_label(tag.relation.partition(":")[0] if self._fold else tag.relation)
        counts = self._punct or not is_punctuation(tag)
        sets = [[[label, ALL] if counts and (self._root or not root) else [label] for root in (False, True)]] * 2
        prefixed = [[tuple(prefix + name for name in names) for names in row] for prefix, row in zip(("", CONTROL), sets, strict=True)]
        return np.array([[LABEL_SETS.number(names) for names in row] for row in prefixed])


@cache
def _label_sets(subtypes: str, punct: str, root: str) -> _LabelSets:
    return _LabelSets(subtypes, punct, root)


def is_punctuation(word: Word | Tag) -> bool:
    """Whether a word is punctuation, according to its relation or its tag."""
    relation = word.relation or ""
    return relation == "punct" or relation.startswith("punct:") or (word.xpos if word.upos is None else word.upos) in _PUNCTUATION
