"""Ablation of many heads in turn: the layers below a head are the same with and without it and are not computed again.

One pass without gates keeps the outputs of all layers. A pass with gates begins at the first layer that has one, and
sets of gates with the same first layer go through the rest as one larger batch. The numbers are those of one full pass
per set of gates, in about half the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import torch

from headscope.encoding.texts import Encoded
from headscope.models.answers import ask, asking_inputs, only, whole_of
from headscope.models.gates import gated
from headscope.models.model import Model
from headscope.models.predictions import Predictions
from headscope.models.restart import Prefix, record

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.gates import Gates, Vectors

    Logits = Float[torch.Tensor, "asked class"]


def ablated(
    model: Model,
    texts: Sequence[Encoded],
    cuts: Sequence[Gates],
    asked: Predictions | None = None,
    replace: Vectors | None = None,
    batch_tokens: int = 2048,
    reuse: bool = True,
) -> Iterator[tuple[int, Logits]]:
    """For each of `cuts`, which are sets of gates, its number and the logits of the predictions in a batch of texts,
    cuts of late layers last. A set without gates gives the logits of the unchanged model.

    The predictions are the class of each text, each next piece, or masked pieces, unless `asked` is given. Batches are
    enlarged to at most `batch_tokens` padded tokens. Without `reuse`, or if `restart.why_not` returns a reason, each
    set of gates takes a full pass.
    """
    asked = asked or ask(model, texts)
    inputs = asking_inputs(model, texts, asked)
    base: list[torch.Tensor] = []
    prefix: Prefix | str = "not wanted"
    if reuse:
        with torch.inference_mode():
            prefix = record(model, lambda: base.append(_answers(model, inputs, asked)))
    if isinstance(prefix, str):
        for number, gates in enumerate(cuts):
            with torch.inference_mode(), gated(model, gates, replace):
                logits = _answers(model, inputs, asked)
            yield number, logits
        return
    most = max(1, batch_tokens // max(tensor.numel() for tensor in inputs.values()))
    order = sorted(range(len(cuts)), key=lambda number: prefix.first(cuts[number]))
    for call, group in groupby(order, key=lambda number: prefix.first(cuts[number])):
        numbers = list(group)
        if call == len(prefix.results):
            yield from ((number, base[0]) for number in numbers)
            continue
        for begin in range(0, len(numbers), most):
            chosen = numbers[begin : begin + most]
            yield from zip(chosen, _together(model, inputs, asked, prefix, call, [cuts[number] for number in chosen], replace), strict=True)


def _together(
    model: Model,
    inputs: Mapping[str, torch.Tensor],
    asked: Predictions,
    prefix: Prefix,
    call: int,
    cuts: Sequence[Gates],
    replace: Vectors | None,
) -> Sequence[Logits]:
    """The logits under several sets of gates, from one pass that begins at a call of a layer."""
    copies = len(cuts)

    def rows(gates: Gates, site: int) -> torch.Tensor:
        gate = gates.get(site, torch.ones(model.sites[site].heads))
        return gate.to(model.device).expand(prefix.texts, -1)

    stacked = {site: torch.cat([rows(gates, site) for gates in cuts]) for site in sorted({site for gates in cuts for site in gates})}
    tiled = {name: tensor.repeat(copies, 1) for name, tensor in inputs.items()}
    start = prefix.start(call)
    with torch.inference_mode(), gated(model, stacked, replace, start), prefix.resumed(model, call, copies, min(stacked)):
        return _answers(model, tiled, asked, copies).chunk(copies)


def _answers(model: Model, inputs: Mapping[str, torch.Tensor], asked: Predictions, copies: int = 1) -> Logits:
    with only(model, asked, copies) as of:
        return of(whole_of(model)(**inputs, use_cache=False).logits)
