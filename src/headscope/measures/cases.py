"""The cases of a batch, sorted into cells: a cell is what a case is counted under, and a group of documents. Made once,
used for every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.numbering import Numbering
from headscope.stats.bootstrap import GROUPS

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int, Int64

LABEL_SETS: Numbering[tuple[str, ...]] = Numbering()  # the labels under which a case is counted


@dataclass(frozen=True)
class Cases:
    """For each case the number of its cell; for each cell its set of labels and its group of documents, how many cases
    it has, and how many of them each rule answers rightly.

    `documents` has a row for each set of labels and document: the number of the set, the document's key, and how many
    cases the document has.
    """

    cell: Int[torch.Tensor, "case"]
    labels: Int64[np.ndarray, "cell"]  # numbers in LABEL_SETS
    groups: Int64[np.ndarray, "cell"]
    n: Int64[np.ndarray, "cell"]
    rules: Int64[np.ndarray, "cell rule"]
    documents: Int64[np.ndarray, "row 3"]

    @classmethod
    def of(
        cls,
        labels: Int[np.ndarray, "case"],
        group: Int[np.ndarray, "case"],
        rules: Sequence[Bool[np.ndarray, "case"]],
        text: Int[np.ndarray, "counted"],
        keys: Int64[np.ndarray, "text"],
        device: torch.device,
    ) -> Cases:
        """Cases given by the number of their set of labels, their group, and which rules are right. The documents of
        the first of them are counted: as many as `text` says the text of; `keys` are those of the texts' documents.
        """
        import torch

        key = labels.astype(np.int64) * GROUPS + group
        n = np.bincount(key)
        used = np.flatnonzero(n)
        cell = _places(used, len(n))[key]
        right = [np.bincount(cell[found], minlength=len(used)) for found in rules]
        by_text = np.bincount(labels[: len(text)].astype(np.int64) * len(keys) + text)
        rows = np.flatnonzero(by_text)
        documents = np.column_stack([rows // len(keys), keys[rows % len(keys)], by_text[rows]]) if len(keys) else np.zeros((0, 3), np.int64)
        counts = np.stack(right, 1) if right else np.zeros((len(used), 0), dtype=np.int64)
        return cls(torch.from_numpy(cell).to(device), used // GROUPS, used % GROUPS, n[used], counts, documents)

    def __len__(self) -> int:
        return len(self.cell)

    def count(self, right: Bool[torch.Tensor, "direction case head"]) -> Float[torch.Tensor, "cell direction head"]:
        """Right answers by cell, where the answers are: whole numbers, and a batch has too few for float32 to miss
        one.
        """
        import torch

        sums = right.new_zeros((len(right), len(self.n), right.shape[-1]), dtype=torch.float32)
        return sums.index_add_(1, self.cell, right.float()).transpose(0, 1)


def _places(used: Int64[np.ndarray, "used"], size: int) -> Int64[np.ndarray, "size"]:
    places = np.zeros(size, dtype=np.int64)
    places[used] = np.arange(len(used))
    return places
