"""What is switched off: one head, all heads of a layer but one, a whole layer, any set of heads. A system is a model
without some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout

if TYPE_CHECKING:
    from headscope.studies.ablation.answers import Cut

SINGLE = ("heads", "all_but_one", "layers")  # parts whose systems change one site each


@dataclass(frozen=True)
class Systems:
    """The systems of a study that change one site each: part by part, and in each part site by site."""

    layout: HeadLayout
    parts: tuple[str, ...]

    def cuts(self) -> list[Cut]:
        """The gates of every system."""
        return [cut for part in SINGLE if part in self.parts for cut in self._of(part)]

    def _of(self, part: str) -> list[Cut]:
        made: list[Cut] = []
        for number, site in enumerate(self.layout.sites):
            rows = {"heads": 1 - np.eye(site.heads), "all_but_one": np.eye(site.heads), "layers": np.zeros((1, site.heads))}[part]
            made += [{number: row} for row in rows]
        return made

    def places(self, part: str) -> slice:
        """Where the systems of a part are among all: one per head, or for layers one per site."""
        start = sum(len(self._of(name)) for name in SINGLE[: SINGLE.index(part)] if name in self.parts)
        return slice(start, start + (len(self._of(part)) if part in self.parts else 0))


def removal(layout: HeadLayout, removed: Sequence[int]) -> Cut:
    """Gates of one system without some heads of any layers; `removed` are places on the flat head axis."""
    flat = np.ones(layout.size)
    flat[list(removed)] = 0
    gates = {number: flat[layout.slice(number)] for number in range(len(layout.sites))}
    return {number: gate for number, gate in gates.items() if not gate.all()}
