"""Passes that begin at some layer: the outputs of the layers before it are kept from a full pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map
from transformers.pytorch_utils import Conv1D

from headscope.models import capture
from headscope.models.contexts import changed, places
from headscope.models.dry_run import dry_inputs
from headscope.models.model import Model

if TYPE_CHECKING:
    from headscope.models.capture import Attention
    from headscope.models.contexts import Contexts


@dataclass(frozen=True)
class Prefix:
    """The outputs of the layers of one pass, in the order of their calls, and for each site the number of the call that
    contains it.
    """

    modules: tuple[torch.nn.Module, ...]
    results: tuple[Any, ...]
    call_of: tuple[int, ...]
    texts: int

    def first(self, sites: Iterable[int]) -> int:
        """The number of the first call that contains one of some sites; the number of all calls if there are no
        sites.
        """
        return min((self.call_of[site] for site in sites), default=len(self.results))

    def start(self, call: int) -> int:
        """The number of the first site in a call or in those after it."""
        return next((site for site, within in enumerate(self.call_of) if within >= call), len(self.call_of))

    @contextmanager
    def resumed(self, model: Model, calls: int, copies: int, first_gated: int) -> Iterator[None]:
        """Answer the first `calls` calls of layers with their recorded outputs within the context, for `copies` copies
        of each text.

        The next layer computes one copy of each text, too, up to the site `first_gated`, where gates first make the
        copies differ.
        """
        made, alike = 0, True

        def one(given: Any) -> Any:
            return given[: self.texts] if isinstance(given, torch.Tensor) and len(given) == copies * self.texts else given

        def all_of(given: Any) -> Any:
            batched = isinstance(given, torch.Tensor) and given.ndim > 1 and len(given) == self.texts
            return given.repeat(copies, *[1] * (given.ndim - 1)) if batched else given

        def kept(original: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                nonlocal made
                made += 1
                return original(*args, **kwargs) if made > calls else tree_map(all_of, self.results[made - 1])

            return forward

        def once(original: Callable[..., Any]) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                # Tensors that do not belong to a text, such as an embedding of distances, are not changed.
                if not alike or not args or args[0].ndim < 3 or len(args[0]) != copies * self.texts:
                    return original(*args, **kwargs)
                return tree_map(all_of, original(*tree_map(one, args), **tree_map(one, kwargs)))

            return forward

        def attend(eager: Attention, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
            output: torch.Tensor = once(lambda *given, **named: capture.unwatched(eager, module, *given, **named)[0])(*args, **kwargs)
            return output, None

        def part(number: int, contexts: Contexts) -> Contexts:
            nonlocal alike
            alike = alike and number < first_gated
            return contexts

        projections = [module for module in self.modules[calls].modules() if isinstance(module, torch.nn.Linear | Conv1D)]
        with ExitStack() as stack:
            for make, modules in ((kept, self.modules), (once, projections)):
                for module in {id(module): module for module in modules}.values():
                    stack.callback(module.__dict__.pop, "forward")
                    module.__dict__["forward"] = make(module.forward)
            if model.capture == "interface":
                stack.enter_context(capture.tapped(model.network, attend))
            stack.enter_context(changed(model, part, self.start(calls)))
            yield


def record(model: Model, run: Callable[[], Any]) -> Prefix | str:
    """The outputs of all layers while `run` makes one pass, or the reason why this model's layers cannot be
    separated.
    """
    layers = [layer_of(model.network, path) for path in places(model)]
    if None in layers:
        return f"the attention modules of {type(model.network).__name__} are not in a list of layers"
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
    """The reason why nothing can be kept between passes of this model, so that each set of gates takes a full pass;
    None if it can.
    """
    with torch.inference_mode():
        found = record(model, lambda: model.network(**dry_inputs(model.network), use_cache=False))
    return found if isinstance(found, str) else None


def layer_of(network: torch.nn.Module, path: str) -> torch.nn.Module | None:
    """The element of the outermost list of modules that a path leads through; None if there is none."""
    module = network
    for name in path.split("."):
        parent, module = module, module.get_submodule(name)
        if isinstance(parent, torch.nn.ModuleList):
            return module
    return None
