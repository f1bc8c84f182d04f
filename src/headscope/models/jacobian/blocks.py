"""Post-LN blocks whose parts are known by name: BERT's and those that are built the same way.

    y = x + Wo·attention(x) + bo,   z = LN1(y),   out = LN2(z + W2·act(W1·z + b1) + b2)

What is read here is put together again and run, and must give what the model itself gave; a block that does not is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import torch
from torch.nn import LayerNorm, Linear, Module
from torch.nn.functional import linear

from headscope.models.jacobian.layers import Layer

if TYPE_CHECKING:
    from jaxtyping import Float

PARTS = ("query", "key", "value", "out", "first", "up", "activation", "down", "second")
_BERT = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "intermediate.intermediate_act_fn",
    "output.dense",
    "output.LayerNorm",
)
_BART = (
    *(f"self_attn.{name}_proj" for name in "qkv"),
    "self_attn.out_proj",
    "self_attn_layer_norm",
    "fc1",
    "activation_fn",
    "fc2",
    "final_layer_norm",
)
_MPNET = (*(f"attention.attn.{name}" for name in "qkvo"), "attention.LayerNorm", *_BERT[5:])
_DISTIL = (
    *(f"attention.{name}_lin" for name in ("q", "k", "v", "out")),
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.activation",
    "ffn.lin2",
    "output_layer_norm",
)
_ALBERT = tuple(
    f"albert_layers.0.{name}"
    for name in (
        *(f"attention.{part}" for part in ("query", "key", "value", "dense", "LayerNorm")),
        "ffn",
        "activation",
        "ffn_output",
        "full_layer_layer_norm",
    )
)
_LIKE_BERT = "Bert Roberta XLMRoberta Electra Camembert Ernie Data2VecText LayoutLM Splinter BertGeneration"
_LIKE_BART = "Bart Marian PLBart BlenderbotSmall"
# The class of a block, and where its parts lie, in the order of PARTS.
KNOWN: dict[str, tuple[str, ...]] = {
    **{f"{name}Layer": _BERT for name in _LIKE_BERT.split()},
    **{f"{name}EncoderLayer": _BART for name in _LIKE_BART.split()},
    "MPNetLayer": _MPNET,
    "TransformerBlock": _DISTIL,
    "AlbertLayerGroup": _ALBERT,
}


@dataclass(frozen=True)
class Map:
    """A linear map with a bias."""

    weight: Float[torch.Tensor, "out in"]
    bias: torch.Tensor | None

    @classmethod
    def of(cls, module: Linear) -> Map:
        """The map of a module, in float32 at least."""
        weight, bias = module.weight.detach(), module.bias
        dtype = torch.promote_types(weight.dtype, torch.float32)
        return cls(weight.to(dtype), None if bias is None else bias.detach().to(dtype))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The map of some points."""
        return linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Normed:
    """A layer normalisation at some points: γ·hat + β, with the Jacobian diag(scale)·(I − 11ᵀ/d − hat·hatᵀ/d), scale = γ/σ."""

    hat: Float[torch.Tensor, "token feature"]
    scale: Float[torch.Tensor, "token feature"]
    value: Float[torch.Tensor, "token feature"]

    @classmethod
    def at(cls, module: LayerNorm, x: torch.Tensor) -> Normed:
        """The normalisation of these points."""
        weight, bias = module.weight.detach().to(x), module.bias.detach().to(x)
        rest = x - x.mean(-1, keepdim=True)
        inverse = (rest.square().mean(-1, keepdim=True) + module.eps).rsqrt()
        return cls(rest * inverse, weight * inverse, weight * (rest * inverse) + bias)

    def take(self, tokens: slice) -> Normed:
        """Some of the points."""
        return Normed(self.hat[tokens], self.scale[tokens], self.value[tokens])

    def left(self, x: Float[torch.Tensor, "token feature column"]) -> Float[torch.Tensor, "token feature column"]:
        """The Jacobian at each point times a matrix."""
        hat = self.hat[:, None]
        rest = x - x.mean(-2, keepdim=True)
        return self.scale[..., None] * torch.baddbmm(rest, hat.mT, hat @ x, alpha=-1 / x.shape[-2])

    def right(self, x: Float[torch.Tensor, "token row feature"]) -> Float[torch.Tensor, "token row feature"]:
        """A matrix times the Jacobian at each point."""
        hat = self.hat[:, None]
        scaled = x * self.scale[:, None]
        rest = scaled - scaled.mean(-1, keepdim=True)
        return torch.baddbmm(rest, scaled @ hat.mT, hat, alpha=-1 / x.shape[-1])


@dataclass(frozen=True)
class Block:
    """A block at the hidden states it was given: its weights, and what a forward pass finds on the way."""

    query: Map
    key: Map
    value: Map
    out: Map
    up: Map
    down: Map
    scaling: float
    weights: Float[torch.Tensor, "head target source"]
    queries: Float[torch.Tensor, "head token size"]
    keys: Float[torch.Tensor, "head token size"]
    values: Float[torch.Tensor, "head token size"]
    heads: Float[torch.Tensor, "head token size"]
    first: Normed
    slope: Float[torch.Tensor, "token inner"]
    second: Normed


def read(layer: Layer, count: int, tolerance: float = 1e-5) -> Block | str:
    """The layer as a block with so many heads; or, in words, why it is none that is known."""
    name = type(layer.module).__name__
    if name not in KNOWN:
        return f"{name} is no post-LN block that is known"
    try:
        block = _run(layer, dict(zip(PARTS, (attrgetter(path)(layer.module) for path in KNOWN[name]), strict=True)), count)
    except (AttributeError, RuntimeError, TypeError) as error:
        return f"{name} is not built as expected ({str(error).splitlines()[0]})"
    output = layer.output
    allowed = max(tolerance, 4 * torch.finfo(layer.result.dtype).eps) * max(1, float(output.abs().max()))
    apart = float((block.second.value - output).abs().max())
    return block if apart <= allowed else f"{name} put together again differs from the model by {apart:.2g}"


def _run(layer: Layer, parts: dict[str, Module], count: int) -> Block:
    maps = {name: Map.of(parts[name]) for name in ("query", "key", "value", "out", "up", "down")}  # type: ignore[arg-type]
    x = layer.states
    queries, keys, values = (by_head(maps[name](x), 1, count).transpose(0, 1) for name in ("query", "key", "value"))
    scaling = queries.shape[-1] ** -0.5
    scores = queries @ keys.mT * scaling
    for name in ("attention_mask", "position_bias"):  # neither depends on the hidden states
        if (bias := layer.argument(name)) is not None:
            scores = scores + bias[0].to(scores)
    weights = scores.softmax(-1)
    heads = weights @ values
    first = Normed.at(parts["first"], x + maps["out"](heads.transpose(0, 1).flatten(1)))  # type: ignore[arg-type]
    inner, slope = elementwise(parts["activation"], maps["up"](first.value))
    second = Normed.at(parts["second"], first.value + maps["down"](inner))  # type: ignore[arg-type]
    return Block(**maps, scaling=scaling, weights=weights, queries=queries, keys=keys, values=values, heads=heads,
                 first=first, slope=slope, second=second)  # fmt: skip


def by_head(x: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """A tensor with an axis of features cut into heads and the features of each."""
    return x.reshape(*x.shape[:axis], count, -1, *x.shape[axis + 1 :])


def elementwise(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """An elementwise function and its derivative."""
    back: Callable[[torch.Tensor], tuple[torch.Tensor]]
    value, back = torch.func.vjp(function, x)  # type: ignore[misc]
    return value.detach(), back(torch.ones_like(value))[0].detach()
