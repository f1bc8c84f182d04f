"""Norms of Jacobians: the vectors that are multiplied with them, and how the norm follows from the products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian.choices import Norm

if TYPE_CHECKING:
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "*pair vector other feature"]
    Sizes = Float[torch.Tensor, "*pair other"]


@dataclass(frozen=True)
class NormReading:
    """A norm of J from its products with some vectors: all d unit vectors, the vector of ones, or random signs.

    For random signs z, E‖Jz‖² = ‖J‖²_F (Hutchinson). The standard error of the norm is that of the mean of ‖Jz‖², by
    the delta method.
    """

    norm: Norm
    vectors: Float[torch.Tensor, "vector feature"]
    exact: bool

    @classmethod
    def make(cls, norm: Norm, states: torch.Tensor, probes: int | None, seed: int = 0) -> NormReading:
        """The reading of a norm for hidden states of this size, exact without `probes`. `sum` and `mean` need no
        probes; the spectral norm cannot be sketched.
        """
        size = states.shape[-1]
        if norm in ("sum", "mean"):
            return cls(norm, states.new_ones(1, size), True)
        if norm == "spectral" or probes is None or probes >= size:
            return cls(norm, torch.eye(size, dtype=states.dtype, device=states.device), True)
        signs = torch.randint(0, 2, (probes, size), generator=torch.Generator().manual_seed(seed)) * 2 - 1
        return cls(norm, signs.to(states), False)

    def placed(self, positions: torch.Tensor, length: int) -> Float[torch.Tensor, "row token feature"]:
        """The vectors at each of some positions, with zeros at all other tokens: a row for each position and vector."""
        count, size = self.vectors.shape
        rows = self.vectors.new_zeros(len(positions), count, length, size)
        rows[torch.arange(len(positions), device=positions.device), :, positions] = self.vectors
        return rows.flatten(0, 1)

    def __call__(self, rows: Rows) -> tuple[Sizes, Sizes]:
        """The norms and their standard errors (0 where exact), in float64."""
        if self.norm == "spectral":
            sizes = torch.linalg.svdvals(rows.movedim(-2, -3))[..., 0].double()
            return sizes, torch.zeros_like(sizes)
        squares = rows.square().sum(-1).double()
        if self.exact:
            sizes = squares.sum(-2).sqrt() / (rows.shape[-1] if self.norm == "mean" else 1)
            return sizes, torch.zeros_like(sizes)
        sizes = squares.mean(-2).sqrt()
        spread = squares.std(-2) if len(self.vectors) > 1 else torch.full_like(sizes, torch.nan)
        errors = spread / len(self.vectors) ** 0.5 / (2 * sizes)
        return sizes, errors.masked_fill(sizes == 0, 0)
