"""How gradients of a model's loss with respect to attention are taken: what a measure asks for, and a model does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["plain", "times_weight", "through_softmax", "integrated"]


@dataclass(frozen=True)
class Slope:
    """`form` is what is made of the gradient g of a weight a: |g|; |a g|; the gradient of the logit, |a (g - sum a g)|;
    or integrated gradients, |a mean g| over `steps` passes in which all attention is scaled from none to what it is.

    Of masked language models `share` of the pieces of each text are masked, as in BERT's training, in `draws`
    different ways. The loss of a text is the mean over what it predicts, or the `sum`.
    """

    form: Form = "plain"
    draws: int = 1
    share: float = 0.15
    reduction: Literal["mean", "sum"] = "mean"
    steps: int = 16
