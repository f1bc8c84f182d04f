"""The cases of a batch, sorted into cells: a cell is what a case is counted under, and a group of documents. Made once,
used for every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.numbering import Numbering
from headscope.core.slices import numbers_of
from headscope.core.transfer import to_device
from headscope.stats.bootstrap import GROUPS, keys_of

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int, Int64

LABEL_SETS: Numbering[tuple[str, ...]] = Numbering()  # the labels under which a case is counted


@dataclass(frozen=True)
class Cases:
    """For each case the number of its cell; for each cell its set of labels and its group of documents, how many cases
    it has, and how many of them each rule answers rightly.

    Cells are of one slice each. `documents` has a row for each set of labels and document: the number of the set, the
    document's key, how many cases the document has, and its slice.
    """

    cell: Int[torch.Tensor, "case"]
    labels: Int64[np.ndarray, "cell"]  # numbers in LABEL_SETS
    groups: Int64[np.ndarray, "cell"]
    n: Int64[np.ndarray, "cell"]
    rules: Int64[np.ndarray, "cell rule"]
    slices: Int64[np.ndarray, "cell"]  # numbers in SLICES
    documents: Int64[np.ndarray, "row 4"]

    @classmethod
    def of(
        cls,
        labels: Int[np.ndarray, "case"],
        group: Int[np.ndarray, "case"],
        rules: Sequence[Bool[np.ndarray, "case"]],
        text: Int[np.ndarray, "case"],
        counted: int,
        texts: Sequence[Annotation],
        device: torch.device,
    ) -> Cases:
        """Cases given by the number of their set of labels, their group, which rules are right, and their text among
        `texts`. The documents of the first `counted` of them are counted.
        """
        keys = keys_of([annotation.document for annotation in texts])
        of_text = numbers_of(annotation.slice for annotation in texts)
        present, place = np.unique(of_text, return_inverse=True)  # few, so that few cells are possible
        sets = int(labels.max(initial=0)) + 1
        key = (place[text] * sets + labels.astype(np.int64)) * GROUPS + group
        n = np.bincount(key)
        used = np.flatnonzero(n)
        cell = _places(used, len(n)).take(key)
        right = [np.bincount(cell[found], minlength=len(used)) for found in rules]
        by_text = np.bincount(labels[:counted].astype(np.int64) * len(keys) + text[:counted])
        rows = np.flatnonzero(by_text)
        documents = np.zeros((0, 4), np.int64)
        if len(keys):
            documents = np.column_stack([rows // len(keys), keys[rows % len(keys)], by_text[rows], of_text[rows % len(keys)]])
        counts = np.stack(right, 1) if right else np.zeros((len(used), 0), dtype=np.int64)
        slices = present[used // GROUPS // sets]
        return cls(to_device(cell, device), used // GROUPS % sets, used % GROUPS, n[used], counts, slices, documents)

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
