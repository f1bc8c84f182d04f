"""The self-check of a loaded model: the maps that headscope captures must be attention weights, and capturing them must
not change the model's output.

It runs on the two short texts of a dry run, one of them padded, with windows lowered so that they have an effect. The
checks are: every map is query × key, finite and not negative; rows sum to 1, or less if the layer has a sink; padding
gets no weight; a text has the same maps with and without padding; the model's output is the same while its maps are
captured; and the layers found are those that the model returns maps of, or that its configuration declares. A model
that fails is refused with a one-line error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from headscope.core.heads import Kind, Site
from headscope.errors import ModelError
from headscope.models import capture, fused
from headscope.models.dry_run import alone, dry_inputs, small_windows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    Maps = Sequence[torch.Tensor]  # one per site: [batch, head, query, key]

# The largest mean difference between two computations of a tensor, relative to its mean size: in single and in half
# precision.
TOLERANCE, HALF_TOLERANCE = 1e-3, 0.1
# The largest difference of a row's sum from 1.
ROUNDING, HALF_ROUNDING = 1e-3, 2e-2
_TYPES = ("layer_types", "layers_block_type", "block_types")
_COUNTS: dict[Kind, tuple[str, ...]] = {
    "encoder": ("encoder_layers", "num_encoder_layers", "num_hidden_layers", "num_layers"),
    "decoder": ("decoder_layers", "num_decoder_layers", "num_hidden_layers", "num_layers"),
    "cross": ("decoder_layers", "num_decoder_layers", "num_hidden_layers", "num_layers"),
}


def agree(model: PreTrainedModel, sites: Sequence[Site], maps: Maps, returned: Mapping[str, Sequence[torch.Tensor]]) -> bool:
    """Whether the maps captured by a tap equal those that the model returns as outputs, as far as it returns any."""
    for kind, names in capture.OUTPUTS.items():
        group = [entry for name in names for entry in returned.get(name, ()) if isinstance(entry, torch.Tensor)]
        own = [(site.layer, seen) for site, seen in zip(sites, maps, strict=True) if site.kind == kind]
        if not group or (not own and not model.config.is_encoder_decoder):
            continue
        if len(group) == len(own):
            pairs = [(seen, entry) for (_, seen), entry in zip(own, group, strict=True)]
        elif own and _explained(model, [layer for layer, _ in own], len(group)):
            pairs = [(seen, group[layer]) for layer, seen in own]
        else:
            return False
        if not all(
            seen.shape == entry.shape and torch.allclose(seen, entry, rtol=1e-3, atol=1e-5, equal_nan=True) for seen, entry in pairs
        ):
            return False
    return True


@dataclass(frozen=True)
class Tried:
    """The results of a dry run: its inputs, the sites found, their maps, and everything that the model returned under
    eager attention.
    """

    inputs: Mapping[str, torch.Tensor]
    sites: Sequence[Site]
    maps: Maps
    eager: Any


def verify_tapped(model: PreTrainedModel, tried: Tried, captured: Any) -> None:
    """Refuse a model whose maps, as captured by a tap, are not attention weights, or whose output changed while they
    were captured.

    If the attention that the model was loaded with differs from eager attention (SDPA ignores soft caps), the model is
    set to eager attention permanently.
    """
    _check(model, tried)
    expected = _states(model, tried.eager, tried.inputs)
    if not _same(_states(model, captured, tried.inputs), expected):
        raise _refused(model, "its output changes when its attention is captured")
    _check_padding(model, tried, [call.weights for call in capture.observe(model, alone(tried.inputs, 1))[0]])
    plain = model(**tried.inputs, use_cache=False)
    with capture.tapped(model, capture.unwatched):
        unwatched = model(**tried.inputs, use_cache=False)
    if not all(_same(_states(model, result, tried.inputs), expected) for result in (plain, unwatched)):
        model.set_attn_implementation("eager")
        capture.only_eager(model)


def refused_without_maps(model: PreTrainedModel, sites: Sequence[Site]) -> str | None:
    """The reason why row statistics are not available without maps: the mask is not supported, or the statistics of a
    dry run are not those of the maps. None if they are available.
    """
    if not capture.attends_by_sdpa(model):
        return "SDPA does not compute its attention"
    with small_windows(model), torch.inference_mode():
        inputs = dry_inputs(model)
        try:
            pairs = fused.differences(model, sites, inputs)
        except fused.OtherMask as error:
            return str(error)
    dtype = torch.float32 if model.dtype == torch.float64 else model.dtype  # the precision of the maps
    for site, values, expected in pairs:
        pairs_of_columns = ((values[..., column].to(dtype), expected[..., column].to(dtype)) for column in range(1, values.shape[-1]))
        if not all(_same(*columns) for columns in pairs_of_columns):
            return f"its scores of {site.name} are not scaled products of queries and keys"
    return None


def verify_returned(model: PreTrainedModel, tried: Tried) -> None:
    """Refuse a model whose maps, as it returns them, are not attention weights, or whose output changes when it returns
    them.
    """
    _check(model, tried)
    with capture.implementation(model, "eager"):
        plain = model(**tried.inputs, use_cache=False)
    if not _same(_states(model, plain, tried.inputs), _states(model, tried.eager, tried.inputs)):
        raise _refused(model, "its output changes when it returns its attention")
    _check_padding(model, tried, [maps for group in capture.from_outputs(model, alone(tried.inputs, 1))[0].values() for maps in group])


def require_full_attention(model: PreTrainedModel) -> None:
    """Refuse a model whose configuration says that it attends to blocks of tokens."""
    if getattr(model.config, "attention_type", None) == "block_sparse":
        raise ModelError(
            f"{type(model).__name__} attends to blocks of tokens, and differently for short texts: it has no maps of all pairs of tokens",
            'Set "attention_type" to "original_full" in its config.json, which makes it attend to all tokens',
        )


def _check(model: PreTrainedModel, tried: Tried) -> None:
    for site, maps in zip(tried.sites, tried.maps, strict=True):
        _check_maps(model, site, maps, tried.inputs)
    _check_layers(model, tried.sites)


def _check_padding(model: PreTrainedModel, tried: Tried, bare: Maps) -> None:
    """Refuse a model whose maps of the second text are different without padding and without the first text."""
    if len(bare) != len(tried.sites):
        raise _refused(model, f"it attends {len(bare)} times in one text and {len(tried.sites)} times in another")
    for site, padded, maps in zip(tried.sites, tried.maps, bare, strict=True):
        rows, columns = maps.shape[-2:]
        if not _same(maps[0], padded[1, :, :rows, :columns]):
            raise _refused(model, f"the maps of {site.name} change when a text is padded, or when another text is in the batch")


def _check_maps(model: PreTrainedModel, site: Site, maps: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> None:
    """Refuse maps that are not weights of each query on all keys."""
    paired = model.config.is_encoder_decoder
    queries = inputs["decoder_attention_mask" if paired and site.kind != "encoder" else "attention_mask"].bool()
    keys = inputs["decoder_attention_mask" if paired and site.kind == "decoder" else "attention_mask"].bool()
    wanted = (len(queries), queries.shape[1], keys.shape[1])
    if (len(maps), *maps.shape[2:]) != wanted or (site.kind == "cross" and not paired):
        raise _refused(
            model,
            f"the maps of layer {site.layer + 1} are {' × '.join(map(str, maps.shape[2:]))} for texts of {wanted[1]} tokens,"
            " not one weight for each pair of tokens",
        )
    rows = maps.float().masked_fill(~queries[:, None, :, None], 0)
    if not torch.isfinite(rows).all():
        raise capture.NotFiniteError(type(model).__name__, site, model.dtype)
    if rows.min() < 0:
        raise _refused(model, f"the maps of {site.name} contain negative numbers: they are not attention weights")
    if rows.masked_fill(keys[:, None, None, :], 0).max() > 0:
        raise _refused(model, f"the maps of {site.name} give weight to padding")
    sums = rows.sum(-1)[queries[:, None].expand(-1, maps.shape[1], -1)]
    rounding = ROUNDING if maps.dtype == torch.float32 else HALF_ROUNDING
    if sums.max() > 1 + rounding or (sums.min() < 1 - rounding and not _has_sink(model, site)):
        raise _refused(model, f"rows of the maps of {site.name} sum to {sums.min():.3g} to {sums.max():.3g} instead of 1")


def _has_sink(model: PreTrainedModel, site: Site) -> bool:
    """Whether a layer declares a learned sink that takes a part of each row, as in GPT-OSS."""
    module = model.get_submodule(site.module) if "[" not in site.module else model
    return any("sink" in name for name, _ in module.named_parameters())


def _check_layers(model: PreTrainedModel, sites: Sequence[Site]) -> None:
    """Refuse a model if attention was not found in some of its layers, unless the reason is known."""
    for kind in {site.kind for site in sites}:
        layers = [site.layer for site in sites if site.kind == kind]
        count = _count(model, kind)
        if count is not None and len(layers) < count and not _explained(model, layers, count):
            raise _refused(model, f"it has {count} {kind} layers by its configuration, but attention was found in {len(layers)}")


def _count(model: PreTrainedModel, kind: Kind) -> int | None:
    for holder in (model.config, model.config.get_text_config(decoder=kind != "encoder", encoder=kind == "encoder")):
        for name in _COUNTS[kind]:
            if isinstance(number := getattr(holder, name, None), int):
                return number
    return None


def _explained(model: PreTrainedModel, layers: Sequence[int], count: int) -> bool:
    """Whether there is a known reason why layers other than these have no maps: all their heads were cut out, or they
    have no softmax attention.
    """
    if sum(hasattr(module, capture.HEADLESS) for module in model.modules()) == count - len(layers):
        return True
    config: Any = model.config.get_text_config()
    for name in _TYPES:
        types = getattr(config, name, None)
        if isinstance(types, list | tuple) and len(types) == count:
            missing = [str(types[layer]) for layer in range(count) if layer not in set(layers)]
            return all("attention" not in type_ or "linear" in type_ for type_ in missing)
    return False


def _states(model: PreTrainedModel, result: Any, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The last hidden states (or else the first output), [token, feature], of the tokens that are not padding."""
    states: torch.Tensor = result.last_hidden_state if hasattr(result, "last_hidden_state") else result[0]
    mask = inputs["decoder_attention_mask" if model.config.is_encoder_decoder else "attention_mask"].bool()
    return states[mask] if states.shape[:2] == mask.shape else states


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        return False
    tolerance = TOLERANCE if a.dtype in (torch.float32, torch.float64) else HALF_TOLERANCE
    difference, size = (a.double() - b.double()).abs().mean(), b.double().abs().mean()
    return bool(difference <= tolerance * size)


def _refused(model: PreTrainedModel, why: str) -> ModelError:
    return ModelError(f"{type(model).__name__} is not read: {why}", "Use another model; docs/models.md lists those that are verified")
