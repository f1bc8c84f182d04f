"""Heads permanently cut out of a model, which leaves smaller matrices (not gates), and folders for such models.

A folder contains what `save_pretrained` writes, with the smaller tensors, and `pruned_heads.json`, which says what is
missing. `layers` gives for each layer that lost heads their original number and the heads kept, counted from 1.
`tensors` gives for each tensor that was cut its original `shape`, and which of `pieces` pieces, each `width` wide along
`axis`, are `kept`, counted from 0. A tensor that is described there but not in the file lost all its pieces. With zeros
for what is missing, any code for the original model can load it; the folder's README.md has this code. A folder that
keeps the shape of the model has these zeros in its tensors and no `pruned_heads.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file

from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.corpora.source import quoted
from headscope.errors import ModelError
from headscope.models.dry_run import alone, dry_inputs
from headscope.models.folder import tails
from headscope.models.gates import gated, gates_without
from headscope.models.model import Model
from headscope.models.projections import cut, projections
from headscope.models.pruned_readme import readme, write_readme
from headscope.models.saving import WEIGHTS, written_whole

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FILE = "pruned_heads.json"
VERSION = 1


@dataclass(frozen=True)
class Pruning:
    """The sites of the original model, and the heads that are left, numbered as in the original model."""

    sites: tuple[Site, ...]
    kept: tuple[tuple[int, ...], ...]

    @classmethod
    def none(cls, sites: tuple[Site, ...]) -> Pruning:
        """The pruning that keeps all heads."""
        return cls(sites, tuple(tuple(range(site.heads)) for site in sites))

    def left(self) -> tuple[Site, ...]:
        """The sites that still have heads, with the number of heads left."""
        sizes = [(site, len(kept), site.heads // site.kv_heads) for site, kept in zip(self.sites, self.kept, strict=True)]
        return tuple(replace(site, heads=heads, kv_heads=heads // group) for site, heads, group in sizes if heads)

    def original(self, head: HeadId) -> HeadId:
        """The id in the original model of a head of the smaller one."""
        return replace(head, head=self.kept[self._number(head)][head.head])

    def removed(self) -> tuple[HeadId, ...]:
        """The heads that were cut out, by their ids in the original model."""
        kept = {(site.kind, site.layer): set(heads) for site, heads in zip(self.sites, self.kept, strict=True)}
        return tuple(head for head in HeadLayout(self.sites).ids() if head.head not in kept[head.kind, head.layer])

    def without(self, heads: Iterable[HeadId]) -> Pruning:
        """The pruning with more heads cut out, given by their ids in the smaller model."""
        gone: dict[int, set[int]] = {}
        for head in heads:
            gone.setdefault(self._number(head), set()).add(head.head)
        return Pruning(
            self.sites,
            tuple(tuple(h for at, h in enumerate(kept) if at not in gone.get(number, ())) for number, kept in enumerate(self.kept)),
        )

    def _number(self, head: HeadId) -> int:
        return next(number for number, site in enumerate(self.sites) if (site.kind, site.layer) == (head.kind, head.layer))


def prune(model: Model, heads: Iterable[HeadId]) -> Model:
    """A copy of a model without some heads. Its output is that of the model with gates of 0 on these heads.

    Any heads of a layer can be cut out, or all; heads that share a key and value only together. The remaining heads are
    renumbered; `pruning.original` gives their ids in the original model.
    """
    if model.capture != "interface":
        raise ModelError(f"{model.name} bypasses transformers' attention interface, so no heads can be cut out of it", "Use gates instead")
    model.require_plain_weights("cutting out heads")
    heads = list(heads)
    gates = gates_without(model, heads)
    before = model.pruning or Pruning.none(model.sites)
    after = before.without(heads)
    whole = deepcopy(model.whole or model.network)
    body = whole.base_model
    _cut(body, model.sites, {number: gate.nonzero()[:, 0].tolist() for number, gate in gates.items()})
    smaller = replace(model, network=body, whole=None if model.whole is None else whole, sites=after.left(), pruning=after)
    inputs = alone(dry_inputs(body), 0)
    with torch.inference_mode():
        found = body(**inputs, use_cache=False)[0]
        with gated(model, gates):
            expected = model.network(**inputs, use_cache=False)[0]
    rough = 1e-3 if found.dtype == torch.float32 else 0.1
    if not torch.allclose(found.float(), expected.float(), rtol=rough, atol=rough * float(expected.float().abs().max())):
        raise ModelError(
            f"{type(body).__name__} gives something else when heads are cut out than when they are switched off",
            "Its attention has an unknown layout: use gates instead",
        )
    return smaller


def _cut(network: PreTrainedModel, sites: tuple[Site, ...], kept: dict[int, list[int]]) -> None:
    """Cut out heads. Sites that are the same module, as in ALBERT, must lose the same heads."""
    found: dict[str, list[int]] = {}
    for number, site in enumerate(sites):
        own = kept.get(number, list(range(site.heads)))
        if found.setdefault(site.module, own) != own:
            raise ModelError(
                f"the layers of {type(network).__name__} share their weights, so that {site.name} cannot lose other heads than the rest",
                "Cut the same heads out of all layers, or use gates",
            )
    modules = {site.module: site for site in sites}
    known = {module: projections(network, site) for module, site in modules.items() if len(found[module]) < site.heads}
    for projected in known.values():  # all are checked before any is cut
        list(projected.pieces(network, found[projected.site.module]))
    for module, projected in known.items():
        cut(network, projected, found[module])


def save(model: Model, folder: str | Path, keep_shape: bool = False) -> Path:
    """Write a model to a folder that `headscope.load` reads: weights, configuration, tokenizer, and which heads were
    cut out.

    With `keep_shape` the weights have their full size, with zeros for heads that were cut out, so that every tool can
    load them.
    """
    from headscope.models.load import quietly  # it imports this module to load such folders

    folder = Path(folder)
    whole = model.whole or model.network
    with quietly(), written_whole(folder) as place:
        if model.pruning is not None:
            said = _description(whole, model.pruning)
            write_readme(place, folder, readme(type(whole).__name__, said["layers"], keep_shape))
            if keep_shape:
                state = _filled(whole.state_dict(), said["tensors"])
                whole = type(whole).from_pretrained(None, config=whole.config, state_dict=state, dtype=whole.dtype)
            else:
                (place / FILE).write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        whole.save_pretrained(place)
        model.tokenizer.hf.save_pretrained(place)
    return folder


def _description(whole: PreTrainedModel, pruning: Pruning) -> dict[str, Any]:
    with torch.device("meta"):
        skeleton = type(whole)(whole.config)  # in the original size
    shapes = {name: list(tensor.shape) for name, tensor in skeleton.state_dict().items()}
    body = skeleton.base_model
    path = "" if body is skeleton else f"{next(name for name, module in skeleton.named_modules() if module is body)}."
    lost = [(site, kept) for site, kept in zip(pruning.sites, pruning.kept, strict=True) if len(kept) < site.heads]
    pieces = [pieces for site, kept in lost for pieces in projections(body, site).pieces(body, kept)]
    return {
        "version": VERSION,
        "layers": {site.name: {"heads": site.heads, "kept": [head + 1 for head in kept]} for site, kept in lost},
        "tensors": {
            path + one.tensor: {
                "shape": shapes[path + one.tensor],
                "axis": one.axis,
                "pieces": one.of,
                "width": one.width,
                "kept": one.kept,
            }
            for one in pieces
        },
    }


def described(folder: str | Path) -> dict[str, Any] | None:
    """The content of `pruned_heads.json` in a folder; None if there is none."""
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["version"] != VERSION:
            raise ModelError(f"{path} has version {quoted(said['version'])}, but only version {VERSION} is known", "Update headscope")
        layers = {name: {"heads": int(one["heads"]), "kept": [int(head) for head in one["kept"]]} for name, one in said["layers"].items()}
        return {"layers": layers, "tensors": dict(said["tensors"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        problem = f"{path} does not say which heads were cut out ({type(error).__name__}: {str(error)[:200]})"
        raise ModelError(problem, "Write the folder again") from None


def _check_tensors(folder: str, tensors: dict[str, Any], skeleton: PreTrainedModel) -> None:
    """Refuse a description of tensors that the original model does not have in this shape, before memory is allocated
    for them.
    """
    shapes = {name: list(tensor.shape) for name, tensor in skeleton.state_dict().items()}
    for name, one in tensors.items():
        # The model may have been saved with a head and be loaded without it, or the reverse.
        called = [f"{skeleton.base_model_prefix}.{name}", *tails(name)]
        try:
            shape, axis, kept = one["shape"], one["axis"], one["kept"]
            right = (
                shape == next((shapes[own] for own in called if own in shapes), None)
                and axis in range(len(shape))
                and one["pieces"] * one["width"] == shape[axis]
            )
            right = right and all(type(piece) is int and 0 <= piece < one["pieces"] for piece in kept) and len({*kept}) == len(kept)
        except (KeyError, TypeError, IndexError):
            right = False
        if not right:
            raise ModelError(f"{Path(folder) / FILE} describes {name[:100]!r}, which does not fit the model", "Write the folder again")


def whole_weights(folder: str | Path, said: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights in a folder, with zeros for heads that were cut out."""
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(Path(folder).iterdir()):
        if WEIGHTS.fullmatch(path.name):
            weights |= load_file(path)
    return _filled(weights, said["tensors"])


def _filled(weights: Mapping[str, torch.Tensor], tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Weights in their full size, with zeros for the pieces that were cut out of these tensors."""
    weights = dict(weights)
    dtype = next(iter(weights.values())).dtype
    for name, one in tensors.items():
        whole = torch.zeros(one["shape"], dtype=dtype)
        if name in weights:
            places = torch.tensor(one["kept"], dtype=torch.long)[:, None] * one["width"] + torch.arange(one["width"])
            there, wanted = weights[name], [*one["shape"][: one["axis"]], places.numel(), *one["shape"][one["axis"] + 1 :]]
            if list(there.shape) != wanted:
                raise ModelError(f"{name} has the shape {list(there.shape)} where {FILE} says {wanted}", "Write the folder again")
            whole.index_copy_(one["axis"], places.flatten(), there.to("cpu", dtype))
        weights[name] = whole
    return weights


def load_whole(
    skeleton: PreTrainedModel, folder: str, config: Any, dtype: torch.dtype, said: dict[str, Any]
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A pruned model in its original size, with zeros for what is missing, and transformers' loading info."""
    _check_tensors(folder, said["tensors"], skeleton)
    concrete = type(skeleton)
    network, info = concrete.from_pretrained(
        None, config=config, state_dict=whole_weights(folder, said), dtype=dtype, output_loading_info=True
    )
    network.name_or_path = folder
    return network, info


def cut_again(network: PreTrainedModel, sites: tuple[Site, ...], said: dict[str, Any]) -> Pruning:
    """Cut out of a model in its original size the heads that its description lists."""
    if unknown := sorted(said["layers"].keys() - {site.name for site in sites}):
        raise ModelError(f"{FILE} describes {unknown[0][:100]!r}, which the model does not have", "Write the folder again")
    kept = []
    for site in sites:
        layer = said["layers"].get(site.name, {"heads": site.heads, "kept": range(1, site.heads + 1)})
        if layer["heads"] != site.heads or not {*layer["kept"]} <= {*range(1, site.heads + 1)}:
            heads = quoted(layer["heads"], 20)
            raise ModelError(f"{FILE} describes {heads} heads in {site.name}, which has {site.heads}", "Write the folder again")
        kept.append(tuple(sorted(head - 1 for head in layer["kept"])))
    _cut(network, sites, {number: list(heads) for number, heads in enumerate(kept)})
    return Pruning(sites, tuple(kept))
