"""What heads give: their context vectors before the output projection, looked at and changed, site by site.

Models that attend through transformers' interface hand them over there. Of the others, the projections are known by
name, and what goes into them is the same thing.
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
    # What takes a site's number and what its heads give, and returns what they are to give.
    Change = Callable[[int, Contexts], Contexts]

# Output projections of models that bypass the interface: DeBERTa's and MPNet's.
_PROJECTIONS = ("attention.output.dense", "attention.attn.o")


def places(model: Model) -> tuple[str, ...]:
    """For each site the path of a module within its layer: the one that attends, or the projection after it."""
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
    """The model with what its heads give passed through `change`, in every pass that is made meanwhile, generation
    included.

    With `start`, passes begin within the layer of that site: layers before it are not run. Taps may be open at the
    same time, so that a changed model can be looked at as any other; of two changes, the one begun last comes first.
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
                # ALBERT's one module attends once a layer; when generating, each module attends once a step.
                own = numbers.get(id(module))
                if own is None:
                    raise ModelError(
                        f"{type(module).__name__} attended, which did not in the dry run",
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
