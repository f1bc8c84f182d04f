"""What a measure is given: the attention maps of one site for a batch of texts, and what their rows and columns are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.heads import HeadLayout, Site

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int

T = TypeVar("T")
Test = Callable[[str, int], bool]  # of a position's form and role
# Rows `start` to `stop` of the maps of one site, [batch, head, row, key], worked out again.
Later = Callable[[int, int], "torch.Tensor"]

# What a position is. Named by role, never by string, so that [CLS], <s> and <|begin_of_text|> are one thing.
WORD, CLS, SEP, SPECIAL = range(4)


@dataclass(frozen=True)
class Side:
    """The rows or the columns of a batch of maps: what stands at each position of each text.

    A position is a number into `kinds`, its (form, role); -1 is padding. So a question about forms is asked once a
    kind. `texts` is what is annotated on each text, for positions that are words: word k is the k-th position of
    role WORD.
    """

    positions: Int[np.ndarray, "batch position"]
    kinds: tuple[tuple[str, int], ...]
    texts: tuple[Annotation, ...] = ()
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def lengths(self) -> Float64[np.ndarray, "batch"]:
        """Positions of each text, padding not counted."""
        lengths: Float64[np.ndarray, "batch"] = (self.positions >= 0).sum(1).astype(np.float64)
        return lengths

    @property
    def width(self) -> int:
        """Positions of the longest text: the size of the padded axis."""
        return int(self.positions.shape[1])

    def chosen(self, name: str, test: Test) -> Bool[np.ndarray, "batch position"]:
        """True where `test(form, role)` holds; False on padding. Kept under `name`, since every layer asks again."""
        if name not in self._kept:
            table = np.array([*(test(form, role) for form, role in self.kinds), False])
            self._kept[name] = table[self.positions]
        found: Bool[np.ndarray, "batch position"] = self._kept[name]
        return found

    def mask(self, name: str, test: Test, device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """The same as a tensor on a device."""
        import torch

        key = (name, device)
        if key not in self._kept:
            self._kept[key] = torch.from_numpy(self.chosen(name, test)).to(device)
        found: Bool[torch.Tensor, "batch position"] = self._kept[key]
        return found

    def valid(self, device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """True where there is text, False on padding."""
        return self.mask("all", lambda form, role: True, device)

    def index(self, name: str, test: Test, device: torch.device) -> tuple[Int[torch.Tensor, "n"], Int[torch.Tensor, "n"]]:
        """The text and the position of everything chosen, as tensors on a device."""
        import torch

        key = (name, device, "index")
        if key not in self._kept:
            self._kept[key] = tuple(torch.from_numpy(axis).to(device) for axis in self.chosen(name, test).nonzero())
        found: tuple[Int[torch.Tensor, "n"], Int[torch.Tensor, "n"]] = self._kept[key]
        return found


@dataclass(frozen=True)
class MapBatch:
    """The attention maps of one site. Padded rows and columns hold weight 0.

    `index` is the site's number in `layout`; `visible` says which positions a row may attend to, where the model's
    mask is known (None: all, or all up to its own for a decoder); `replicates[:, 0]` is 1 and the other columns are
    the bootstrap weights of each text's document. `shared` is one dictionary for all layers of the batch: what
    depends on the texts and on what is visible, but not on the weights, is worked out once and kept there.
    `documents` are those the texts belong to.
    """

    index: int
    layout: HeadLayout
    weights: Float[torch.Tensor, "batch head query key"]
    queries: Side
    keys: Side
    replicates: Float64[np.ndarray, "batch replicate"]
    visible: Bool[torch.Tensor, "batch query key"] | None = None
    shared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    documents: tuple[str, ...] = ()
    again: Callable[[], Later] | None = field(default=None, repr=False, compare=False)

    def later(self) -> Later:
        """A way to get rows of these maps when they are gone; it holds much less than the maps, unless something
        else holds them anyway.
        """
        if self.again is not None:
            return self.again()
        weights = self.weights
        return lambda start, stop: weights[:, :, start:stop]

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for all layers of this kind that see the same."""
        key = (name, self.site.kind, id(self.visible))
        if key not in self.shared:
            self.shared[key] = (make(), self.visible)  # the mask is kept, so that its id stays its own
        value: T = self.shared[key][0]
        return value

    @property
    def site(self) -> Site:
        """The layer these maps come from."""
        return self.layout.sites[self.index]

    def even(self) -> MapBatch:
        """The same batch with one head that attends evenly to all it can see: the baseline of a surface statistic."""
        return replace(self, weights=self.once("even", self._even))

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
    """A side from one list of forms and one list of roles a text."""
    kinds: defaultdict[tuple[str, int], int] = defaultdict()
    kinds.default_factory = kinds.__len__  # what is met for the first time gets the next number
    positions = np.full((len(forms), max(map(len, forms))), -1)
    for row, pairs in enumerate(zip(forms, roles, strict=True)):
        numbers = list(map(kinds.__getitem__, zip(*pairs, strict=True)))
        positions[row, : len(numbers)] = numbers
    return Side(positions, tuple(kinds), tuple(texts))
