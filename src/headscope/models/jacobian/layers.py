"""The layers of one forward pass, each with its inputs, so that it can be run again as a function of its hidden states
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.utils._pytree import tree_map

from headscope.core.heads import Site
from headscope.errors import ModelError
from headscope.models.jacobian.choices import MODES, Mode

if TYPE_CHECKING:
    from jaxtyping import Float
    from transformers import PreTrainedModel

    States = Float[torch.Tensor, "token feature"]

_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Layer:
    """One call of a layer: its arguments, the hidden states that it returned and, if dropout is on, the state of the
    random number generator.
    """

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: torch.Tensor
    drawn: torch.Tensor | None = None

    @cached_property
    def states(self) -> States:
        """The input hidden states."""
        states: torch.Tensor = _full(self.args[0] if self.args else self.kwargs["hidden_states"])
        return states[0]

    @property
    def output(self) -> States:
        """The output hidden states."""
        output: torch.Tensor = _full(self.result)
        return output[0]

    def argument(self, name: str) -> Any:
        """The argument of this name; None if it was not given."""
        return signature(self.module.forward).bind(*self.args, **self.kwargs).arguments.get(name)

    @cached_property
    def function(self) -> Callable[[States], States]:
        """The output as a function of the hidden states, with all other arguments unchanged.

        A layer with weights in half precision is run in float32, because numbers from which derivatives are computed
        must not be rounded. Dropout drops the same numbers again.
        """
        module, args, kwargs = self.module, self.args, dict(self.kwargs)
        if self.result.dtype in _HALVES:
            module, args, kwargs = deepcopy(module).float(), tree_map(_full, args), tree_map(_full, kwargs)

        def run(states: States) -> States:
            given = states[None]
            with _drawing(states.device, self.drawn):
                out: torch.Tensor = _hidden(module(given, *args[1:], **kwargs) if args else module(**{**kwargs, "hidden_states": given}))
            return out[0]

        return run

    @property
    def randomness(self) -> Literal["error", "same"]:
        """The option of torch's vmap for random numbers."""
        return "error" if self.drawn is None else "same"


@contextmanager
def running(network: PreTrainedModel, mode: Mode, seed: int) -> Iterator[None]:
    """Run the network as it is or, in mode `train`, as in training: with dropout, and all random numbers drawn from a
    seed.
    """
    if mode == "eval":
        yield
        return
    before = network.training
    device = next(network.parameters()).device
    with _forked(device):
        torch.manual_seed(seed)
        network.train()
        try:
            yield
        finally:
            network.train(before)


def drops(network: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> bool:
    """Whether the network's output is different in training mode, as it is with dropout."""
    states = []
    for mode in MODES:
        with torch.no_grad(), running(network, mode, 0):
            states.append(_hidden(network(**inputs, use_cache=False).to_tuple()))
    return not torch.equal(*states)


@contextmanager
def _drawing(device: torch.device, drawn: torch.Tensor | None) -> Iterator[None]:
    """Draw random numbers from this state of the generator within the context, if there is one."""
    if drawn is None:
        yield
        return
    with _forked(device):
        if device.type == "cuda":
            torch.cuda.set_rng_state(drawn, device)
        else:
            torch.set_rng_state(drawn)
        yield


def _forked(device: torch.device) -> Any:
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def _full(given: Any) -> Any:
    return given.float() if isinstance(given, torch.Tensor) and given.dtype in _HALVES else given


def _hidden(out: Any) -> Any:
    """The hidden states in the output of a layer: its first element, or all of it."""
    return out[0] if isinstance(out, tuple | list) and out else out


def record(network: PreTrainedModel, sites: Sequence[Site], inputs: Mapping[str, torch.Tensor]) -> list[Layer]:
    """The layers that contain these sites, in the order of their calls, from one forward pass over one text.

    A layer is an element of a list of modules that is called once per site and maps hidden states to hidden states of
    the same shape.
    """
    states: list[torch.Tensor | None] = []  # of the random number generator, before each call that has not returned

    def enter(module: torch.nn.Module, args: Any) -> None:
        device = inputs["input_ids"].device
        states.append(None if not module.training else torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state())

    calls: dict[str, list[tuple[str, Layer | None]]] = {}
    with ExitStack() as hooks, torch.no_grad():
        for path, modules in network.named_modules():
            if isinstance(modules, torch.nn.ModuleList):
                calls[path] = []
                for number, module in enumerate(modules):
                    hooks.callback(module.register_forward_pre_hook(enter).remove)
                    hooks.callback(module.register_forward_hook(_note(calls[path], f"{path}.{number}", states), with_kwargs=True).remove)
        network(**inputs, use_cache=False)
    for found in calls.values():  # from the outermost lists to those within their elements
        chosen = list(_holding(found, sites, {name for name, _ in network.named_modules()}))
        if len(chosen) == len(sites) and all(layer is not None for layer in chosen):
            return [layer for layer in chosen if layer is not None]
    raise ModelError(
        f"no list of {len(sites)} layers that turn hidden states into hidden states was found in {type(network).__name__}",
        "Gradients between tokens need such layers; use attention alone (kind A)",
    )


def _note(calls: list[tuple[str, Layer | None]], path: str, states: list[torch.Tensor | None]) -> Any:
    def hook(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        given, result, drawn = args[0] if args else kwargs.get("hidden_states"), _hidden(out), states.pop()
        shapes = [tuple(states.shape) if isinstance(states, torch.Tensor) else () for states in (given, result)]
        fits = shapes[0] == shapes[1] and len(shapes[0]) == 3 and shapes[0][0] == 1
        calls.append((path, Layer(module, args, kwargs, result, drawn) if fits else None))

    return hook


def _holding(calls: list[tuple[str, Layer | None]], sites: Sequence[Site], paths: set[str]) -> Iterator[Layer | None]:
    """For each site the call that contains it; all calls if the sites are model outputs, which no module contains."""
    if any(site.module not in paths for site in sites):
        yield from (layer for _, layer in calls)
        return
    rest = iter(calls)
    for site in sites:
        yield next((layer for path, layer in rest if site.module.startswith(f"{path}.")), None)


def check_again(layers: Sequence[Layer]) -> None:
    """Raise an error if a layer with dropout does not give the same output again."""
    for layer in layers:
        if layer.drawn is not None and not torch.allclose(layer.function(layer.states), layer.output, rtol=1e-2, atol=1e-3):
            raise ModelError(
                f"{type(layer.module).__name__} did not drop the same numbers again when it was run twice from one seed",
                'Use mode="eval", or weights of type float32',
            )


def check_chain(layers: Sequence[Layer]) -> None:
    """Raise an error unless each layer's input is the output of the layer before it: derivatives are carried from layer
    to layer.
    """
    for number, (one, other) in enumerate(pairwise(layers), start=1):
        if not torch.equal(one.output, other.states):
            raise ModelError(
                f"the input of layer {number + 1} of this model is not the output of layer {number}",
                "G* needs a chain of layers; use A and G",
            )
