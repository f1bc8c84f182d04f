"""Blocks whose parts are known by name (see `layouts`), evaluated at their input hidden states.

Each block is rebuilt from its parts and run. If the result differs from that of the model, the block is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch

from headscope.models.jacobian.layers import Layer
from headscope.models.jacobian.layouts import KNOWN, PARTS, Layout, Order
from headscope.models.jacobian.parts import Feed, Map, NextBlock, Normed, Rotation, by_head

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Block:
    """A block at its input hidden states: its weights, and the intermediate results of a forward pass.

    Queries and keys are as they are multiplied: rotated if there is a `turn`. `shared` heads share one key and value,
    which are repeated for each of them. If a normalisation is `ahead` of the attention, its weights are folded into the
    maps. `between` is the normalisation ahead of the feed-forward part, which is `parallel` to the attention if it
    reads the block's input. `last` is the final normalisation of a post-LN block.
    """

    query: Map
    key: Map
    value: Map
    out: Map
    scaling: float
    shared: int
    turn: Rotation | None
    weights: Float[torch.Tensor, "head target source"]
    queries: Float[torch.Tensor, "head token size"]
    keys: Float[torch.Tensor, "head token size"]
    values: Float[torch.Tensor, "head token size"]
    heads: Float[torch.Tensor, "head token size"]
    ahead: NextBlock | None
    between: Normed
    feed: Feed
    last: Normed | None
    parallel: bool
    output: Float[torch.Tensor, "token feature"]

    @cached_property
    def causal(self) -> bool:
        """Whether no token attends to a later one, so that no token influences an earlier one."""
        return not bool(self.weights.triu(1).any())

    @cached_property
    def projections(self) -> Float[torch.Tensor, "inner feature"]:
        """The weights of queries, keys and values, stacked; shared keys and values once."""
        return torch.cat([self.query.weight, self._once(self.key).flatten(0, 1), self._once(self.value).flatten(0, 1)])

    def _once(self, part: Map) -> Float[torch.Tensor, "group size feature"]:
        return by_head(part.weight, 0, len(self.weights))[:: self.shared]

    def products(self, one: Map, other: Map) -> Float[torch.Tensor, "head size head size"]:
        """The products of the weights of two maps, to keys or values, for each pair of heads."""
        made = torch.einsum("hac,gbc->hagb", self._once(one), self._once(other))
        return made.repeat_interleave(self.shared, 0).repeat_interleave(self.shared, 2)

    @cached_property
    def meeting(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Products of values with values, of values with keys and of keys with keys [head, size, head, size]."""
        return self.products(self.value, self.value), self.products(self.value, self.key), self.products(self.key, self.key)


def read(layer: Layer, count: int, tolerance: float = 1e-4) -> Block | str:
    """The layer as a block with `count` heads, or the reason why it is not a known block.

    The output that the block adds to a token may differ from the model's by `tolerance` times its largest feature, plus
    the rounding of the token's state, which may be far larger.
    """
    name = type(layer.module).__name__
    if name not in KNOWN:
        return f"{name} is not a known block"
    nearest = torch.inf
    for order in KNOWN[name].orders:
        try:
            block = _run(layer, KNOWN[name], order, count)
        except (AttributeError, RuntimeError, TypeError) as error:
            return f"{name} is not built as expected ({str(error).splitlines()[0]})"
        eps = torch.finfo(layer.result.dtype).eps
        apart, change, size = ((layer.output - x).abs().amax(-1) for x in (block.output, layer.states, 0))
        if bool((apart <= max(tolerance, 4 * eps) * change + 2 * eps * torch.maximum(change, size)).all()):
            return block
        nearest = min(nearest, float(apart.max()))
    return f"{name} rebuilt from its parts differs from the model by {nearest:.2g}"


def _run(layer: Layer, layout: Layout, order: Order, count: int) -> Block:
    x = layer.states
    parts: dict[str, Any] = {name: attrgetter(path)(layer.module) for name, path in zip(PARTS, layout.paths, strict=True)}
    single = _cut([Map.of(parts[name]) for name in PARTS[:3]], layout, count)
    shared = len(single[0].weight) // len(single[1].weight)
    maps = dict(zip(PARTS, _copied(single, count), strict=False))
    ahead, given = None, x
    if order != "post":
        ahead, given = NextBlock.at(parts["first"], x)
        maps = {name: part.behind(parts["first"]) for name, part in maps.items()}
    queries, keys, values = (by_head(part(given), 1, count).transpose(0, 1) for part in maps.values())
    turn = None if (angles := layer.argument("position_embeddings")) is None else Rotation(*(angle[0].to(x) for angle in angles))
    if turn is not None:
        queries, keys = turn(queries, 1), turn(keys, 1)
    scaling = queries.shape[-1] ** -0.5
    scores = queries @ keys.mT * scaling
    for name in ("attention_mask", "position_bias"):  # neither depends on the hidden states
        if (bias := layer.argument(name)) is not None:
            scores = scores + bias[0].to(scores)
    weights = scores.softmax(-1)
    heads = weights @ values
    out = Map.of(parts["out"])
    y = x + out(heads.transpose(0, 1).flatten(1))
    between = Normed.at(parts["first"], y) if order == "post" else Normed.at(parts["second"], x if order == "parallel" else y)
    gate = Map.of(attrgetter(layout.gate)(layer.module)) if layout.gate else None
    feed, added = Feed.at(Map.of(parts["up"]), parts["activation"], Map.of(parts["down"]), gate, between.value)
    last = Normed.at(parts["second"], between.value + added) if order == "post" else None
    return Block(**maps, out=out, scaling=scaling, shared=shared, turn=turn, weights=weights, queries=queries, keys=keys, values=values,
                 heads=heads, ahead=ahead, between=between, feed=feed, last=last, parallel=order == "parallel",
                 output=y + added if last is None else last.value)  # fmt: skip


def _cut(maps: list[Map], layout: Layout, count: int) -> list[Map]:
    """The maps to queries, keys and values, separated if they are fused."""

    def cut(x: torch.Tensor, number: int) -> torch.Tensor:
        if layout.fused == "heads":
            return by_head(by_head(x, 0, count), 1, 3)[:, number].flatten(0, 1)
        return x.chunk(3)[number] if layout.fused else x

    return [part.rows(partial(cut, number=number)) for number, part in enumerate(maps)]


def _copied(maps: list[Map], count: int) -> list[Map]:
    """The maps to queries, keys and values, with shared ones repeated for all heads."""
    size = len(maps[0].weight) // count

    def copied(x: torch.Tensor) -> torch.Tensor:
        heads = by_head(x, 0, len(x) // size)
        return heads.repeat_interleave(count // len(heads), 0).flatten(0, 1)

    return [part.rows(copied) for part in maps]
