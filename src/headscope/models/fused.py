"""Attention without maps: the outputs of heads and the statistics of their rows in one computation.

The scores of a layer must be scaled products of queries and keys within a row's reach. This is checked twice: the mask
of every pass must be that of a reach and of right padding, and the statistics of a dry run must equal those of the maps
of eager attention. On a CPU, one compiled loop computes attention and statistics. On CUDA, a kernel computes the
statistics in addition to fused attention. Weights of single pairs follow from the log-sum-exp of their row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import le
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.heads import Site
from headscope.core.rows import AttentionScores, Reach, RowRequest, SpanWeights
from headscope.core.transfer import to_device
from headscope.kernels import kernel
from headscope.models import capture
from headscope.stats.rows import row_statistics, score_statistics, seen

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from transformers import PreTrainedModel

    Values = Float[torch.Tensor, "batch head query statistic"]

# Takes a site's number, the statistics of its rows, and the scores they come from.
RowConsumer = Callable[[int, "Values", AttentionScores], None]
# Takes a site's number and its values [batch, kv_head, key, d], and returns the factors of the weights on each key.
KeyFactors = Callable[[int, torch.Tensor], "Float[torch.Tensor, 'batch head key']"]


class OtherMask(Exception):
    """A mask that hides keys other than padding and those out of reach, or scores that are not plain products: the
    layer must be measured with maps.
    """


@dataclass(frozen=True)
class Lengths:
    """The numbers of rows and keys of each text without padding, the largest of each, and whether there is padding."""

    rows: Int[torch.Tensor, "batch"]
    keys: Int[torch.Tensor, "batch"]
    longest: tuple[int, int]
    padded: bool

    @classmethod
    def of(cls, rows: Sequence[int], keys: Sequence[int], device: torch.device) -> Lengths:
        """The lengths of texts with these numbers of rows and keys, padded to the longest text."""
        first, second = (to_device(np.array(counts, dtype=np.int64), device) for counts in (rows, keys))
        return cls(first, second, (max(rows), max(keys)), len({*rows}) > 1 or len({*keys}) > 1)


def lengths_of(source: Sequence[int], target: Sequence[int], sites: Sequence[Site], device: torch.device) -> Callable[[int], Lengths]:
    """A function that returns the lengths of the rows and keys of a site, by its number, from the lengths of the texts
    that encoder and decoder read.
    """
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    known = {kind: Lengths.of(*sides[kind], device) for kind in {site.kind for site in sites}}
    return lambda index: known[sites[index].kind]


class Reaches:
    """The reaches of the masks of a model, by the number of the first layer that uses each mask.

    They are read from the masks of the longest texts so far. Later masks must have the same reaches. They are compared
    on the device, and `check` reads the outcome, so that no pass waits for it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Reach, tuple[int, int]]] = {}
        self._wrong: list[torch.Tensor] = []

    def find(self, number: int, mask: torch.Tensor, lengths: Lengths, rows: int, keys: int) -> Reach:
        """The reach of the mask that layer `number` is the first to use. An unsupported mask raises an error, here or
        in `check`.
        """
        if number in self._known and all(map(le, lengths.longest, self._known[number][1])):
            reach = self._known[number][0]
            require_kind(mask, rows, keys)
            self._wrong.append(differs(mask, reach, lengths))
            return reach
        reach = reach_of(mask, lengths, rows, keys)
        self._known[number] = (reach, lengths.longest)
        return reach

    def check(self) -> None:
        """Raise an error if a mask did not have the reach that was assumed."""
        wrong, self._wrong = self._wrong, []
        if wrong and bool(torch.stack(wrong).any()):
            self._known = {}
            raise OtherMask("the mask hides other keys than padding and those out of reach")


class _RowTap:
    """The handler of each attention call of one pass: it computes attention and passes the row statistics to
    `consume`.
    """

    def __init__(
        self,
        calls: capture.ExpectedCalls,
        lengths: Callable[[int], Lengths],
        requests: Callable[[int], RowRequest],
        consume: RowConsumer,
        wanted: frozenset[int] | None,
        reaches: Reaches,
        factors: KeyFactors | None = None,
    ) -> None:
        self._factors = factors
        self._expected, self._lengths, self._requests = calls, lengths, requests
        self._consume, self._wanted, self._reaches = consume, wanted, reaches
        self._seen: dict[int, tuple[Reach, torch.Tensor]] = {}
        self.calls = 0

    def __call__(self, sdpa: capture.Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        index, self.calls = self.calls, self.calls + 1
        if self._wanted is not None and index not in self._wanted:
            return sdpa(module, *args, **kwargs)[0], None
        self._expected.check(index, module)
        if not capture.plain_scores(kwargs):
            raise OtherMask("its scores are capped, or a sink takes a part of each row")
        (query, key, value), lengths = args[:3], self._lengths(index)
        reach = self._reach(index, capture.mask_of(args, kwargs), _looks_back(module, query, kwargs), query.shape[2], key.shape[2], lengths)
        scale = kwargs.get("scaling")
        scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
        request, counts = self._requests(index), (lengths.rows, lengths.keys)
        fast = kernel("attention_cpu") if query.device.type == "cpu" else None
        alone = fast is None or self._factors is not None  # whether attention is computed separately from the statistics
        output = sdpa(module, *args, **kwargs)[0] if alone else query
        if self._factors is not None:
            query, key = multiplied(query, key, scale, self._factors(index, value))
            value = value[..., :1]  # only statistics are requested
        spans = None
        if fast is not None:
            limits = (reach.before, reach.after)
            attended, values, logs, weights = fast.attend(query, key, value, scale, limits, counts, *request)
            output = output if alone else attended
            if weights is not None and request.spans is not None:
                spans = SpanWeights(weights, request.spans[0])
        else:
            values, logs = statistics(query, key, scale, reach, counts, request)
        self._consume(index, values, AttentionScores(query, key, scale, reach, counts, logs, args[2], spans))
        return output, None

    def _reach(self, index: int, mask: torch.Tensor | None, causal: bool, rows: int, keys: int, lengths: Lengths) -> Reach:
        """The reach of a mask, found once for all layers that share it."""
        if mask is None:
            if lengths.padded:
                raise OtherMask("texts are padded, and nothing hides the padding")
            return Reach(None, 0) if causal else Reach()
        if id(mask) not in self._seen:  # the mask is kept alive, so that its id is not used again
            self._seen[id(mask)] = self._reaches.find(index, mask, lengths, rows, keys), mask
        return self._seen[id(mask)][0]


def multiplied(
    query: Float[torch.Tensor, "batch head query d"],
    key: Float[torch.Tensor, "batch kv_head key d"],
    scale: float,
    factors: Float[torch.Tensor, "batch head key"],
) -> tuple[Float[torch.Tensor, "batch head query d1"], Float[torch.Tensor, "batch head key d1"]]:
    """Queries and keys whose weights are those of the given ones times a factor per key, with rows scaled to sum to 1.

    e^score · r = e^(score + ln r) takes one more feature: 1 in queries and ln r / scale in keys.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    logs = factors.to(dtype).clamp_min(torch.finfo(dtype).tiny).log() / scale
    one = query.new_ones((*query.shape[:-1], 1), dtype=dtype)
    keys = key.to(dtype).repeat_interleave(query.shape[1] // key.shape[1], 1)
    return torch.cat([query.to(dtype), one], -1), torch.cat([keys, logs[..., None]], -1)


def statistics(
    query: Float[torch.Tensor, "batch head query d"],
    key: Float[torch.Tensor, "batch kv_head key d"],
    scale: float,
    reach: Reach,
    lengths: tuple[Int[torch.Tensor, "batch"], Int[torch.Tensor, "batch"]],
    request: RowRequest,
) -> tuple[Values, Float[torch.Tensor, "batch head query"]]:
    """Row statistics of attention, and the log-sum-exp of each row, from queries and keys; by a kernel if there is
    one.
    """
    if query.is_cuda and (fast := kernel("attention_cuda")) is not None:
        values, logs = fast.statistics(query, key, scale, (reach.before, reach.after), lengths, request.members, request.offsets)
        return values, logs
    return score_statistics(query, key, scale, reach, lengths, request.members, request.offsets)


def _looks_back(module: torch.nn.Module, query: torch.Tensor, options: Mapping[str, Any]) -> bool:
    """Whether a call without a mask is causal, decided as in transformers' SDPA function."""
    causal = options.get("is_causal")
    return query.shape[2] > 1 and bool(getattr(module, "is_causal", True) if causal is None else causal)


def require_kind(mask: torch.Tensor, rows: int, keys: int) -> None:
    """Refuse a mask that is not one boolean per row and key."""
    if mask.dtype != torch.bool or mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[-2:] != (rows, keys):
        raise OtherMask("the mask is not one boolean per row and key, the same for all heads")


def differs(mask: Bool[torch.Tensor, "batch 1 query key"], reach: Reach, lengths: Lengths) -> Bool[torch.Tensor, ""]:
    """Whether a mask shows any row that is not padding other keys than those within reach."""
    rows, keys = mask.shape[-2:]
    expected = seen(reach, lengths.rows, lengths.keys, range(rows), keys)
    valid = torch.arange(rows, device=mask.device) < lengths.rows[:, None]
    return ((mask[:, 0] != expected) & valid[..., None]).any()


def reach_of(mask: Bool[torch.Tensor, "batch 1 query key"], lengths: Lengths, rows: int, keys: int) -> Reach:
    """The reach of every row under a mask that also hides padding; an error if it hides anything else."""
    require_kind(mask, rows, keys)
    text = int(lengths.rows.argmax())
    last, width = int(lengths.rows[text]) - 1, int(lengths.keys[text])
    visible = mask[min(text, len(mask) - 1), 0]
    first_seen, seen_ahead = int(visible[last].int().argmax()), int(visible[0, :width].sum())
    reach = Reach(last - first_seen if first_seen > 0 else None, seen_ahead - 1 if seen_ahead < width else None)
    if differs(mask, reach, lengths):
        raise OtherMask("the mask hides other keys than padding and those out of reach")
    return reach


def stream_rows(
    model: PreTrainedModel,
    sites: Sequence[Site],
    inputs: Mapping[str, torch.Tensor],
    lengths: Callable[[int], Lengths],
    requests: Callable[[int], RowRequest],
    consume: RowConsumer,
    wanted: frozenset[int] | None = None,
    reaches: Reaches | None = None,
    factors: KeyFactors | None = None,
) -> None:
    """Run the model once, without maps, and pass the row statistics of each wanted site to `consume`.

    With `reaches`, masks may be checked later, by `Reaches.check`. With `factors`, the statistics are those of weights
    times a factor per key, with rows scaled to sum to 1; the outputs of the heads are not changed.
    """
    calls = capture.ExpectedCalls(model, sites)
    tap = _RowTap(calls, lengths, requests, consume, wanted, reaches or Reaches(), factors)
    with torch.inference_mode(), capture.tapped(model, tap, "sdpa"):
        model(**inputs, use_cache=False)
    calls.check_number(tap.calls)


def differences(
    model: PreTrainedModel,
    sites: Sequence[Site],
    inputs: Mapping[str, torch.Tensor],
) -> list[tuple[Site, Values, Values]]:
    """For each site the row statistics of a pass without maps and those of the maps of eager attention, for
    comparison.
    """
    maps = [call.weights for call in capture.observe(model, inputs)[0]]
    source = inputs["attention_mask"].sum(1).tolist()
    target = inputs["decoder_attention_mask"].sum(1).tolist() if model.config.is_encoder_decoder else source
    keys = torch.arange(max(weights.shape[-1] for weights in maps), device=maps[0].device)
    groups = torch.stack([keys == 0, keys % 3 == 1, keys >= 0], -1).float()
    members = [groups[None, : weights.shape[-1]].expand(len(weights), -1, -1).clone() for weights in maps]
    offsets = (-2, -1, 0, 1)
    pairs = []

    def compare(index: int, values: Values, scores: AttentionScores) -> None:
        weights = maps[index].float()
        valid = torch.arange(weights.shape[2], device=weights.device) < scores.lengths[0][:, None]
        hidden = torch.arange(weights.shape[3], device=weights.device) >= scores.lengths[1][:, None]
        inside = members[index].masked_fill(hidden[..., None], 0)
        pairs.append((sites[index], values, row_statistics(weights, valid, inside, offsets)))

    lengths = lengths_of(source, target, sites, maps[0].device)
    stream_rows(model, sites, inputs, lengths, lambda index: RowRequest(members[index], offsets), compare)
    return pairs
