"""The importance of heads for the loss (Michel et al. 2019): I_h = E_x |∂L(x)/∂ξ_h|, for all heads from one backward
pass per batch.

Every head has a gate ξ = 1 at every token of every text. The gradient of a gate is Att_h · ∂L/∂Att_h there. The losses
of texts are summed, so that the composition of batches changes no text's gradients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from headscope.core.heads import HeadLayout
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.answers import ask, asking_inputs, only, whole_of
from headscope.models.contexts import changed
from headscope.models.importance_choices import BATCH_TEXTS, AbsOver, Normalise
from headscope.models.model import Model
from headscope.models.predictions import Predictions

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

    from headscope.models.contexts import Contexts


@dataclass(frozen=True)
class Importance:
    """Gradients of each text's loss with respect to the gate of each head, in the order of the texts.

    `slopes` are sums over the tokens of a text, `sizes` sums of their absolute values, and `tokens` the numbers of
    tokens that heads of that kind attend from.
    """

    layout: HeadLayout
    slopes: Float64[np.ndarray, "text head"]
    sizes: Float64[np.ndarray, "text head"]
    tokens: Int64[np.ndarray, "text head"]

    def of(
        self, abs_over: AbsOver = "example", normalise: Normalise = "layer_l2", batch_texts: int = BATCH_TEXTS
    ) -> Float64[np.ndarray, "head"]:
        """I_h of all heads: means by `parts`, and then each layer divided by its ℓ2 norm (a layer of zeros is not
        changed), or all heads scaled to lie between 0 and 1.
        """
        sums, weights = parts(self.slopes, self.sizes, self.tokens, abs_over, batch_texts)
        return normalised(sums.sum(0) / weights.sum(0), self.layout, normalise)


def parts(
    slopes: Float64[np.ndarray, "text head"],
    sizes: Float64[np.ndarray, "text head"],
    tokens: Int64[np.ndarray, "text head"] | Float64[np.ndarray, "text head"],
    abs_over: AbsOver,
    batch_texts: int = BATCH_TEXTS,
) -> tuple[Float64[np.ndarray, "part head"], Float64[np.ndarray, "part head"]]:
    """The terms that are summed to I_h, and the weights that their sum is divided by.

    The absolute value is taken of each text's sum (`example`, as in the paper), of each token (`token`, as in its
    code), or of the sum of each batch (`batch`, as in Hugging Face's script). A batch is `batch_texts` texts in their
    order, whichever batches were computed together. The mean is over texts, and for `token` over tokens.
    """
    if abs_over == "token":
        return sizes, np.asarray(tokens, dtype=np.float64)
    starts = np.arange(0, len(slopes), batch_texts if abs_over == "batch" else 1)
    weights = np.diff(starts, append=len(slopes)).astype(np.float64)
    return np.abs(np.add.reduceat(slopes, starts, axis=0)), np.broadcast_to(weights[:, None], (len(starts), slopes.shape[1]))


def normalised(values: Float64[np.ndarray, "head"], layout: HeadLayout, how: Normalise) -> Float64[np.ndarray, "head"]:
    """Importance made comparable across layers: `layer_l2`, `global_minmax`, or `none`."""
    if how == "none":
        return values
    if how == "global_minmax":
        least, most = values.min(), values.max()
        return (values - least) / (most - least) if most > least else np.zeros_like(values)
    found = values.copy()
    for number in range(len(layout.sites)):
        norm = float(np.linalg.norm(values[layout.slice(number)]))
        found[layout.slice(number)] /= norm if norm > 0 else 1
    return found


def importance(
    model: Model,
    texts: Sequence[Encoded],
    batch_tokens: int = 2048,
    reduction: Literal["mean", "sum"] = "mean",
    share: float = 0.15,
    key: str = "0/0",
    asking: Callable[[Sequence[Encoded]], Predictions] | None = None,
) -> Importance:
    """The gradients from which all variants of importance are computed.

    The loss of a text is the mean (or the sum) over its predictions: its class, each next piece, or masked pieces,
    `share` of them, drawn by `key`; or the predictions that `asking` returns for a batch. Within `gated`, the
    importance is that of a model some of whose heads are already off.
    """
    whole_of(model)
    model.require_plain_weights("the importance of heads, which needs gradients")
    if not texts:
        raise ModelError("there are no texts to compute the importance of heads from", "Give some texts")
    for text in texts:
        if asking is None and not model.predicts(text):
            raise ModelError(f"text {text.id} has nothing that {model.name} could predict", "Leave it out, or give it a label")
    heads = model.layout.size
    slopes, sizes, tokens = np.zeros((len(texts), heads)), np.zeros((len(texts), heads)), np.zeros((len(texts), heads), dtype=np.int64)
    rows = defaultdict(list)
    for row, text in enumerate(texts):
        rows[id(text)].append(row)
    for chosen in batches(texts, batch_tokens):
        at = np.array([rows[id(text)].pop() for text in chosen])
        asked = ask(model, chosen, share, key) if asking is None else asking(chosen)
        for site, gradient in enumerate(_backward(model, chosen, asked, reduction)):
            part = model.layout.slice(site)
            slopes[at, part] = gradient.sum(1).numpy()
            sizes[at, part] = gradient.abs().sum(1).numpy()
            tokens[at, part] = np.array([len(_read(model, site, text)) for text in chosen])[:, None]
    return Importance(model.layout, slopes, sizes, tokens)


def _read(model: Model, site: int, text: Encoded) -> Encoded:
    """The text that the heads of a site attend from."""
    return text if model.sites[site].kind == "encoder" or text.target is None else text.target


def _backward(model: Model, texts: Sequence[Encoded], asked: Predictions, reduction: str) -> list[Float[torch.Tensor, "text token head"]]:
    """The gradients of the loss with respect to gates on every head at every token, by site."""
    gates: dict[int, torch.Tensor] = {}

    def gate(number: int, contexts: Contexts) -> Contexts:
        gates[number] = torch.ones_like(contexts[..., :1]).requires_grad_()
        return contexts * gates[number]

    with torch.enable_grad(), only(model, asked) as of, changed(model, gate):
        loss = asked.loss(of(whole_of(model)(**asking_inputs(model, texts, asked), use_cache=False).logits), reduction)
        found = torch.autograd.grad(loss, [gates[number] for number in range(len(model.sites))], allow_unused=True)
    given = [gradient for gradient in found if gradient is not None]
    if len(given) != len(model.sites):
        raise ModelError(
            f"{model.name} gave gradients of {len(given)} of {len(model.sites)} attention layers",
            "Its outputs do not depend on all of its attention: use another model",
        )
    return [gradient[..., 0].double().cpu() for gradient in given]
