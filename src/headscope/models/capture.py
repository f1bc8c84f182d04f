"""Getting attention maps out of a forward pass, one layer at a time.

transformers routes the attention of most models through a registry of functions. One function of ours is registered
there, once; while a `tap` is open the model uses it, and it hands each map to a consumer and lets go of it. Inside it
calls the model file's own eager attention, so that grouped heads, soft caps, position biases, sinks and windows are
right by construction. Layers nobody asked for run on SDPA. Models that bypass the registry are run with
`output_attentions=True` instead (DeBERTa, MPNet, XLNet and others), at the price of holding all layers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from headscope.core.batch import Later
from headscope.core.heads import Site
from headscope.errors import ModelError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Weights = Float[torch.Tensor, "batch head query key"]
    Visible = Bool[torch.Tensor, "batch query key"]
    # What takes a site's number, its maps, which positions each row could see (None: not known, or everything), and what makes a way
    # to get rows of the maps again (None: the maps are held anyway).
    Consumer = Callable[[int, Weights, Visible | None, Callable[[], Later] | None], None]

NAME = "headscope"
HEADLESS = "headscope_headless"  # what a module has that attends without a head, since all were cut out: there is nothing to see
_tap: ContextVar[Callable[..., tuple[torch.Tensor, None]] | None] = ContextVar("headscope_tap", default=None)
_change: ContextVar[Callable[[torch.nn.Module, torch.Tensor], torch.Tensor] | None] = ContextVar("headscope_change", default=None)


def eager_attention(module: torch.nn.Module) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """The eager attention function of the file that defines the module's class or one of its bases."""
    for base in type(module).__mro__:
        function = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if function is not None:
            return function  # type: ignore[no-any-return]
    raise ModelError(f"{type(module).__name__} has no eager attention to read maps from")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an attention function: who made it, with how many key-value heads, the maps, the mask that was applied, and
    rows of the maps worked out again from queries and keys.
    """

    module: torch.nn.Module
    kv_heads: int
    weights: torch.Tensor
    mask: torch.Tensor | None
    rows: Later

    def later(self) -> Later:
        """`rows`, if the last row comes out as it did when the model ran."""
        length = self.weights.shape[2]
        if not torch.allclose(self.rows(length - 1, length), self.weights[:, :, -1:], rtol=1e-2, atol=1e-3):
            raise ModelError(
                f"{type(self.module).__name__} does not give the same attention for some rows as for all",
                "Its maps cannot be worked out piece by piece: use a shorter --max-length, a smaller --batch-tokens or fewer --layers",
            )
        return self.rows

    def visible(self) -> torch.Tensor | None:
        """Which columns each row could attend to, from a mask of truth values or of numbers added to the logits."""
        if self.mask is None:
            return None
        mask = self.mask[:, 0, :, : self.weights.shape[-1]]
        return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


class _Tap:
    """What happens at each attention call of one forward pass: count it, check it, hand over its map."""

    def __init__(self, consume: Callable[[int, Call], None], wanted: Callable[[int], bool]) -> None:
        self.consume = consume
        self.wanted = wanted
        self.calls = 0

    def __call__(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        index, self.calls = self.calls, self.calls + 1
        if not self.wanted(index):
            return unwatched(module, *args, **kwargs)
        output, weights = eager_attention(module)(module, *args, **kwargs)
        self.consume(index, Call(module, args[1].shape[1], weights, args[3], partial(_rows, module, args, kwargs)))
        return output, None


def unwatched(module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
    """The attention of a call of which nobody wants the maps."""
    # SDPA knows neither soft caps nor sinks; there, eager is the only faithful form.
    faithful = kwargs.get("softcap") is None and kwargs.get("s_aux") is None
    output, _ = (ALL_ATTENTION_FUNCTIONS["sdpa"] if faithful else eager_attention(module))(module, *args, **kwargs)
    return output, None


def _rows(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], start: int, stop: int) -> torch.Tensor:
    """Some rows of the maps of a call: the same function for some queries. Values play no part, so none are given."""
    query, key, value, *rest = args

    def cut(given: Any) -> Any:
        rows = isinstance(given, torch.Tensor) and given.ndim == 4 and given.shape[2] == query.shape[2] > 1  # masks and position biases
        return given[:, :, start:stop] if rows else given

    named = {name: cut(given) for name, given in kwargs.items()}
    with torch.inference_mode():
        _, weights = eager_attention(module)(module, query[:, :, start:stop], key, value[..., :0], *map(cut, rest), **named)
    return weights


def _attention(module: torch.nn.Module, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    tap, change = _tap.get(), _change.get()
    if hasattr(module, HEADLESS):
        return unwatched(module, *args, **kwargs)
    attend = tap or (eager_attention(module) if change is None else unwatched)
    output, weights = attend(module, *args, **kwargs)
    return output if change is None else change(module, output), weights


# The registry is global, so this happens once. Without the mask entry padding and causality would silently be lost.
AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def implementation(model: PreTrainedModel, name: str) -> Iterator[None]:
    """The model with another attention implementation, and with its own again afterwards, whatever happens."""
    configs = {id(m.config): m.config for m in model.modules() if isinstance(m, PreTrainedModel)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        for config, was in before:
            config._attn_implementation_internal = was


@contextmanager
def tapped(model: PreTrainedModel, tap: Callable[..., tuple[torch.Tensor, None]]) -> Iterator[None]:
    """The model with every attention call made through `tap`, which is given the module and what its attention function is given."""
    with implementation(model, NAME):
        token = _tap.set(tap)
        try:
            yield
        finally:
            _tap.reset(token)


@contextmanager
def changing(model: PreTrainedModel, change: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """The model with what its heads give, [batch, query, head, d], passed through `change` before the output projection.

    Taps may be open at the same time, and other changes: what is begun last is done first.
    """
    outer = _change.get()
    with implementation(model, NAME):
        token = _change.set(change if outer is None else lambda module, output: outer(module, change(module, output)))
        try:
            yield
        finally:
            _change.reset(token)


def observe(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> list[Call]:
    """Every attention call of one forward pass; empty if the model bypasses the registry. For small inputs: nothing is streamed."""
    calls: list[Call] = []
    tap = _Tap(lambda index, call: calls.append(call), lambda index: True)
    with torch.inference_mode(), tapped(model, tap):
        model(**inputs, use_cache=False)
    return calls


def stream(
    model: PreTrainedModel,
    sites: Sequence[Site],
    inputs: Mapping[str, torch.Tensor],
    consume: Consumer,
    wanted: frozenset[int] | None = None,
) -> None:
    """Run the model once and hand the maps of each wanted site (by number; None: all) to `consume` as they appear.

    A layer's maps are freed before the next layer's exist, unless the consumer keeps them.
    """
    paths = {id(module): name for name, module in model.named_modules()}
    visible: dict[int, tuple[torch.Tensor | None, torch.Tensor | None]] = {}

    def take(index: int, call: Call) -> None:
        caller = paths.get(id(call.module))
        if index >= len(sites) or caller != sites[index].module:
            expected = sites[index].module if index < len(sites) else "no more calls"
            raise ModelError(
                f"attention call {index + 1} came from {caller!r} where the dry run saw {expected!r}",
                "This model chooses its layers by input; such models are not supported",
            )
        # Layers share a mask; those that do are given one and the same tensor.
        if id(call.mask) not in visible:
            visible[id(call.mask)] = (call.visible(), call.mask)
        consume(index, call.weights, visible[id(call.mask)][0], call.later)

    tap = _Tap(take, lambda index: wanted is None or index in wanted)
    with torch.inference_mode(), tapped(model, tap):
        model(**inputs, use_cache=False)
    if tap.calls != len(sites):
        raise ModelError(f"{tap.calls} attention calls where the dry run saw {len(sites)}: maps of some layers are missing")


OUTPUTS = {"encoder": ("attentions", "encoder_attentions"), "decoder": ("attentions", "decoder_attentions"), "cross": ("cross_attentions",)}


def from_outputs(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Tensor, ...]]:
    """The maps a model returns under eager `output_attentions=True`, by the name of the output; empty tuples left out."""
    with torch.inference_mode(), implementation(model, "eager"):
        outputs = model(**inputs, output_attentions=True, use_cache=False)
    names = {name for names in OUTPUTS.values() for name in names}
    return {name: maps for name in sorted(names) if (maps := getattr(outputs, name, None))}
