"""The parts of blocks, evaluated at their input hidden states: linear maps, normalisations, rotations, feed-forward
parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import LayerNorm, Linear, Module
from torch.nn.functional import linear
from transformers.pytorch_utils import Conv1D

if TYPE_CHECKING:
    from jaxtyping import Float

    Points = Float[torch.Tensor, "token feature"]


def by_head(x: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """A tensor with an axis of features split into heads and the features of each."""
    return x.reshape(*x.shape[:axis], count, -1, *x.shape[axis + 1 :])


@dataclass(frozen=True)
class Map:
    """A linear map with a bias."""

    weight: Float[torch.Tensor, "out in"]
    bias: torch.Tensor | None

    @classmethod
    def of(cls, module: Linear | Conv1D) -> Map:
        """The linear map of a module, at least in float32."""
        weight, bias = module.weight.detach(), module.bias
        dtype = torch.promote_types(weight.dtype, torch.float32)
        weight = weight.T if isinstance(module, Conv1D) else weight
        return cls(weight.to(dtype), None if bias is None else bias.detach().to(dtype))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the map to some points."""
        return linear(x, self.weight, self.bias)

    def rows(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Map:
        """The map with `change` applied to the first axis of weight and bias."""
        return Map(change(self.weight), None if self.bias is None else change(self.bias))

    def behind(self, module: Module) -> Map:
        """The map with a preceding normalisation's weights folded in: it takes the output of `standardised`, and
        ignores its mean if the normalisation subtracts the mean.
        """
        weight = self.weight * module.weight.detach().to(self.weight)  # type: ignore[operator]
        if not isinstance(module, LayerNorm):
            return Map(weight, self.bias)
        shift = self.weight @ module.bias.detach().to(self.weight)
        return Map(weight - weight.mean(1, keepdim=True), shift if self.bias is None else self.bias + shift)


def standardised(module: Module, x: Points) -> tuple[Points, Float[torch.Tensor, "token 1"]]:
    """Points divided by their standard deviation after their mean is subtracted (if the module is not a LayerNorm,
    divided by their root mean square), and the inverse of the divisor.
    """
    if isinstance(module, LayerNorm):
        x = x - x.mean(-1, keepdim=True)
    eps: Any = module.eps if isinstance(module, LayerNorm) else module.variance_epsilon
    inverse = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return x * inverse, inverse


@dataclass(frozen=True)
class Normed:
    """A normalisation at some points: γ·hat + β, with the Jacobian diag(scale)·(I − 11ᵀ/d − hat·hatᵀ/d), scale = γ/σ.

    The term 11ᵀ/d exists only if the mean is subtracted (`centred`).
    """

    hat: Points
    scale: Points
    value: Points
    centred: bool

    @classmethod
    def at(cls, module: Module, x: Points) -> Normed:
        """The normalisation at these points."""
        centred = isinstance(module, LayerNorm)
        hat, inverse = standardised(module, x)
        weight = module.weight.detach().to(x)  # type: ignore[operator]
        value = weight * hat + module.bias.detach().to(x) if centred else weight * hat  # type: ignore[operator]
        return cls(hat, weight * inverse, value, centred)

    def take(self, tokens: slice) -> Normed:
        """The normalisation at some of the points."""
        return Normed(self.hat[tokens], self.scale[tokens], self.value[tokens], self.centred)

    def left(self, x: Float[torch.Tensor, "token feature column"]) -> Float[torch.Tensor, "token feature column"]:
        """The Jacobian at each point times a matrix."""
        hat = self.hat[:, None]
        rest = x - x.mean(-2, keepdim=True) if self.centred else x
        return self.scale[..., None] * torch.baddbmm(rest, hat.mT, hat @ x, alpha=-1 / x.shape[-2])

    def right(self, x: Float[torch.Tensor, "token row feature"]) -> Float[torch.Tensor, "token row feature"]:
        """A matrix times the Jacobian at each point."""
        hat = self.hat[:, None]
        scaled = x * self.scale[:, None]
        rest = scaled - scaled.mean(-1, keepdim=True) if self.centred else scaled
        return torch.baddbmm(rest, scaled @ hat.mT, hat, alpha=-1 / x.shape[-1])

    def push(self, x: Float[torch.Tensor, "token row feature"]) -> Float[torch.Tensor, "token row feature"]:
        """The Jacobian at each point times some rows: `left`, with the features last."""
        hat = self.hat[:, None]
        rest = x - x.mean(-1, keepdim=True) if self.centred else x
        return torch.baddbmm(rest, x @ hat.mT, hat, alpha=-1 / x.shape[-1]) * self.scale[:, None]


@dataclass(frozen=True)
class NextBlock:
    """A normalisation whose weights are folded into the maps that follow it (`Map.behind`): only hat remains, with the
    Jacobian inverse·(I − u·uᵀ), u = hat/√d.
    """

    inverse: Float[torch.Tensor, "token 1"]
    unit: Points

    @classmethod
    def at(cls, module: Module, x: Points) -> tuple[NextBlock, Points]:
        """The remaining part of the normalisation at these points, and its output hat."""
        hat, inverse = standardised(module, x)
        return cls(inverse, hat * x.shape[-1] ** -0.5), hat

    def take(self, tokens: slice) -> NextBlock:
        """The normalisation at some of the points."""
        return NextBlock(self.inverse[tokens], self.unit[tokens])

    def __call__(self, x: Float[torch.Tensor, "*axes token row feature"]) -> Float[torch.Tensor, "*axes token row feature"]:
        """Rows times the Jacobian at each point, or the Jacobian times rows: it is symmetric."""
        unit = self.unit[:, None]
        return self.inverse[..., None] * (x - (x @ unit.mT) * unit)


@dataclass(frozen=True)
class Rotation:
    """Rotary positions: the first features of a head are rotated in pairs. The partner of a feature is half of these
    features further on.
    """

    cos: Float[torch.Tensor, "token part"]
    sin: Float[torch.Tensor, "token part"]

    def take(self, tokens: slice) -> Rotation:
        """The rotation at some of the positions."""
        return Rotation(self.cos[tokens], self.sin[tokens])

    def __call__(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        """A tensor whose last axis is rotated by the positions along `axis`."""
        shape = (len(self.cos), *(1,) * (x.dim() - axis - 2), -1)
        cos, sin = self.cos.view(shape), self.sin.view(shape)
        part, half = x[..., : cos.shape[-1]], cos.shape[-1] // 2
        made = part * cos
        made[..., :half].addcmul_(part[..., half:], sin[..., :half], value=-1)
        made[..., half:].addcmul_(part[..., :half], sin[..., half:])
        return torch.cat([made, x[..., 2 * half :].expand(*made.shape[:-1], -1)], -1) if x.shape[-1] > 2 * half else made

    def back(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        """The same with the transposed rotation."""
        return Rotation(self.cos, -self.sin)(x, axis)


@dataclass(frozen=True)
class Feed:
    """A feed-forward part down·act(up·z), or down·(act(gate·z)·(up·z)), with the Jacobian down·Σ diag(rate)·up, a sum
    over one map or both.
    """

    ups: tuple[Float[torch.Tensor, "inner feature"], ...]
    rates: tuple[Float[torch.Tensor, "token inner"], ...]
    down: Map

    @classmethod
    def at(cls, up: Map, activation: Callable[[torch.Tensor], torch.Tensor], down: Map, gate: Map | None, z: Points) -> tuple[Feed, Points]:
        """The part at some points, and its output."""
        back: Callable[[torch.Tensor], tuple[torch.Tensor]]
        value, back = torch.func.vjp(activation, (gate or up)(z))  # type: ignore[misc]
        value, slope = value.detach(), back(torch.ones_like(value))[0].detach()
        if gate is None:
            return cls((up.weight,), (slope,), down), down(value)
        other = up(z)
        return cls((gate.weight, up.weight), (slope * other, value), down), down(value * other)

    def jacobian(self, tokens: slice) -> Float[torch.Tensor, "token feature feature"]:
        """The Jacobian at some points. On a CPU the map up to each point is computed in one buffer, which stays in the
        cache.
        """
        size, wide = self.down.weight.shape
        rates = [rate[tokens] for rate in self.rates]
        step = 1 if self.down.weight.device.type == "cpu" else len(rates[0])
        made = self.down.weight.new_empty(len(rates[0]), size, self.ups[0].shape[1])
        inner = made.new_empty(step, wide, made.shape[-1])
        for start in range(0, len(made), step or 1):
            factors = [rate[start : start + step, :, None] for rate in rates]
            torch.mul(factors[0], self.ups[0], out=inner)
            for factor, up in zip(factors[1:], self.ups[1:], strict=True):
                inner.addcmul_(factor, up)
            torch.bmm(self.down.weight.expand(step, -1, -1), inner, out=made[start : start + step])
        return made

    def right(self, x: Float[torch.Tensor, "token row feature"], tokens: slice) -> Float[torch.Tensor, "token row feature"]:
        """A matrix times the Jacobian at each of some points."""
        inner = x @ self.down.weight
        return reduce(torch.add, ((inner * rate[tokens][:, None]) @ up for up, rate in zip(self.ups, self.rates, strict=True)))

    def push(self, x: Float[torch.Tensor, "token row feature"], tokens: slice) -> Float[torch.Tensor, "token row feature"]:
        """The Jacobian at each of some points times some rows."""
        inner = reduce(torch.add, (x @ up.T * rate[tokens][:, None] for up, rate in zip(self.ups, self.rates, strict=True)))
        return inner @ self.down.weight.T
