"""The outputs of heads: their context vectors before the output projection, which can be read and changed, site by
site.

Models that attend through transformers' interface expose them there. In other models the output projections are found
by name, and their inputs are the context vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError
from headscope.models import capture

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.model import Model

    Contexts = Float[torch.Tensor, "batch query head d"]
    # Takes a site's number and the outputs of its heads, and returns the changed outputs.
    Change = Callable[[int, Contexts], Contexts]

# Output projections of models that bypass the interface: DeBERTa's and MPNet's.
_PROJECTIONS = ("attention.output.dense", "attention.attn.o")


def places(model: Model) -> tuple[str, ...]:
    """For each site the path of a module in its layer: the attention module, or the output projection after it."""
    if model.capture == "interface":
        return tuple(site.module for site in model.sites)
    found = tuple(
        path
        for path, module in model.network.named_modules()
        if path.endswith(_PROJECTIONS) and isinstance(module, torch.nn.Linear) and module.in_features % model.sites[0].heads == 0
    )
    if len(found) != len(model.sites):
        raise ModelError(
            f"{type(model.network).__name__} does not expose the outputs of its heads, so no head can be switched off",
            "Use a model that attends through transformers' attention interface, as most do, or DeBERTa or MPNet",
        )
    return found


@contextmanager
def changed(model: Model, change: Change, start: int = 0) -> Iterator[None]:
    """Pass the outputs of the model's heads through `change` within the context, in every pass, generation included.

    With `start`, passes begin in the layer of that site: earlier layers are not run. Taps may be open at the same time,
    so the attention of a changed model can be captured as usual. Of two changes, the one that was entered last is
    applied first.
    """
    paths = places(model)
    with ExitStack() as stack:
        if model.capture == "interface":
            modules = dict(model.network.named_modules())
            numbers: dict[int, list[int]] = {}
            for number, path in enumerate(paths[start:], start):
                numbers.setdefault(id(modules[path]), []).append(number)
            calls: Counter[int] = Counter()

            def apply(module: torch.nn.Module, output: Contexts) -> Contexts:
                # ALBERT's one module attends once per layer. During generation each module attends once per step.
                own = numbers.get(id(module))
                if own is None:
                    raise ModelError(
                        f"{type(module).__name__} attended, but did not in the dry run",
                        "This model chooses its layers by input; such models are not supported",
                    )
                site = own[calls[id(module)] % len(own)]
                calls[id(module)] += 1
                return change(site, output)

            stack.enter_context(capture.changing(model.network, apply))
        else:
            for number, path in enumerate(paths[start:], start):
                hook = _before(number, model.sites[number].heads, change)
                stack.callback(model.network.get_submodule(path).register_forward_pre_hook(hook).remove)
        yield


def _before(number: int, heads: int, change: Change) -> Callable[[torch.nn.Module, Any], tuple[torch.Tensor]]:
    def hook(module: torch.nn.Module, args: Any) -> tuple[torch.Tensor]:
        return (change(number, args[0].unflatten(-1, (heads, -1))).flatten(-2),)

    return hook
