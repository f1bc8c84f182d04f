"""The cases of a batch, sorted into cells: a cell is a label and a group of documents. Made once, used for every
layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.stats.bootstrap import GROUPS

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int, Int64


class Part(NamedTuple):
    """The cells of one label: a stretch of the batch's cells, and the groups of documents they belong to; and each
    document's cases.
    """

    label: str
    cells: slice
    groups: Int[np.ndarray, "cell"]
    documents: Int64[np.ndarray, "document 2"]  # the document's key, and how many cases it has


@dataclass(frozen=True)
class Cases:
    """For each case the number of its cell; for each cell how many cases it has, and how many of them each rule
    answers rightly.
    """

    cell: Int[torch.Tensor, "case"]
    parts: tuple[Part, ...]
    n: Int64[np.ndarray, "cell"]
    rules: Int64[np.ndarray, "cell rule"]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        label: Int[np.ndarray, "case"],
        document: Int64[np.ndarray, "case"],
        group: Int64[np.ndarray, "case"],
        rules: Bool[np.ndarray, "case rule"],
        device: torch.device,
    ) -> Cases:
        """Cases given by the number of their label, the key of their document, their group, and which rules are
        right.
        """
        import torch

        cells, cell_of = np.unique(label * GROUPS + group, return_inverse=True)
        starts = np.searchsorted(cells // GROUPS, np.arange(len(labels) + 1))
        documents = _by_document(label, document, len(labels))
        parts = [
            Part(name, slice(a, b), cells[a:b] % GROUPS, own)
            for name, a, b, own in zip(labels, starts, starts[1:], documents, strict=False)
            if b > a
        ]
        right = np.zeros((len(cells), rules.shape[1]), dtype=np.int64)
        np.add.at(right, cell_of, rules.astype(np.int64))
        n = np.bincount(cell_of, minlength=len(cells))
        return cls(torch.from_numpy(cell_of).to(device), tuple(parts), n, right)

    def __len__(self) -> int:
        return len(self.cell)

    def count(self, right: Bool[torch.Tensor, "direction case head"]) -> Float[torch.Tensor, "cell direction head"]:
        """Right answers by cell, where the answers are: whole numbers, and a batch has too few for float32 to miss
        one.
        """
        import torch

        sums = right.new_zeros((len(right), len(self.n), right.shape[-1]), dtype=torch.float32)
        return sums.index_add_(1, self.cell, right.float()).transpose(0, 1)


def _by_document(label: Int[np.ndarray, "case"], document: Int64[np.ndarray, "case"], labels: int) -> list[Int64[np.ndarray, "document 2"]]:
    """For each label the keys of its documents, and how many cases each has."""
    order = np.lexsort((document, label))
    label, document = label[order], document[order]
    starts = np.flatnonzero(np.diff(label, prepend=-1) | np.diff(document, prepend=document[:1]))
    counts = np.column_stack([document[starts], np.diff(starts, append=len(label))])
    return np.split(counts, np.searchsorted(label[starts], np.arange(1, labels)))
