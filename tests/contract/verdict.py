"""The verdict on one architecture: the maps that headscope captures equal those of eager attention, or the architecture
is refused with a reason.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from tiny import build_tiny, padded
from transformers import PreTrainedModel

from headscope.core.heads import Site
from headscope.errors import ModelError
from headscope.models import capture, fused
from headscope.models.sites import Capture, find_sites
from headscope.models.verify import refused_without_maps

State = Literal["equal", "refused", "not built", "differs"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one architecture, with the reason."""

    name: str
    state: State
    why: str = ""
    how: Capture | None = None
    sites: tuple[Site, ...] = ()
    without_maps: bool = False  # whether row statistics without maps are available and equal those of the maps


def judge(name: str, **options: Any) -> Verdict:
    """Compare the maps captured from a tiny model with those that transformers returns from a model loaded with eager
    attention.
    """
    try:
        reference = build_tiny(name, "eager", **options)
        model = build_tiny(name, None if reference._can_set_attn_implementation() else "eager", **options)
    except Exception as error:
        return Verdict(name, "not built", f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}")
    try:
        sites, how = find_sites(model)
    except ModelError as error:
        return Verdict(name, "refused", error.problem)
    for side in ("right", "left"):
        batch = padded(model, side)
        if difference := _difference(model, reference, sites, how, batch):
            return Verdict(name, "differs", f"{difference}, padded on the {side}", how, sites)
    without_maps = how == "interface" and refused_without_maps(model, sites) is None
    if without_maps and (difference := _rows_differ(model, sites)):
        return Verdict(name, "differs", f"{difference}, without maps", how, sites)
    return Verdict(name, "equal", "", how, sites, without_maps)


def _rows_differ(model: PreTrainedModel, sites: tuple[Site, ...]) -> str | None:
    """The first site whose row statistics without maps differ from those of the maps, as a message; None without one.

    In the first layer, entropy must agree to 1e-5 nats and weights to 2e-6. Later layers have wider tolerances:
    rounding grows from layer to layer, as it does between SDPA and eager attention. A lost mask or bias changes weights
    by 0.1 and more.
    """
    for number, (site, values, expected) in enumerate(fused.differences(model, sites, padded(model, "right"))):
        deviation = (values - expected).abs()
        nats, weight = (1e-5, 2e-6) if number == 0 else (1e-3, 5e-4)
        if not (float(deviation[..., 1].max()) < nats and float(deviation[..., 2:].max()) < weight):
            return f"{site.name} has other statistics of rows"
    return None


def _difference(
    model: PreTrainedModel, reference: PreTrainedModel, sites: tuple[Site, ...], how: Capture, batch: dict[str, torch.Tensor]
) -> str | None:
    expected = _returned(reference, sites, batch)
    seen: dict[int, torch.Tensor] = {}
    if how == "interface":
        capture.stream(model, sites, batch, lambda index, maps, *_: seen.update({index: maps.clone()}))
    else:
        seen = dict(enumerate(maps for group in capture.from_outputs(model, batch)[0].values() for maps in group))
    paired = model.config.is_encoder_decoder
    for index, site in enumerate(sites):
        group = expected[site.kind]
        own = [other for other in sites if other.kind == site.kind]
        # Some models also return something for layers without attention maps: then the place of a layer is its number.
        place = own.index(site) if len(group) == len(own) else site.layer
        if place >= len(group) or group[place].shape != seen[index].shape:
            return f"{site.name} has another shape"
        rows = batch["decoder_attention_mask" if paired and site.kind != "encoder" else "attention_mask"][:, None, :, None]
        if not float(((group[place] - seen[index]) * rows).abs().max()) < 1e-6:
            return f"{site.name} has other weights"
    return None


def _returned(reference: PreTrainedModel, sites: tuple[Site, ...], batch: dict[str, torch.Tensor]) -> dict[str, list[torch.Tensor]]:
    """The maps of each kind that the model returns; if it returns none, those that its attention modules return."""
    modules: dict[str, list[torch.Tensor]] = {site.kind: [] for site in sites}
    with ExitStack() as hooks:
        for path, kind in {site.module: site.kind for site in sites if "[" not in site.module}.items():

            def keep(module: Any, args: Any, output: Any, kind: str = kind) -> None:
                modules[kind] += [part for part in output if isinstance(part, torch.Tensor) and part.ndim == 4]

            hooks.callback(reference.get_submodule(path).register_forward_hook(keep).remove)
        with torch.inference_mode():
            result = reference(**batch, output_attentions=True, use_cache=False)
    names = {kind: f"{kind}_attentions" if reference.config.is_encoder_decoder else "attentions" for kind in modules}
    return {kind: [maps for maps in getattr(result, name, None) or () if maps is not None] or modules[kind] for kind, name in names.items()}
