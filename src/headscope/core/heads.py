"""Names of heads. All texts and tables count from 1; only arrays count from 0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
_PLACE = re.compile("[1-9][0-9]{0,5}-[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True, order=True)
class HeadId:
    """One attention head; layer and head count from 0 here and print from 1, as in the papers: `8-10`, `cross/3-2`.

    `bare` heads print without their kind: those of a model that has one kind of attention. Where that is not known
    (None), heads of encoders are bare.
    """

    kind: Kind
    layer: int
    head: int
    bare: bool | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        bare = self.kind == "encoder" if self.bare is None else self.bare
        return f"{self.layer + 1}-{self.head + 1}" if bare else f"{self.kind}/{self.layer + 1}-{self.head + 1}"

    @property
    def key(self) -> str:
        """The name of the head in files, for any model: `8-10` in an encoder, else with its kind."""
        return str(HeadId(self.kind, self.layer, self.head))

    @classmethod
    def of_row(cls, row: Mapping[str, Any], bare: bool | None = None) -> HeadId:
        """The head of a row of a table, from its columns kind, layer and head."""
        return cls(row["kind"], row["layer"] - 1, row["head"] - 1, bare)

    @classmethod
    def parse(cls, name: str, first: Kind = "encoder") -> HeadId:
        """The head that `8-10` or `cross/3-2` names (1-based). Without a kind it is of the kind `first`."""
        prefix, _, place = name.rpartition("/")
        kind = prefix or first
        if kind not in KINDS or not _PLACE.fullmatch(place):
            numbers = re.findall("[0-9]+", place)
            meant = f". Did you mean {'-'.join(numbers)}?" if len(numbers) == 2 and kind in KINDS and "0" not in numbers else ""
            raise ValueError(f"{name!r} is not the name of a head: write layer-head counted from 1, as in 8-10 or cross/3-2{meant}")
        layer, head = map(int, place.split("-"))
        return cls(kind, layer - 1, head - 1)


def find_head(name: str, heads: Iterable[HeadId]) -> HeadId | None:
    """The head of that name in a model; None if the model has no such head. A name without a kind is of the first
    kind.
    """
    known = {head: head for head in heads}
    return known.get(HeadId.parse(name, next(iter(known)).kind)) if known else None


@dataclass(frozen=True, slots=True)
class Site:
    """One attention call of a forward pass: a layer of one kind, with its number of heads."""

    kind: Kind
    layer: int
    heads: int
    kv_heads: int
    module: str

    @property
    def name(self) -> str:
        """`encoder/3`, counted from 1."""
        return f"{self.kind}/{self.layer + 1}"


@dataclass(frozen=True)
class HeadLayout:
    """The positions of each site's heads on the flat head axis of a state. Values derived from the sites are cached,
    since measures need them at every layer.
    """

    sites: tuple[Site, ...]

    @cached_property
    def size(self) -> int:
        """The number of heads of all sites."""
        return sum(site.heads for site in self.sites)

    @cached_property
    def one_kind(self) -> bool:
        """Whether all attention is of one kind, so that names of heads can omit it."""
        return len({site.kind for site in self.sites}) == 1

    @property
    def causal(self) -> bool:
        """Whether all attention is causal: a decoder's, in which no token sees later ones."""
        return {site.kind for site in self.sites} == {"decoder"}

    def slice(self, index: int) -> slice:
        """The part of the head axis that belongs to site number `index`."""
        end = self._ends[index]
        return slice(end - self.sites[index].heads, end)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(site.heads for site in self.sites))

    def by_kind(self) -> Mapping[Kind, list[int]]:
        """The positions on the head axis of each kind's heads, kinds in the order of their first sites."""
        return self._by_kind

    @cached_property
    def _by_kind(self) -> dict[Kind, list[int]]:
        kinds: dict[Kind, list[int]] = {}
        for site, end in zip(self.sites, self._ends, strict=True):
            kinds.setdefault(site.kind, []).extend(range(end - site.heads, end))
        return kinds

    def spelled(self) -> str:
        """Layers and heads in words: `12 layers × 12 heads`; for each kind of attention if there are several."""
        parts = {}
        for kind in self.by_kind():
            sizes = [site.heads for site in self.sites if site.kind == kind]
            layers = f"{len(sizes)} layer{'s' if len(sizes) > 1 else ''}"
            parts[kind] = (
                f"{layers} × {sizes[0]} head{'s' if sizes[0] > 1 else ''}" if len(set(sizes)) == 1 else f"{layers}, {sum(sizes)} heads"
            )
        return " + ".join(f"{kind} {part}" if len(parts) > 1 else part for kind, part in parts.items())

    def heads(self) -> dict[Kind, int]:
        """The number of heads of each kind."""
        return {kind: len(heads) for kind, heads in self.by_kind().items()}

    def site_of(self) -> Int[np.ndarray, "head"]:
        """For each position of the head axis the number of its site."""
        import numpy as np  # specifications name kinds of heads without it

        return np.repeat(np.arange(len(self.sites)), [site.heads for site in self.sites])

    def ids(self) -> list[HeadId]:
        """A name for each position of the head axis."""
        return [HeadId(site.kind, site.layer, head, self.one_kind) for site in self.sites for head in range(site.heads)]
