"""The probe of Tenney et al. (2019), many probes at once.

The layers are mixed by scalar weights. Each token is projected to `hidden` numbers, with separate matrices for the
first and the second span. A span is the mean of its tokens, weighted by a softmax over scores. A layer with tanh and
layer norm, dropout, and one logit per label follow.

All parameters begin with two axes, [seed, probe]. Probes are independent: training them together equals training each
alone. Linear steps are reordered to be cheap: a span is pooled before it is projected, and spans that several targets
share are computed once. The scorer has no bias, because a softmax does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    Shown = Sequence[tuple[int, ...]]  # for each probe the layers it sees

EPSILON = 1e-5  # of layer norm


def cumulative(layers: int) -> Shown:
    """The layers that cumulative probes see: layer 0 alone, 0 and 1, and so on to all `layers`, layer 0 included."""
    return [tuple(range(last + 1)) for last in range(layers)]


def single(layers: int) -> Shown:
    """The layers that probes of single layers see."""
    return [(layer,) for layer in range(layers)]


def visible(shown: Shown, layers: int) -> Bool[torch.Tensor, "probe layer"]:
    """Which layers each probe sees."""
    seen = torch.zeros(len(shown), layers, dtype=torch.bool)
    for row, layers_seen in zip(seen, shown, strict=True):
        row[list(layers_seen)] = True
    return seen


def shares(numbers: Float[torch.Tensor, "*probes layer"], seen: Bool[torch.Tensor, "probe layer"]) -> Float[torch.Tensor, "*probes layer"]:
    """s: the share of each layer in the mix; 0 for layers that a probe does not see."""
    return numbers.masked_fill(~seen, -torch.inf).softmax(-1)


def mixed(
    states: Float[torch.Tensor, "seed layer *shape"],
    numbers: Float[torch.Tensor, "seed probe layer"],
    scale: Float[torch.Tensor, "seed probe"],
    seen: Bool[torch.Tensor, "probe layer"],
) -> Float[torch.Tensor, "seed probe *shape"]:
    """The mixed layers of all probes, by one product of matrices."""
    weights = shares(numbers, seen) * scale[..., None]
    return (weights @ states.flatten(2)).view(*weights.shape[:2], *states.shape[2:])


@dataclass(frozen=True)
class Spans:
    """The tokens of each span of a batch, and the span of each target, counted over all texts."""

    held: Bool[torch.Tensor, "seed text span token"]
    of: Int[torch.Tensor, "seed target"]


@dataclass(frozen=True)
class TargetBatch:
    """States of texts, a batch per seed, and the targets in them; `real` says which targets are not padding."""

    states: Float[torch.Tensor, "seed layer text token d"]
    slots: tuple[Spans, ...]
    labels: Float[torch.Tensor, "seed variant target label"]
    real: Float[torch.Tensor, "seed target"]
    targets: Int[torch.Tensor, "seed target"]  # their numbers, -1 for padding

    def repeated(self, seeds: int) -> TargetBatch:
        """The same texts for several seeds."""

        def each(values: torch.Tensor) -> torch.Tensor:
            return values.expand(seeds, *values.shape[1:])

        slots = tuple(Spans(each(spans.held), each(spans.of)) for spans in self.slots)
        return TargetBatch(each(self.states), slots, each(self.labels), each(self.real), each(self.targets))


@dataclass(frozen=True)
class Shape:
    """The size of a probe: layers (with layer 0), their width, spans per target, labels, and the probe's width."""

    layers: int
    size: int
    slots: int
    labels: int
    hidden: int = 256


class Probes:
    """Probes with parameters [seed, probe, ...]; those of one seed start equal and differ only in their layers."""

    def __init__(self, shape: Shape, shown: Shown, seeds: list[int], device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.shape, self.seeds = shape, seeds
        self.seen = visible(shown, shape.layers).to(device)
        drawn = [_initial(shape, torch.Generator().manual_seed(seed)) for seed in seeds]
        self.parameters: dict[str, torch.Tensor] = {}
        for name in drawn[0]:
            stacked = torch.stack([initial[name] for initial in drawn])[:, None].expand(-1, len(shown), *drawn[0][name].shape)
            self.parameters[name] = stacked.to(device, dtype, copy=True).contiguous().requires_grad_()

    def __call__(
        self, batch: TargetBatch, kept: Float[torch.Tensor, "seed target hidden"] | None = None
    ) -> Float[torch.Tensor, "seed probe target label"]:
        """The logits of a batch. `kept` is the scaled mask of dropout, equal for all probes of a seed."""
        p = self.parameters
        states = mixed(batch.states, p["mix"], p["scale"], self.seen)
        inner = p["inner_bias"][:, :, None]
        for slot, spans in enumerate(batch.slots):
            project, scorer = p[f"project_{slot}"], p[f"scorer_{slot}"]
            pooled = _pooled(states, (project @ scorer[..., None])[..., 0], spans.held).flatten(2, 3)
            inner = inner + _taken(_twice(pooled, project, p[f"project_{slot}_bias"][:, :, None], p[f"inner_{slot}"]), spans.of)
        features = torch.nn.functional.layer_norm(inner.tanh(), inner.shape[-1:], eps=EPSILON)
        features = features * p["norm"][:, :, None] + p["norm_bias"][:, :, None]
        if kept is not None:
            features = features * kept[:, None]
        return features @ p["out"] + p["out_bias"][:, :, None]

    def some(self, chosen: Int[torch.Tensor, "some"]) -> Probes:
        """Copies of some of the probes, of all seeds."""
        part = copy(self)
        part.seen = self.seen[chosen]
        part.parameters = {name: value.detach()[:, chosen].requires_grad_() for name, value in self.parameters.items()}
        return part

    def put(self, chosen: Int[torch.Tensor, "some"], part: Probes) -> None:
        """Give some of the probes the current parameters of their copies."""
        with torch.no_grad():
            for name, value in self.parameters.items():
                value[:, chosen] = part.parameters[name]

    @property
    def weights(self) -> Float[torch.Tensor, "seed probe layer"]:
        """The share of each layer in each probe's mix."""
        return shares(self.parameters["mix"].detach(), self.seen)


def _twice(
    rows: Float[torch.Tensor, "seed probe span d"],
    first: Float[torch.Tensor, "seed probe d hidden"],
    bias: Float[torch.Tensor, "seed probe 1 hidden"],
    second: Float[torch.Tensor, "seed probe hidden hidden"],
) -> Float[torch.Tensor, "seed probe span hidden"]:
    """Rows through two linear layers, whose matrices are multiplied first if that is cheaper."""
    if rows.shape[2] > first.shape[2]:
        return rows @ (first @ second) + bias @ second
    return (rows @ first + bias) @ second


def _pooled(
    states: Float[torch.Tensor, "seed probe text token d"],
    scorer: Float[torch.Tensor, "seed probe d"],
    held: Bool[torch.Tensor, "seed text span token"],
) -> Float[torch.Tensor, "seed probe text span d"]:
    """Spans as weighted means of their tokens."""
    scores = (states.flatten(2, 3) @ scorer[..., None]).view(*states.shape[:4])
    weights = scores[..., None, :].masked_fill(~held[:, None], -torch.inf).softmax(-1)
    return weights @ states


def _taken(
    rows: Float[torch.Tensor, "seed probe span d"], of: Int[torch.Tensor, "seed target"]
) -> Float[torch.Tensor, "seed probe target d"]:
    """For each target the row of its span."""
    if len(rows) == 1:
        return rows.index_select(2, of[0])
    return torch.stack([rows_of_seed.index_select(1, numbers) for rows_of_seed, numbers in zip(rows, of, strict=True)])


def _initial(shape: Shape, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """The initial parameters of one probe: torch's default for linear layers, and equal shares of all layers."""

    def drawn(*size: int, inputs: int) -> torch.Tensor:
        return (2 * torch.rand(size, generator=generator) - 1) / math.sqrt(inputs)

    width = shape.hidden
    parameters = {"mix": torch.zeros(shape.layers), "scale": torch.ones(())}
    for slot in range(shape.slots):
        parameters[f"project_{slot}"] = drawn(shape.size, width, inputs=shape.size)
        parameters[f"project_{slot}_bias"] = drawn(width, inputs=shape.size)
        parameters[f"scorer_{slot}"] = drawn(width, inputs=width)
        parameters[f"inner_{slot}"] = drawn(width, width, inputs=shape.slots * width)
    parameters["inner_bias"] = drawn(width, inputs=shape.slots * width)
    parameters |= {"norm": torch.ones(width), "norm_bias": torch.zeros(width)}
    return parameters | {"out": drawn(width, shape.labels, inputs=width), "out_bias": drawn(shape.labels, inputs=width)}
