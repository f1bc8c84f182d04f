"""The number of multiplications that the influence between tokens takes, from the shapes of a block's weights.

O and P of a target (see `targets`) take two matrix products, and G of a target takes two more: the Gram matrix of P,
and the Jacobian with respect to the target itself. A row of G* passes through a block by O and P, or through the parts
of the block (see `linear`).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from torch.nn import Module
from transformers.pytorch_utils import Conv1D

from headscope.models.jacobian.layouts import KNOWN, PARTS


@dataclass(frozen=True)
class BlockCosts:
    """Multiplications of a block with `size` features. Its heads have `inner` features together, and `shared` of them
    share one key and value. Its feed-forward part has `wide` features and `maps` linear maps: 2, or 3 with a gate.
    """

    size: int
    inner: int
    shared: int
    wide: int
    maps: int

    @property
    def matrices(self) -> float:
        """The multiplications for O and P of one target."""
        return self.size**2 * (self.wide + self.inner)

    def exact(self, tokens: int) -> float:
        """The multiplications for G of one target and `tokens` sources, given O and P."""
        return self.size * self.inner * (self.size + self.inner) + 3 * self.inner**2 * tokens

    def row(self, tokens: int, by_matrices: bool) -> float:
        """The multiplications for one row at one token of a text of `tokens` tokens, by O and P or by the block's
        parts.
        """
        after = self.size * self.size if by_matrices else self.maps * self.wide * self.size
        return after + self.size * self.inner * (2 + 2 / self.shared) + 4 * self.inner * tokens

    def worthwhile(self, rows: float) -> bool:
        """Whether `rows` rows per token save more than O and P cost."""
        return rows * (self.row(0, False) - self.row(0, True)) > self.matrices


def costs_of(network: Module) -> BlockCosts | None:
    """The costs of the first known block of a network; None if it has none."""
    block = next((module for module in network.modules() if type(module).__name__ in KNOWN), None)
    if block is None:
        return None
    layout = KNOWN[type(block).__name__]

    def shape(path: str) -> tuple[int, int]:
        module = attrgetter(path)(block)
        out, given = module.weight.shape
        return (given, out) if isinstance(module, Conv1D) else (out, given)

    paths = dict(zip(PARTS, layout.paths, strict=True))
    size, inner = shape(paths["out"])
    shared = 1 if layout.fused else shape(paths["query"])[0] // shape(paths["key"])[0]
    return BlockCosts(size, inner, shared, shape(paths["down"])[1], 3 if layout.gate else 2)
