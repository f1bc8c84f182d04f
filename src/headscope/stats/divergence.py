"""Jensen-Shannon divergence between all pairs of heads, in nats (docs/alike.md).

With S(p, q) the sum of (p + q) log (p + q) over keys, JS(p, q) = S(p, p) / 4 + S(q, q) / 4 - S(p, q) / 2. Only one sum
per pair of heads, including each head with itself, must be computed. The result is symmetric, and exactly 0 between
equal rows.

The sums are computed by a compiled loop on a CPU (pairs_cpu), by a kernel on CUDA (pairs_cuda), and in plain torch
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.core.rows import AttentionScores
from headscope.core.transfer import to_device
from headscope.kernels import kernel
from headscope.stats.rows import score_blocks

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Float32, Float64, Int64

BLOCK = 1 << 18  # numbers that the plain form processes at a time, so that they stay in the cache
Form = Literal["numba", "triton", "plain"]


def form_for(device: torch.device) -> Form:
    """The fastest form that works on a device."""
    if device.type == "cuda":
        return "triton" if kernel("pairs_cuda") is not None else "plain"
    return "numba" if device.type == "cpu" and kernel("pairs_cpu") is not None else "plain"


class RowStack:
    """Rows of attention of many heads, in the memory layout that a device's form reads fastest.

    Row r is `maps[texts[r], :, places[r]]` of every site; `heads` is the number of heads of each site. Every row is
    divided by its sum, so the mass that a sink takes does not count; a row without any weight stays empty.
    """

    def __init__(
        self,
        texts: Int64[np.ndarray, "row"],
        places: Int64[np.ndarray, "row"],
        heads: Sequence[int],
        keys: int,
        device: torch.device,
        form: Form | None = None,
    ) -> None:
        import torch

        self.form = form or form_for(device)
        self._texts, self._places = (to_device(numbers, device) for numbers in (texts, places))
        self._host_places, rows = places, len(texts)
        self._span = range(int(places.min(initial=0)), int(places.max(initial=-1)) + 1)
        self._chosen: dict[tuple[int, int], Int64[torch.Tensor, "some"]] = {}
        self._first = np.concatenate([[0], np.cumsum(heads)])
        shape = (len(heads), rows, keys, max(heads)) if self.form == "triton" else (rows, sum(heads), keys)
        self._weights = torch.empty(shape, dtype=torch.float32, device=device)
        if min(heads) < max(heads) and self.form == "triton":
            self._weights.zero_()  # the places of heads that a site lacks stay empty

    def put(
        self,
        site: int,
        maps: Float[torch.Tensor, "text head query key"],
        towards: tuple[float, Float[torch.Tensor, "text query key"]] | None = None,
        start: int = 0,
    ) -> None:
        """Store the rows of one site that are in its maps, which begin with row `start`. `towards` is a share and the
        maps that are mixed in with it.
        """
        import torch

        numbers = self._numbers(start, start + maps.shape[2])
        if self.form == "triton" and towards is None:
            fast = kernel("pairs_cuda")
            assert fast is not None
            if len(numbers):
                fast.lay_out(maps, self._texts, self._places, numbers, start, self._weights[site])
            return
        texts, places = self._texts[numbers], self._places[numbers] - start
        rows = maps[texts, :, places].float()
        rows /= rows.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        if towards is not None:
            share, even = towards
            rows.lerp_(even[texts, places][:, None], share)
        if self.form == "triton":
            self._weights[site, numbers, :, : rows.shape[1]] = rows.transpose(1, 2)
        else:
            self._weights[numbers, self._first[site] : self._first[site + 1]] = rows

    def put_scores(self, site: int, scores: AttentionScores) -> None:
        """Store the rows of one site, with weights computed from its scores."""
        for rows, weights in score_blocks(scores, self._span):
            self.put(site, weights, start=rows.start)

    def _numbers(self, start: int, stop: int) -> Int64[torch.Tensor, "some"]:
        """The numbers of the rows from `start` up to `stop` of their maps, which are the same for all sites."""
        if (start, stop) not in self._chosen:
            numbers = np.flatnonzero((self._host_places >= start) & (self._host_places < stop))
            self._chosen[start, stop] = to_device(numbers, self._weights.device)
        return self._chosen[start, stop]

    def ends(self) -> Int64[np.ndarray, "row"]:
        """For each row, the number of keys up to the last one that some head attends to."""
        import torch

        seen = self._weights.ne(0)
        seen = seen.any(3).any(0) if self.form == "triton" else seen.any(1)  # [row, key]
        places = torch.arange(1, seen.shape[1] + 1, device=seen.device)
        return (seen * places).amax(1).cpu().numpy()

    def divergences(
        self, starts: Int64[np.ndarray, "segment+1"], ends: Int64[np.ndarray, "row"]
    ) -> Float64[torch.Tensor, "segment head head"]:
        """Divergences of all pairs of heads, summed over rows `starts[s]` to `starts[s + 1]` and keys below `ends`."""
        sums = self._pair_sums(starts, ends)
        entropies = sums.diagonal(dim1=1, dim2=2)
        upper = ((entropies[:, :, None] + entropies[:, None, :]) / 4 - sums / 2).clamp_min_(0).triu(1) * math.log(2)
        return upper + upper.transpose(1, 2)

    def _pair_sums(
        self, starts: Int64[np.ndarray, "segment+1"], ends: Int64[np.ndarray, "row"]
    ) -> Float64[torch.Tensor, "segment head head"]:
        import torch

        if self.form == "plain":
            return _plain(self._weights, starts)
        fast = kernel("pairs_cuda" if self.form == "triton" else "pairs_cpu")
        assert fast is not None
        if self.form == "numba":
            return torch.from_numpy(fast.pair_sums(self._weights.numpy(), starts, ends))
        device, heads = self._weights.device, np.diff(self._first)
        offsets = tuple(site * self._weights.stride(0) + head for site, count in enumerate(heads) for head in range(count))
        on_device = (to_device(numbers.astype(np.int32), device) for numbers in (starts, ends))
        pair_sums: torch.Tensor = fast.pair_sums(self._weights, offsets, *on_device, int(np.diff(starts).max(initial=0)))
        return pair_sums


def _plain(
    weights: Float32[torch.Tensor, "row head key"], starts: Int64[np.ndarray, "segment+1"]
) -> Float64[torch.Tensor, "segment head head"]:
    """The sums in plain torch: the fallback, and the reference of the kernels' tests."""
    import torch

    heads, keys = weights.shape[1:]
    sums = torch.zeros((len(starts) - 1, heads, heads), dtype=torch.float64, device=weights.device)
    step = max(1, BLOCK // (heads * keys))
    for segment, (start, stop) in enumerate(pairwise(starts)):
        for row in range(int(start), int(stop), step):
            part = weights[row : min(row + step, int(stop))]
            for head in range(heads):
                both = part[:, head:] + part[:, head, None]
                logs = both.clamp_min(torch.finfo(both.dtype).tiny).log2_()
                sums[segment, head, head:] += logs.mul_(both).sum(-1).sum(0, dtype=torch.float64)
    return sums


def jensen_shannon(maps: Float[torch.Tensor, "head row key"]) -> tuple[Float64[torch.Tensor, "head head"], int]:
    """The divergence of every pair of heads, summed over rows, and the number of rows. Sums of several texts can be
    added.
    """
    heads, rows, keys = maps.shape
    stack = RowStack(np.zeros(rows, dtype=np.int64), np.arange(rows), [heads], keys, maps.device)
    stack.put(0, maps[None])
    return stack.divergences(np.array([0, rows]), np.full(rows, keys))[0], rows
