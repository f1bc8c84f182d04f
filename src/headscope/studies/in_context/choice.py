"""The heads that are switched off: the strongest by a score on other texts, and random heads of the same layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Float64

    Gates = Mapping[int, Float64[np.ndarray, "head"]]

TRIES = 50  # for a draw that differs from all earlier ones


@dataclass(frozen=True)
class HeadSets:
    """For each number of heads, the strongest ones, and draws of as many other heads of the same layers."""

    layout: HeadLayout
    strongest: Mapping[int, tuple[int, ...]]
    random: Mapping[int, tuple[tuple[int, ...], ...]]

    @classmethod
    def choose(cls, scores: Float64[np.ndarray, "head"], layout: HeadLayout, numbers: Sequence[int], draws: int, seed: int) -> HeadSets:
        """The sets of each number; an error if there are too few heads with a score."""
        known = int(np.isfinite(scores).sum())
        if max(numbers) >= known:
            problem = f"{max(numbers)} heads are to be switched off, but only {known} of the model's {layout.size} have a score"
            raise RunError(problem, "Use a smaller number with --heads, or name a corpus in which tokens repeat with --chosen-on")
        order = [int(head) for head in np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")]
        strongest = {number: tuple(order[:number]) for number in numbers}
        named = set(order[: max(numbers)])
        rng = np.random.default_rng(seed)
        random = {number: _draws(heads, named, layout, draws, rng) for number, heads in strongest.items()}
        return cls(layout, strongest, random)

    def systems(self) -> list[tuple[int, ...]]:
        """The heads that are off in each system: none, and for each number of heads the strongest and each draw."""
        return [(), *(heads for number in self.strongest for heads in (self.strongest[number], *self.random[number]))]

    def gates(self) -> list[Gates]:
        """The gates of each system."""
        return [self._gates(heads) for heads in self.systems()]

    def _gates(self, heads: Sequence[int]) -> Gates:
        site_of = self.layout.site_of()
        gates: dict[int, Float64[np.ndarray, "head"]] = {}
        for head in heads:
            site = int(site_of[head])
            gates.setdefault(site, np.ones(self.layout.sites[site].heads))[head - self.layout.slice(site).start] = 0
        return gates

    def names(self, heads: Sequence[int]) -> str:
        """The names of heads, separated by commas."""
        ids = self.layout.ids()
        return ", ".join(str(ids[head]) for head in heads)


def _draws(heads: Sequence[int], named: set[int], layout: HeadLayout, draws: int, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """Random heads, as many in each layer as in `heads`; none of the strongest, if the layer has enough others."""
    site_of = layout.site_of()
    pools = []
    for site in sorted({int(site_of[head]) for head in heads}):
        own = range(layout.slice(site).start, layout.slice(site).stop)
        wanted = sum(head in own for head in heads)
        others = [[head for head in own if head not in taken] for taken in (named, set(heads), set[int]())]
        pools.append((next(pool for pool in others if len(pool) >= wanted), wanted))
    found: list[tuple[int, ...]] = []
    for _ in range(draws):
        for _ in range(TRIES):
            drawn = tuple(sorted(int(head) for pool, wanted in pools for head in rng.choice(pool, wanted, replace=False)))
            if drawn not in found:
                break
        found.append(drawn)
    return tuple(found)
