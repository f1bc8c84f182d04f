"""The norms of the weighted, transformed values that attention carries (Kobayashi et al. 2020).

    f_h(x) = (x·Wv_h + bv_h)·Wo_h,   norms(i,j) = ‖Σ_h α_h(j,i)·f_h(x_i)‖,   of a single head α_h(j,i)·‖f_h(x_i)‖

A head's values are read in the attention call, so that normalisations before them and shared heads need no special
treatment. Its output projection is the linear map whose input is the output of the heads. Values and projection
together must reproduce the output of that map. No part is found by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from transformers.pytorch_utils import Conv1D

from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.models import capture
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.capture import Attention

    Weights = Float[torch.Tensor, "head target source"]
    Vectors = Float[torch.Tensor, "head source feature"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Product:
    """One call of a linear map."""

    module: torch.nn.Linear | Conv1D
    given: Float[torch.Tensor, "token feature"]
    made: Float[torch.Tensor, "token feature"]

    def vectors(self, weights: Weights, values: Float[torch.Tensor, "head source size"]) -> Vectors | None:
        """The vectors f of each head, in float64, if this is the output projection of heads with these weights and
        values; otherwise None.
        """
        width = len(weights) * values.shape[-1]
        if self.given.shape != (weights.shape[1], width) or not _near((weights @ values).transpose(0, 1).flatten(1), self.given):
            return None
        weight: torch.Tensor = self.module.weight.detach().double()
        weight = weight if isinstance(self.module, Conv1D) else weight.T
        vectors = values.double() @ weight.reshape(len(weights), values.shape[-1], -1)
        sums = torch.einsum("hts,hsf->tf", weights.double(), vectors)
        bias = 0 if self.module.bias is None else self.module.bias.detach()
        return vectors if _near(sums + bias, self.made) else None


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two results differ by no more than rounding, in float32 or in the type of the second."""
    allowed = max(1e-5, 8 * torch.finfo(other.dtype).eps) * float(other.abs().max())
    return float((one.double() - other.double()).abs().max()) <= allowed


def value_norms(model: Model, text: Encoded) -> Float[np.ndarray, "site head source target"]:
    """The norms ‖α·f(x)‖ of what each head carries from each token of a text to each other one. For an encoder-decoder,
    in its encoder.
    """
    return each(model, model.inputs([text]), by_head).cpu().numpy()


def by_head(weights: Weights, vectors: Vectors) -> Float[torch.Tensor, "head source target"]:
    """The norms of what each head carries."""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return weights.mT * lengths[..., None]


def together(weights: Weights, vectors: Vectors) -> Float[torch.Tensor, "source target"]:
    """The norms of what all heads carry together: a quadratic form in the weights, computed from the products of a
    source's vectors.
    """
    products = torch.einsum("hsf,gsf->shg", vectors, vectors)
    along = weights.permute(2, 1, 0)  # [source, target, head]
    squares: torch.Tensor = ((along @ products) * along).sum(-1)
    return squares.clamp_min(0).sqrt()


def each(
    model: Model, inputs: Mapping[str, torch.Tensor], reading: Callable[[Weights, Vectors], torch.Tensor]
) -> Float[torch.Tensor, "site *axes"]:
    """A reading of weights and vectors, in float64, for each site of the first kind. Only one layer's are held at once,
    except for models whose attention is read from their outputs.
    """
    model.require_plain_weights("norms of values")
    wanted = [number for number, site in enumerate(model.sites) if site.kind == model.sites[0].kind]
    found = (
        output_projections(model, inputs, frozenset(wanted), lambda _, *read: reading(*read))
        if model.capture == "interface"
        else _output(model, inputs, frozenset(wanted), reading)
    )
    if len(found) < len(wanted):
        raise MeasureError(
            f"{type(model.network).__name__} has no linear map whose input is the output of the heads of layer {len(found) + 1}",
            "Norms of values need one: use other kinds, such as A or rollout",
        )
    return torch.stack(found)


def output_projections(
    model: Model,
    inputs: Mapping[str, torch.Tensor],
    wanted: frozenset[int],
    reading: Callable[[torch.nn.Linear | Conv1D, Weights, Vectors], T],
) -> list[T]:
    """A reading of the output projection, weights and vectors (in float64) of each wanted site, from the attention
    calls of one text. The list ends before the first site without an output projection.
    """
    found: list[T] = []
    last: list[tuple[torch.Tensor, torch.Tensor]] = []  # weights and values that wait for their output projection
    calls = iter(range(len(model.sites)))

    def attend(eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        output, weights = eager(module, *args, **kwargs)
        if next(calls) in wanted:
            values = args[2][0].repeat_interleave(weights.shape[1] // args[2].shape[1], 0)
            last.append((weights[0].to(values), values))
        return output, None

    def look(product: _Product) -> None:
        if len(last) == 1 and (vectors := product.vectors(*last[0])) is not None:
            found.append(reading(product.module, last.pop()[0].double(), vectors))

    with torch.inference_mode(), capture.tapped(model.network, attend), ExitStack() as hooks:
        _watch(model.network, look, hooks)
        model.network(**inputs, use_cache=False)
    return found


def _output(
    model: Model, inputs: Mapping[str, torch.Tensor], wanted: frozenset[int], reading: Callable[[Weights, Vectors], torch.Tensor]
) -> list[torch.Tensor]:
    """The same for models whose attention is read from their outputs: values are the output of a linear map whose
    weighted sum is the input of another.
    """
    products: list[_Product] = []
    with ExitStack() as hooks:
        _watch(model.network, products.append, hooks)
        outputs, _ = capture.from_outputs(model.network, inputs)
    maps = [maps[0] for group in outputs.values() for maps in group]
    pairs = ((out, value) for place, out in enumerate(products) for value in products[max(0, place - 8) : place])
    found: list[torch.Tensor] = []
    for number in sorted(wanted):
        vectors = next(_fitting(maps[number], pairs), None)
        if vectors is None:
            break
        found.append(reading(maps[number].double(), vectors))
    return found


def _fitting(weights: Weights, pairs: Iterator[tuple[_Product, _Product]]) -> Iterator[Vectors]:
    for out, value in pairs:
        length, width = value.made.shape
        if length == weights.shape[1] and width % len(weights) == 0:
            values = value.made.view(length, len(weights), -1).transpose(0, 1)
            if (vectors := out.vectors(weights.to(values), values)) is not None:
                yield vectors


def _watch(network: torch.nn.Module, look: Callable[[_Product], None], hooks: ExitStack) -> None:
    """Call `look` with every call of a linear map until `hooks` is closed."""

    def hook(module: torch.nn.Linear | Conv1D, args: tuple[Any, ...], made: torch.Tensor) -> None:
        look(_Product(module, args[0].flatten(0, -2), made.flatten(0, -2)))

    for module in network.modules():
        if isinstance(module, torch.nn.Linear | Conv1D):
            hooks.callback(module.register_forward_hook(hook).remove)
