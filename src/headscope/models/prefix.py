"""Switching off many heads in turn: what lies below a head is the same with and without it, and is not worked out again.

One pass without gates keeps what every layer gives. A pass with gates begins at the first layer that has one, and gates of the same
first layer go through the rest as one larger batch. The numbers are those of one full pass a set of gates, in about half the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map

from headscope.encoding.texts import Encoded
from headscope.models.asking import ask, asking_inputs, only, whole_of
from headscope.models.contexts import changed, places
from headscope.models.gates import gated
from headscope.models.model import Model
from headscope.models.predictions import Predictions
from headscope.models.sites import dry_inputs

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.contexts import Contexts
    from headscope.models.gates import Gates, Vectors

    Logits = Float[torch.Tensor, "asked class"]


@dataclass(frozen=True)
class Prefix:
    """What the layers of one pass gave, in the order of their calls, and for each site the number of the call that it lies in."""

    modules: tuple[torch.nn.Module, ...]
    results: tuple[Any, ...]
    call_of: tuple[int, ...]
    texts: int

    def first(self, gates: Gates) -> int:
        """The number of the first call that has gates; of all calls, if none has."""
        return min((self.call_of[site] for site in gates), default=len(self.results))

    def start(self, call: int) -> int:
        """The number of the first site of a call or of those after it."""
        return next((site for site, within in enumerate(self.call_of) if within >= call), len(self.call_of))

    @contextmanager
    def skipping(self, calls: int, copies: int) -> Iterator[None]:
        """The model with so many calls of layers answered by what they gave, each text `copies` times."""
        made = 0

        def tiled(given: Any) -> Any:
            batched = isinstance(given, torch.Tensor) and given.ndim > 1 and len(given) == self.texts
            return given.repeat(copies, *[1] * (given.ndim - 1)) if batched else given

        def answer(original: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                nonlocal made
                made += 1
                return original(*args, **kwargs) if made > calls else tree_map(tiled, self.results[made - 1])

            return forward

        with ExitStack() as stack:
            for module in {id(module): module for module in self.modules}.values():
                stack.callback(module.__dict__.pop, "forward")
                module.__dict__["forward"] = answer(module.forward)
            yield


def record(model: Model, run: Callable[[], Any]) -> Prefix | str:
    """What every layer gives while `run` makes one pass, or why this model's layers cannot be told apart."""
    layers = [_layer(model.network, path) for path in places(model)]
    if None in layers:
        return f"what attends in {type(model.network).__name__} does not lie in a list of layers"
    calls: list[tuple[torch.nn.Module, Any]] = []
    inside: list[torch.nn.Module] = []
    call_of: list[int] = []

    def note(number: int, contexts: Contexts) -> Contexts:
        call_of.append(len(calls) if inside else -1)
        return contexts

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        inside.pop()
        calls.append((module, output))

    with ExitStack() as stack:
        for layer in {id(layer): layer for layer in layers}.values():
            assert layer is not None
            stack.callback(layer.register_forward_pre_hook(lambda module, args: inside.append(module)).remove)
            stack.callback(layer.register_forward_hook(leave).remove)
        with changed(model, note):
            run()
    if len(call_of) != len(model.sites) or -1 in call_of or call_of != sorted(call_of):
        return f"the layers of {type(model.network).__name__} do not follow one another"
    states = [result[0] if isinstance(result, tuple | list) else result for _, result in calls]
    if not all(isinstance(state, torch.Tensor) and state.ndim == 3 for state in states):
        return f"the layers of {type(model.network).__name__} do not give hidden states"
    return Prefix(tuple(module for module, _ in calls), tuple(result for _, result in calls), tuple(call_of), len(states[0]))


def why_not(model: Model) -> str | None:
    """Why nothing can be kept between passes of this model, so that each set of gates takes a full pass; None if it can."""
    with torch.inference_mode():
        found = record(model, lambda: model.network(**dry_inputs(model.network), use_cache=False))
    return found if isinstance(found, str) else None


def _layer(network: torch.nn.Module, path: str) -> torch.nn.Module | None:
    """The element of the outermost list of modules that a path leads through."""
    module = network
    for name in path.split("."):
        parent, module = module, module.get_submodule(name)
        if isinstance(parent, torch.nn.ModuleList):
            return module
    return None


def ablated(
    model: Model,
    texts: Sequence[Encoded],
    cuts: Sequence[Gates],
    asked: Predictions | None = None,
    replace: Vectors | None = None,
    batch_tokens: int = 2048,
    reuse: bool = True,
) -> Iterator[tuple[int, Logits]]:
    """For each of `cuts`, which are sets of gates, its number and the logits of what is asked of a batch of texts, cuts of late layers
    last. A set without gates gives those of the model as it is.

    What is asked is the class of each text, each next piece, or masked pieces, unless `asked` says otherwise. Batches are enlarged to at
    most `batch_tokens` padded tokens. Without `reuse`, or where `why_not` has a reason, each set of gates takes a full pass.
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
    """The answers under several sets of gates from one pass that begins at a call of a layer."""
    copies = len(cuts)

    def rows(gates: Gates, site: int) -> torch.Tensor:
        gate = gates.get(site, torch.ones(model.sites[site].heads))
        return gate.to(model.device).expand(prefix.texts, -1)

    stacked = {site: torch.cat([rows(gates, site) for gates in cuts]) for site in sorted({site for gates in cuts for site in gates})}
    tiled = {name: tensor.repeat(copies, 1) for name, tensor in inputs.items()}
    with torch.inference_mode(), prefix.skipping(call, copies), gated(model, stacked, replace, prefix.start(call)):
        return _answers(model, tiled, asked, copies).chunk(copies)


def _answers(model: Model, inputs: Mapping[str, torch.Tensor], asked: Predictions, copies: int = 1) -> Logits:
    with only(model, asked, copies) as of:
        return of(whole_of(model)(**inputs, use_cache=False).logits)
