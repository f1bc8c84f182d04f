"""The cases of a batch, sorted into cells. A cell is one slice of the corpus, one set of labels and one group of
documents. Cases are sorted once and used for every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.numbering import Numbering
from headscope.core.slices import numbers_of
from headscope.core.transfer import to_device
from headscope.kernels import kernel
from headscope.stats.bootstrap import GROUPS, keys_of

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Int, Int64, Shaped

DENSE = 1 << 15  # up to this many cells, a GPU keeps unused cells too: to find the used ones, the host would have to wait
LABEL_SETS: Numbering[tuple[str, ...]] = Numbering()  # sets of labels under which cases are counted


@dataclass(frozen=True)
class Cases:
    """For each case the number of its cell, -1 if it is not counted; for each cell the number of its cases and, per
    rule, the number of cases that the rule gets right.

    `cells` encodes the slice, the set of labels and the group of a cell in one number. The counts stay on the device;
    `table` and `documents` fetch them.
    """

    cell: Int[torch.Tensor, "case"]
    cells: Int64[np.ndarray, "cell"]
    n: Int[torch.Tensor, "cell"]
    rules: Int[torch.Tensor, "rule cell"]
    by_text: Int[torch.Tensor, "set*text"]  # cases that enter the counts per document, by set of labels and text
    sets: int
    keys: Int64[np.ndarray, "text"]  # keys of the texts' documents
    slices: Int64[np.ndarray, "text"]  # numbers in SLICES

    @classmethod
    def of(
        cls,
        labels: Int[torch.Tensor, "case"],
        group: Int[torch.Tensor, "case"],
        rules: Bool[torch.Tensor, "rule case"],
        text: Int[torch.Tensor, "case"],
        counted: int,
        texts: Sequence[Annotation],
    ) -> Cases:
        """Cases, given for each case the number of its set of labels (-1 if it is not counted), its group, which rules
        are right, and the number of its text among `texts`. Only the first `counted` cases enter the counts per
        document.
        """
        import torch

        keys = keys_of([annotation.document for annotation in texts])
        slices = numbers_of(annotation.slice for annotation in texts)
        present, place = np.unique(slices, return_inverse=True)  # few slices, so few possible cells
        sets, left_out = len(LABEL_SETS.items), labels < 0
        number = (labels + sets * to_device(place, labels.device)[text] if len(present) > 1 else labels) * GROUPS + group
        size = len(present) * sets * GROUPS
        cell = number.masked_fill(left_out, size)
        n = _counted(cell, size)
        cells = np.arange(size)
        if labels.device.type == "cpu" or size > DENSE:  # on a CPU, finding the used cells causes no wait
            used = n.nonzero()[:, 0]
            places = torch.full((size + 1,), len(used), device=labels.device)
            places[used] = torch.arange(len(used), device=labels.device)
            cell, cells, n = places[cell], used.cpu().numpy(), n[used]
        right = _counted(cell, len(cells), rules)
        of_text = (labels[:counted] * len(keys) + text[:counted]).masked_fill(left_out[:counted], sets * len(keys))
        by_text = _counted(of_text, sets * len(keys))
        return cls(cell.masked_fill(left_out, -1), cells, n, right, by_text, sets, keys, slices)

    def __len__(self) -> int:
        return len(self.cell)

    @cached_property
    def table(self) -> tuple[Int64[np.ndarray, "used"], Int64[np.ndarray, "used column"]]:
        """The cells that have cases, by their places among all cells; and for each its set of labels, its group, its
        slice, the number of its cases and, per rule, the number of cases that the rule gets right.
        """
        n = self.n.cpu().numpy()
        used = np.flatnonzero(n)
        number, rules = self.cells[used], self.rules.cpu().numpy()[:, used]
        slices = np.unique(self.slices)[number // GROUPS // self.sets]
        return used, np.column_stack([number // GROUPS % self.sets, number % GROUPS, slices, n[used], *rules])

    @cached_property
    def documents(self) -> Int64[np.ndarray, "row 4"]:
        """One row per set of labels and document: the number of the set, the key of the document, the number of its
        cases, and its slice.
        """
        if not len(self.keys):
            return np.zeros((0, 4), np.int64)
        by_text = self.by_text.cpu().numpy()
        rows = np.flatnonzero(by_text)
        text = rows % len(self.keys)
        return np.column_stack([rows // len(self.keys), self.keys[text], by_text[rows], self.slices[text]])

    def count(self, right: Bool[torch.Tensor, "direction case head"]) -> Shaped[torch.Tensor, "cell direction head"]:
        """Right answers per cell, on the device of the answers. The counts of one batch are small enough to be exact in
        float32.
        """
        import torch

        sums = right.new_zeros((len(right), len(self.cells) + 1, right.shape[-1]), dtype=torch.float32)
        return sums.index_add_(1, self._places, right.float())[:, :-1].transpose(0, 1)

    def count_chosen(
        self,
        chosen: Int[torch.Tensor, "direction text head position"],
        text: Int[torch.Tensor, "case"],
        position: Int[torch.Tensor, "case"],
        answer: Int[torch.Tensor, "case"],
    ) -> Shaped[torch.Tensor, "cell direction head"]:
        """How often each head chooses the answer, per cell. A case is a position of a text and the answer for that
        position.
        """
        import torch

        if chosen.device.type == "cpu" and (fast := kernel("words_cpu")) is not None:
            asked = (tensor.numpy() for tensor in (chosen, text, position, answer, self._places))
            return torch.from_numpy(fast.count_right(*asked, len(self.cells) + 1))[:-1]
        if chosen.is_cuda and (fast := kernel("words_cuda")) is not None:
            counts: torch.Tensor = fast.count_right(chosen, text, position, answer, self._places, len(self.cells))
            return counts
        return self.count(chosen[:, text, :, position].transpose(0, 1) == answer[:, None])

    @cached_property
    def _places(self) -> Int[torch.Tensor, "case"]:
        """The cell of each case; the number after the last cell for cases that are not counted."""
        return self.cell.masked_fill(self.cell < 0, len(self.cells))


def _counted(cell: Int[torch.Tensor, "case"], size: int, which: Bool[torch.Tensor, "rule case"] | None = None) -> torch.Tensor:
    """The number of cases of each of `size` cells or, with `which`, the number of those that each rule gets right.
    Other cells are not counted. On a GPU `bincount` is avoided, since the host would wait for it.
    """
    import torch

    rows = torch.ones((1, len(cell)), dtype=torch.int64, device=cell.device) if which is None else which.to(torch.int64)
    if cell.device.type == "cpu":
        counts = [torch.bincount(cell[row > 0], minlength=size)[:size] for row in rows]
        found = torch.stack(counts) if counts else cell.new_zeros((0, size))
    else:
        found = cell.new_zeros((len(rows), size + 1)).index_add_(1, cell, rows)[:, :-1]
    return found[0] if which is None else found
