"""The attention sites of a model: found by a dry run, never read from a configuration, and verified before use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Literal

import torch

from headscope.core.heads import Kind, Site
from headscope.errors import ModelError
from headscope.models import capture
from headscope.models.dry_run import dry_inputs, small_windows
from headscope.models.verify import Tried, agree, require_full_attention, verify_returned, verify_tapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Capture = Literal["interface", "outputs"]


def find_sites(model: PreTrainedModel) -> tuple[tuple[Site, ...], Capture]:
    """The model's attention sites in the order they are called, and how their maps are captured.

    The maps captured by a tap must equal those that the model returns under eager `output_attentions=True`. If the tap
    captures fewer or more, as for a module that attends twice per layer, maps are taken from the outputs. A model that
    fails the checks of `verify` either way is refused.
    """
    require_full_attention(model)
    try:
        with small_windows(model), torch.inference_mode():
            return _find(model, dry_inputs(model))
    except ModelError:
        raise
    except Exception as error:
        if not any(frame.name == "_call_impl" for frame in extract_tb(error.__traceback__)):
            raise  # not raised inside a module: a fault of headscope, not of the model
        raise ModelError(
            f"{type(model).__name__} failed on a dry run over two short texts ({type(error).__name__}: {str(error).strip()[:200]})",
            "headscope reads text models: encoders, decoders and encoder-decoders that need nothing but the tokens of a text",
        ) from error


def _find(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> tuple[tuple[Site, ...], Capture]:
    returned, eager = capture.from_outputs(model, inputs)
    if model._can_set_attn_implementation():
        with _enclosing_layer(model) as layer:
            numbers: list[int | None] = []
            calls, captured = capture.observe(model, inputs, lambda: numbers.append(layer()))
        if calls:
            sites = _of_calls(model, calls, numbers, inputs)
            maps = [call.weights for call in calls]
            if agree(model, sites, maps, returned):
                verify_tapped(model, Tried(inputs, sites, maps, eager), captured)
                return sites, "interface"
    if not returned:
        raise ModelError(
            f"{type(model).__name__} yields no attention, neither through transformers' attention interface nor as an output",
            "Choose a model whose layers attend; state-space and convolutional models have no attention heads",
        )
    sites = _of_outputs(model, returned, inputs)
    verify_returned(model, Tried(inputs, sites, [maps for group in returned.values() for maps in group], eager))
    return sites, "outputs"


def _of_calls(
    model: PreTrainedModel, calls: Sequence[capture.Call], numbers: list[int | None], inputs: Mapping[str, torch.Tensor]
) -> tuple[Site, ...]:
    """The sites of the calls that a tap captured; `numbers` has the number of the layer of each call."""
    paths = {id(module): name for name, module in model.named_modules()}
    kinds = [_kind(model, call.weights, inputs) for call in calls]
    return tuple(
        Site(kind, number, call.weights.shape[1], call.kv_heads, paths[id(call.module)])
        for call, kind, number in zip(calls, kinds, _layers(kinds, numbers), strict=True)
    )


def _layers(kinds: list[Kind], numbers: list[int | None]) -> list[int]:
    """The layer of each call: the number of the layer that contains it, so that a hybrid model's layers keep their
    numbers.

    If the calls of a kind are not in different layers (ALBERT has one layer, which is called repeatedly), they are
    counted.
    """
    count: Counter[Kind] = Counter()
    layers = []
    for kind, number in zip(kinds, numbers, strict=True):
        own = [-1 if n is None else n for k, n in zip(kinds, numbers, strict=True) if k == kind]
        apart = min(own) >= 0 and sorted(set(own)) == own
        layers.append(number if apart and number is not None else count[kind])
        count[kind] += 1
    return layers


@contextmanager
def _enclosing_layer(model: PreTrainedModel) -> Iterator[Any]:
    """A function that returns, during a pass, the number of the running layer: its index in the outermost list of
    modules.
    """
    inside: list[int] = []

    def leave(*_: Any) -> None:
        inside.pop()

    with ExitStack() as hooks:
        for module in model.modules():
            if isinstance(module, torch.nn.ModuleList):
                for number, layer in enumerate(module):
                    hooks.callback(layer.register_forward_pre_hook(lambda *_, number=number: inside.append(number)).remove)
                    hooks.callback(layer.register_forward_hook(leave).remove)
        yield lambda: inside[0] if inside else None


def _kind(model: PreTrainedModel, maps: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> Kind:
    """Cross if rows and columns differ; otherwise a decoder's maps are zero above the diagonal."""
    rows, columns = maps.shape[-2:]
    if rows != columns:
        return "cross"
    if model.config.is_encoder_decoder:
        return "encoder" if rows == inputs["input_ids"].shape[1] else "decoder"
    return "decoder" if not maps[0].triu(1).any() else "encoder"


def _of_outputs(
    model: PreTrainedModel, outputs: Mapping[str, tuple[torch.Tensor, ...]], inputs: Mapping[str, torch.Tensor]
) -> tuple[Site, ...]:
    """The sites of the maps that a model returns."""
    sites = []
    for name, group in outputs.items():
        for layer, maps in enumerate(group):
            if not isinstance(maps, torch.Tensor) or maps.ndim != 4:
                raise ModelError(
                    f"{type(model).__name__} returns {_shape(maps)} as {name}[{layer}], which is not a map of all pairs of tokens",
                    "Choose a model whose layers attend to all tokens",
                )
            sites.append(Site(_kind(model, maps, inputs), layer, maps.shape[1], maps.shape[1], f"{name}[{layer}]"))
    return tuple(sites)


def _shape(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
