"""Gradients of a model's loss with respect to its attention weights, passed on layer by layer during the backward
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.batch import Slope
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.answers import ask, asking_inputs, only, whole_of
from headscope.models.predictions import Predictions

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.capture import Attention, Visible, Weights
    from headscope.models.model import Model

    # Takes a site's number, the values computed from the gradients of its maps, and which positions each row could see.
    Taker = Callable[[int, Weights, Visible | None], None]


def differentiate(model: Model, texts: Sequence[Encoded], slope: Slope, key: str, take: Taker, wanted: frozenset[int]) -> None:
    """Run the model forwards and backwards on its prediction targets (drawn by `key`), and pass the gradients of each
    wanted site to `take`.

    A map and its gradient are freed before the next layer's exist, except for integrated gradients, whose sums are
    held.
    """
    whole_of(model)
    model.require_plain_weights("gradients")
    if model.capture != "interface":
        raise ModelError(f"{model.name} does not expose its attention, so its gradient cannot be computed", "Use another model")
    asked = ask(model, texts, slope.share, key)
    if slope.form != "integrated":
        _pass(
            model,
            asked,
            texts,
            slope,
            1.0,
            lambda index, weights, gradient, seen: take(index, _made(slope, weights, gradient), seen),
            wanted,
        )
        return
    means: dict[int, torch.Tensor] = {}

    def add(index: int, weights: torch.Tensor, gradient: torch.Tensor, seen: torch.Tensor | None) -> None:
        means[index] = means.get(index, 0) + gradient / slope.steps

    for step in range(slope.steps):
        _pass(model, asked, texts, slope, (step + 0.5) / slope.steps, add, wanted)
    # Weights depend on the scale of attention in the layers below. The weights used are those of the unscaled model.
    _pass(model, asked, texts, slope, 1.0, lambda index, weights, _, seen: take(index, (weights * means.pop(index)).abs(), seen), wanted)


def _made(
    slope: Slope, weights: Float[torch.Tensor, "b h q k"], gradient: Float[torch.Tensor, "b h q k"]
) -> Float[torch.Tensor, "b h q k"]:
    if slope.form == "plain":
        return gradient.abs()
    product = weights * gradient
    if slope.form == "through_softmax":
        product = product - weights * product.sum(-1, keepdim=True)
    return product.abs()


class _Backward:
    """The handler of each attention call: during the backward pass, it passes on the gradient of the call's weights.

    All attention is multiplied by `scale`. The output of a head is linear in its weights, so that only the output is
    scaled.
    """

    def __init__(
        self,
        take: Callable[[int, torch.Tensor, torch.Tensor, Any], None],
        wanted: frozenset[int],
        scale: float,
        finite: capture.Finite,
        seen: Callable[[int, capture.Call], Visible | None],
    ) -> None:
        self.take, self.wanted, self.scale, self.finite, self.seen = take, wanted, scale, finite, seen
        self.calls = self.taken = 0

    def __call__(self, eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        index, self.calls = self.calls, self.calls + 1
        output, weights = eager(module, *args, **kwargs)
        if index in self.wanted:
            mask = capture.mask_of(args, kwargs)
            call = capture.Call(module, args[1].shape[1], weights.detach(), mask, lambda start, stop: weights.detach()[:, :, start:stop])

            def hand_over(gradient: torch.Tensor) -> None:
                self.taken += 1
                self.finite.note_all(index, gradient)
                self.take(index, call.weights.float(), gradient.float() / self.scale, self.seen(index, call))

            weights.register_hook(hand_over)  # type: ignore[no-untyped-call]
        return (output if self.scale == 1 else output * self.scale), None


def _pass(
    model: Model,
    asked: Predictions,
    texts: Sequence[Encoded],
    slope: Slope,
    scale: float,
    take: Callable[[int, torch.Tensor, torch.Tensor, Any], None],
    wanted: frozenset[int],
) -> None:
    finite = model.finite()
    tap = _Backward(take, wanted, scale, finite, partial(_seen, model, asked))
    leaves: list[torch.Tensor] = []
    with torch.enable_grad(), from_embeddings(model, leaves), only(model, asked) as of, capture.tapped(model.network, tap):
        loss = asked.loss(of(whole_of(model)(**asking_inputs(model, texts, asked), use_cache=False).logits), slope.reduction)
        torch.autograd.grad(loss, leaves)
    if tap.taken != len(wanted):
        raise ModelError(
            f"{model.name} gave gradients of {tap.taken} of {len(wanted)} attention layers",
            "Its outputs do not depend on all of its attention: use another model",
        )
    finite.check()


def _seen(model: Model, asked: Predictions, index: int, call: capture.Call) -> Visible | None:
    """Which columns each row could see (None: all). A row that cannot affect any prediction is marked as one that sees
    nothing.

    In a decoder, a row affects its own prediction and those after it. The rows after the last prediction, such as that
    of the last token, therefore always have gradient 0.
    """
    kind, seen = model.sites[index].kind, call.visible()
    if kind == "encoder" or model.objective == "classes":
        return seen
    if seen is None:
        seen = torch.ones_like(call.weights[:, 0], dtype=torch.bool)
        seen = seen.tril() if kind == "decoder" else seen
    last = np.full(len(asked.ids), -1)
    np.maximum.at(last, asked.texts, asked.places)
    rows = torch.arange(seen.shape[1], device=seen.device) <= torch.from_numpy(last).to(seen.device)[:, None]
    return seen & rows[:, :, None]


@contextmanager
def from_embeddings(model: Model, leaves: list[torch.Tensor]) -> Iterator[None]:
    """End the backward pass at the embeddings of the inputs, which are added to `leaves`; no parameter of the model
    takes part.
    """

    def begin(module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        leaves.append(output.requires_grad_())
        return output

    # An encoder-decoder has one table of embeddings, and a module for it on each side.
    table = model.network.get_input_embeddings().weight
    modules = [module for module in model.network.modules() if isinstance(module, torch.nn.Embedding) and module.weight is table]
    handles = [module.register_forward_hook(begin) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
