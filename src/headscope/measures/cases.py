"""The cases of a batch, sorted into cells: a cell is a label and a group of documents. Made once, used for every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from headscope.stats.bootstrap import GROUPS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Int64


class Part(NamedTuple):
    """The cells of one label: a stretch of the batch's cells, and the groups of documents they belong to."""

    label: str
    cells: slice
    groups: Int[np.ndarray, "cell"]


@dataclass(frozen=True)
class Cases:
    """For each case the number of its cell; for each cell how many cases it has, and how many of them each rule answers rightly."""

    cell: Int[torch.Tensor, "case"]
    parts: tuple[Part, ...]
    n: Int64[np.ndarray, "cell"]
    rules: Int64[np.ndarray, "cell rule"]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        label: Int[np.ndarray, "case"],
        group: Int[np.ndarray, "case"],
        rules: Bool[np.ndarray, "case rule"],
        device: torch.device,
    ) -> Cases:
        """Cases given by the number of their label, their group, and which rules are right."""
        cells, cell_of = np.unique(label * GROUPS + group, return_inverse=True)
        starts = np.searchsorted(cells // GROUPS, np.arange(len(labels) + 1))
        parts = [Part(name, slice(a, b), cells[a:b] % GROUPS) for name, a, b in zip(labels, starts, starts[1:], strict=False) if b > a]
        right = np.zeros((len(cells), rules.shape[1]), dtype=np.int64)
        np.add.at(right, cell_of, rules.astype(np.int64))
        n = np.bincount(cell_of, minlength=len(cells))
        return cls(torch.from_numpy(cell_of).to(device), tuple(parts), n, right)

    def __len__(self) -> int:
        return len(self.cell)

    def count(self, right: Bool[torch.Tensor, "direction case head"]) -> Float[torch.Tensor, "cell direction head"]:
        """Right answers by cell, where the answers are: whole numbers, and a batch has too few for float32 to miss one."""
        sums = right.new_zeros((len(right), len(self.n), right.shape[-1]), dtype=torch.float32)
        return sums.index_add_(1, self.cell, right.float()).transpose(0, 1)
