"""What a measure is given: the attention maps of one site for a batch of texts, and what their rows and columns are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headscope.core.heads import HeadLayout, Site

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64

T = TypeVar("T")

# What a position is. Named by role, never by string, so that [CLS], <s> and <|begin_of_text|> are one thing.
WORD, CLS, SEP, SPECIAL = range(4)


@dataclass(frozen=True)
class Side:
    """The rows or the columns of a batch of maps: for each text the form and the role of every position."""

    forms: tuple[tuple[str, ...], ...]
    roles: tuple[tuple[int, ...], ...]
    _masks: dict[tuple[str, object], torch.Tensor] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def lengths(self) -> Float64[np.ndarray, "batch"]:
        """Positions of each text, padding not counted."""
        return np.array([len(roles) for roles in self.roles], dtype=np.float64)

    @property
    def width(self) -> int:
        """Positions of the longest text: the size of the padded axis."""
        return max(map(len, self.roles))

    def mask(self, name: str, chosen: Callable[[str, int], bool], device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """True where `chosen(form, role)` holds; False on padding. Kept under `name`, since every layer asks again."""
        import torch

        key = (name, device)
        if key not in self._masks:
            mask = np.zeros((len(self.roles), self.width), dtype=bool)
            for row, (forms, roles) in enumerate(zip(self.forms, self.roles, strict=True)):
                mask[row, : len(roles)] = [chosen(form, role) for form, role in zip(forms, roles, strict=True)]
            self._masks[key] = torch.from_numpy(mask).to(device)
        return self._masks[key]

    def valid(self, device: torch.device) -> Bool[torch.Tensor, "batch position"]:
        """True where there is text, False on padding."""
        return self.mask("valid", lambda form, role: True, device)


@dataclass(frozen=True)
class MapBatch:
    """The attention maps of one site. Padded rows and columns hold weight 0.

    `index` is the site's number in `layout`; `visible` says which positions a row may attend to, where the model's mask is
    known (None: all, or all up to its own for a decoder); `replicates[:, 0]` is 1 and the other columns are the bootstrap
    weights of each text's document. `shared` is one dictionary for all layers of the batch: what depends on the texts and
    on what is visible, but not on the weights, is worked out once and kept there.
    """

    index: int
    layout: HeadLayout
    weights: Float[torch.Tensor, "batch head query key"]
    queries: Side
    keys: Side
    replicates: Float64[np.ndarray, "batch replicate"]
    visible: Bool[torch.Tensor, "batch query key"] | None = None
    shared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

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


def stack(forms: Sequence[Sequence[str]], roles: Sequence[Sequence[int]]) -> Side:
    """A side from one list of forms and one list of roles a text."""
    return Side(tuple(map(tuple, forms)), tuple(map(tuple, roles)))
