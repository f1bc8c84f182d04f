"""The input of a measure (the attention maps of one site for a batch of texts), and the gradients that a measure can
request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.heads import HeadLayout, Site
from headscope.core.rows import AttentionScores, Reach, RowNeeds, RowSums, Test
from headscope.core.transfer import to_device

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int, Shaped

T = TypeVar("T")
# Rows `start` to `stop` of the maps of one site, [batch, head, row, key], computed again.
Later = Callable[[int, int], "torch.Tensor"]

# The bootstrap weights of documents, [document, replicate]: 1 in the first column, draws in the others.
Weigh = Callable[[tuple[str, ...]], "Float64[np.ndarray, 'document replicate']"]

# The role of a position. A role, not a string, so that [CLS], <s> and <|begin_of_text|> count as the same.
ROLES = 4
WORD, CLS, SEP, SPECIAL = range(ROLES)
Form = Literal["plain", "times_weight", "through_softmax", "integrated"]


@dataclass(frozen=True)
class RoleTest:
    """A test that depends only on a position's role: it is evaluated once per role, not once per form."""

    roles: frozenset[int]

    def __call__(self, form: str, role: int) -> bool:
        """Whether a position of this role passes."""
        return role in self.roles


class SideTest(ABC):
    """A test of positions that depends on more than form and role: `Side.chosen` evaluates it for all positions
    together.
    """

    def __call__(self, form: str, role: int) -> bool:
        """Not supported: use `Side.chosen`."""
        raise TypeError("this test is of the positions of a side")

    @abstractmethod
    def places(self, side: Side) -> Bool[np.ndarray, "batch position"]:
        """True where the test holds; False on padding."""


@dataclass(frozen=True)
class PlaceTest(SideTest):
    """A test that depends only on a position's place in its text: from `start` up to, but not including, `stop`."""

    start: int = 0
    stop: int | None = None

    def places(self, side: Side) -> Bool[np.ndarray, "batch position"]:
        """True from `start` to `stop`."""
        place = np.arange(side.origin, side.origin + side.width)
        return (side.roles >= 0) & (place >= self.start) & (self.stop is None or place < self.stop)


ANY, IS_WORD = RoleTest(frozenset(range(ROLES))), RoleTest(frozenset({WORD}))


class Forms:
    """The distinct (form, role) pairs of positions, numbered in the order of their first occurrence. A test is
    evaluated once per pair.
    """

    def __init__(self, kinds: Iterable[tuple[str, int]] = ()) -> None:
        self.kinds = list(kinds)
        self._answers: dict[str, np.ndarray] = {}

    def answers(self, name: str, ask: Callable[[str, int], Any], padding: Any) -> Shaped[np.ndarray, "kind+1"]:
        """`ask(form, role)` for each pair, followed by `padding`, which index -1 selects. Cached under `name`; only new
        pairs are evaluated.
        """
        known = self._answers.get(name)
        have = 0 if known is None else len(known) - 1
        if known is None or have < len(self.kinds):
            kinds = self.kinds[have:]  # a copy: another thread may add more
            new = np.array([*(ask(form, role) for form, role in kinds), padding])
            self._answers[name] = known = new if known is None else np.concatenate([known[:-1], new])
        return known


@dataclass(frozen=True)
class Side:
    """The rows or the columns of a batch of maps: the token or word at each position of each text.

    `roles` has the role of each position; -1 is padding. `tell_forms` is called when a test first needs forms: it
    returns the distinct forms and, per position, the number of its form, -1 on padding. `texts` has the annotation of
    each text. Word k is the k-th position of role WORD, unless `make_word_of` says which word each position belongs to,
    as where positions are tokens. `origin` is the place in the text of the first position. Where positions are words,
    `places` are their tokens: the first, and the first one after them.
    """

    roles: Int[np.ndarray, "batch position"]
    tell_forms: Callable[[], tuple[Forms, Int[np.ndarray, "batch position"]]]
    texts: Sequence[Annotation] = ()
    origin: int = 0
    places: Int[np.ndarray, "side batch position"] | None = field(default=None, repr=False, compare=False)
    make_word_of: Callable[[], Int[np.ndarray, "batch position"]] | None = None
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def lengths(self) -> Float64[np.ndarray, "batch"]:
        """The number of positions of each text, without padding."""
        lengths: Float64[np.ndarray, "batch"] = (self.roles >= 0).sum(1).astype(np.float64)
        return lengths

    @cached_property
    def padded(self) -> bool:
        """Whether some text is shorter than the longest."""
        return bool((self.roles < 0).any())

    @property
    def width(self) -> int:
        """The number of positions of the longest text: the size of the padded axis."""
        return int(self.roles.shape[1])

    @cached_property
    def word_of(self) -> Int[np.ndarray, "batch position"]:
        """For each position the number of its word among those of its text; -1 if it belongs to none."""
        if self.make_word_of is not None:
            return self.make_word_of()
        words = self.roles == WORD
        return np.where(words, np.cumsum(words, 1) - 1, -1)

    def spread(self, words: Sequence[Bool[np.ndarray, "word"]]) -> Bool[np.ndarray, "batch position"]:
        """True at the positions of chosen words, given for each text."""
        found = np.zeros(self.roles.shape, dtype=bool)
        for row, word_of, chosen in zip(found, self.word_of, words, strict=True):
            there = word_of >= 0
            row[there] = chosen[word_of[there]]
        return found

    @cached_property
    def _forms(self) -> tuple[Forms, Int[np.ndarray, "batch position"]]:
        return self.tell_forms()

    @property
    def kinds(self) -> Sequence[tuple[str, int]]:
        """The distinct (form, role) pairs of the positions, and perhaps of earlier batches."""
        return self._forms[0].kinds

    @property
    def positions(self) -> Int[np.ndarray, "batch position"]:
        """For each position a number into `kinds`; -1 is padding."""
        return self._forms[1]

    def answers(self, name: str, ask: Callable[[str, int], Any], padding: Any) -> Shaped[np.ndarray, "batch position"]:
        """`ask(form, role)` for each position, and `padding` on padding. The answers are cached under `name`."""
        forms, positions = self._forms
        answers: Shaped[np.ndarray, "batch position"] = forms.answers(name, ask, padding)[positions]
        return answers

    def part(self, start: int, stop: int) -> Side:
        """The positions from `start` to `stop` alone, without annotation."""
        return Side(self.roles[:, start:stop], lambda: (self._forms[0], self.positions[:, start:stop]), origin=self.origin + start)

    def chosen(self, name: str, test: Test) -> Bool[np.ndarray, "batch position"]:
        """True where `test(form, role)` holds; False on padding. Cached under `name`, since every layer needs it."""
        if name not in self._kept:
            if isinstance(test, RoleTest):
                table = np.array([*(test("", role) for role in range(ROLES)), False])
                self._kept[name] = table[self.roles]
            elif isinstance(test, SideTest):
                self._kept[name] = test.places(self)
            else:
                self._kept[name] = self.answers(name, test, False)
        found: Bool[np.ndarray, "batch position"] = self._kept[name]
        return found

    def mask(self, name: str, test: Test, device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """As `chosen`, as a tensor on a device."""
        key = (name, device)
        if key not in self._kept:
            self._kept[key] = to_device(self.chosen(name, test), device)
        mask: Bool[torch.Tensor, "batch position"] = self._kept[key]
        return mask

    def valid(self, device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """True where there is text, False on padding."""
        return self.mask("all", ANY, device)

    def members(self, needs: RowNeeds, device: torch.device) -> Float[torch.Tensor, "batch position group"]:
        """1 where a position belongs to a group of `needs`, else 0."""
        key = (tuple(name for name, _ in needs.groups), device, "members")
        if key not in self._kept:
            chosen = [self.chosen(name, test) for name, test in needs.groups]
            members = np.stack(chosen, -1) if chosen else np.zeros((*self.roles.shape, 0))
            self._kept[key] = to_device(members.astype(np.float32), device)
        found: Float[torch.Tensor, "batch position group"] = self._kept[key]
        return found

    def row_groups(self, needs: RowNeeds, device: torch.device) -> Float[torch.Tensor, "batch rows position"]:
        """Indicators per position: 1 for text, and 1 for each group of rows of `needs` that the position belongs to,
        else 0.
        """
        key = (tuple(name for name, _ in needs.rows), device, "row groups")
        if key not in self._kept:
            chosen = [self.chosen("all", ANY), *(self.chosen(name, test) for name, test in needs.rows)]
            self._kept[key] = to_device(np.stack(chosen, 1).astype(np.float32), device)
        groups: Float[torch.Tensor, "batch rows position"] = self._kept[key]
        return groups

    def index(self, name: str, test: Test, device: torch.device) -> tuple[Int[torch.Tensor, "n"], Int[torch.Tensor, "n"]]:
        """The texts and the positions where a test holds, as tensors on a device."""
        key = (name, device, "index")
        if key not in self._kept:
            self._kept[key] = tuple(to_device(axis, device) for axis in self.chosen(name, test).nonzero())
        index: tuple[Int[torch.Tensor, "n"], Int[torch.Tensor, "n"]] = self._kept[key]
        return index


class TokenMaps(NamedTuple):
    """Maps between tokens from which maps between words are computed: a word's row is the mean over its tokens, its
    column their sum. A word is given by its first token and the first token after it. Without maps, `scores` hold what
    the weights can be computed from.
    """

    weights: Float[torch.Tensor, "batch head query key"] | None
    rows: Int[torch.Tensor, "side batch word"]
    columns: Int[torch.Tensor, "side batch word"]
    places: Int[np.ndarray, "side batch word"]  # of the columns, for the host
    longest: int  # no word has more tokens
    scores: AttentionScores | None = None


@dataclass(frozen=True)
class MapBatch:
    """The attention maps of one site. Padded rows and columns hold weight 0.

    `maps` are the weights, or a function that makes them when a measure first reads `weights`. They are None if only
    the statistics of rows are known: these are in `rows`, within the `reach` of each row, and in `even_rows` for a head
    that attends evenly. `scores`, if a measure needs them, are what weights can be computed from, and `value` the value
    vectors, if they are known. `tokens` are the maps between tokens that maps between words are computed from: a
    measure that needs only a part of them reads `tokens` instead. `index` is the site's number in `layout`; `visible`
    says which positions a row may attend to, where the model's mask is known (None: all, or all up to its own for a
    decoder); `weigh` draws bootstrap weights, once per document and not per text. `shared` is one dictionary for all
    layers of the batch: what depends on the texts and on what is visible, but not on the weights, is computed once and
    cached there. `documents` are those the texts belong to, and `slices` the numbers of these documents' slices.
    """

    index: int
    layout: HeadLayout
    maps: Float[torch.Tensor, "batch head query key"] | Callable[[], Float[torch.Tensor, "batch head query key"]] | None = field(repr=False)
    queries: Side
    keys: Side
    weigh: Weigh
    visible: Bool[torch.Tensor, "batch query key"] | None = None
    shared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    documents: tuple[str, ...] = ()
    again: Callable[[], Later] | None = field(default=None, repr=False, compare=False)
    tokens: TokenMaps | None = field(default=None, repr=False, compare=False)
    rows: RowSums | None = None
    reach: Reach | None = None
    scores: AttentionScores | None = field(default=None, repr=False, compare=False)
    even_rows: Callable[[], RowSums] | None = field(default=None, repr=False, compare=False)
    value: Float[torch.Tensor, "batch kv_head key d"] | None = field(default=None, repr=False, compare=False)
    slices: Int[np.ndarray, "batch"] = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False, compare=False)

    @cached_property
    def weights(self) -> Float[torch.Tensor, "batch head query key"]:
        """The maps; an error if only the statistics of their rows are known."""
        if self.maps is None:
            raise ValueError("these maps were not computed: a measure that reads maps must not declare row needs")
        return self.maps() if callable(self.maps) else self.maps

    @property
    def device(self) -> torch.device:
        """Where the maps, or the statistics of their rows, are or will be."""
        if self.rows is not None:
            return self.rows.values.device
        return self.weights.device if self.tokens is None else self.tokens.rows.device

    def later(self) -> Later:
        """A function that computes rows of these maps again after they are freed. It usually holds much less than the
        maps.
        """
        if self.again is not None:
            return self.again()
        weights = self.weights
        return lambda start, stop: weights[:, :, start:stop]

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, computed once for all layers of this kind with the same visible positions."""
        key = (name, self.site.kind, id(self.visible), self.reach)
        if key not in self.shared:
            self.shared[key] = (make(), self.visible)  # the mask is kept, so that its id stays its own
        value: T = self.shared[key][0]
        return value

    def prepared(self, name: Hashable, make: Callable[[Side, Side, torch.device], T]) -> T:
        """The result of `make` for the two sides, computed once for all layers of this kind, since it depends only on
        the texts.
        """
        key = ("prepared", name, self.site.kind)
        if key not in self.shared:
            self.shared[key] = make(self.queries, self.keys, self.device)
        value: T = self.shared[key]
        return value

    @property
    def site(self) -> Site:
        """The layer these maps come from."""
        return self.layout.sites[self.index]

    def even(self) -> MapBatch:
        """The same batch with one head that attends evenly to all it can see: the baseline of a surface statistic."""
        if self.maps is None and self.even_rows is not None:
            return replace(self, rows=self.once("even rows", self.even_rows), scores=None, value=None)
        return replace(self, maps=self.once("even", self._even), tokens=None, rows=None, value=None)

    def _even(self) -> Float[torch.Tensor, "batch 1 query key"]:
        import torch

        device = self.weights.device
        seen = self.queries.valid(device)[:, :, None] & self.keys.valid(device)[:, None, :]
        if self.visible is not None:
            seen = seen & self.visible
        elif self.site.kind == "decoder":
            seen = seen.tril()
        weights = seen / seen.sum(-1, keepdim=True).clamp_min(1)
        return weights[:, None].to(torch.float32)


def stack(forms: Sequence[Sequence[str]], roles: Sequence[Sequence[int]], texts: Sequence[Annotation] = ()) -> Side:
    """A side from a list of forms and a list of roles per text."""
    padded = pad([np.array(row, dtype=np.int8) for row in roles])
    return Side(padded, lambda: number_forms(padded, forms), tuple(texts))


def pad(rows: Sequence[Int[np.ndarray, "position"]]) -> Int[np.ndarray, "batch position"]:
    """Rows of different lengths as one array, filled up with -1."""
    lengths = np.array([len(row) for row in rows])
    padded = np.full((len(rows), int(lengths.max())), -1, dtype=rows[0].dtype)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def number_forms(
    roles: Int[np.ndarray, "batch position"], forms: Iterable[Sequence[str]]
) -> tuple[Forms, Int[np.ndarray, "batch position"]]:
    """The distinct (form, role) pairs of texts in the order of their first occurrence, and the number of each
    position's pair.
    """
    kinds: defaultdict[tuple[str, int], int] = defaultdict()
    kinds.default_factory = kinds.__len__  # a pair that occurs for the first time gets the next number
    present = roles >= 0
    positions = np.full(roles.shape, -1)
    positions[present] = list(map(kinds.__getitem__, zip(chain.from_iterable(forms), roles[present].tolist(), strict=True)))
    return Forms(kinds), positions


@dataclass(frozen=True)
class Slope:
    """How gradients are taken. `form` is the value computed from the gradient g of a weight a: |g|; |a g|; the gradient
    of the logit, |a (g - sum a g)|; or integrated gradients, |a mean g| over `steps` passes in which all attention is
    scaled from 0 to its full size.

    For masked language models, `share` of the pieces of each text are masked, as in BERT's training, in `draws`
    different ways. The loss of a text is the mean over its predictions, or the `sum`.
    """

    form: Form = "plain"
    draws: int = 1
    share: float = 0.15
    reduction: Literal["mean", "sum"] = "mean"
    steps: int = 16
