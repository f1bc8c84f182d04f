"""PEFT adapters (LoRA and others): loaded onto their base model and merged into its weights.

An adapter is always merged before a model is measured. Otherwise, code that reads the weights of a layer would see only
those of the base model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from transformers import AutoModel

from headscope.core.paths import title
from headscope.errors import ModelError
from headscope.models.folder import read_json
from headscope.models.loading.quiet import first_line
from headscope.models.objectives import BY_TASK, objective_of
from headscope.models.predictions import Objective

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."  # of the tensors in the file
_CLASSIFIERS = ("classifier.weight", "score.weight", "classifier.out_proj.weight", "classification_head.out_proj.weight")
_LARGEST_RANK = 10_000
_SAVED = "Name the folder that PEFT's save_pretrained wrote"


def base_of(folder: Path) -> str:
    """The name of an adapter's base model; an error if the folder does not contain an adapter that can be read."""
    config = read_json(folder / CONFIG)
    if find_spec("peft") is None:
        raise ModelError(f"{folder} contains an adapter, and peft is needed to read it", "pip install 'headscope[peft]'")
    if config.get("megatron_config"):  # it names a module to import
        raise ModelError(f"{folder / CONFIG} needs custom code", "Use an adapter that PEFT reads without it")
    ranks = [config.get("r"), *(pattern if isinstance(pattern := config.get("rank_pattern"), dict) else {}).values()]
    if any(isinstance(rank, int) and rank > _LARGEST_RANK for rank in ranks):
        raise ModelError(f"{folder / CONFIG} sets a rank of more than {_LARGEST_RANK:,}", _SAVED)
    if not (folder / WEIGHTS).is_file():
        raise ModelError(f"{folder} contains an adapter without {WEIGHTS}", "Save it with safe_serialization=True")
    name = config.get("base_model_name_or_path")
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"{folder / CONFIG} does not name a base model", "Add its folder as base_model_name_or_path")
    return name


@dataclass(frozen=True)
class Adapter:
    """An adapter in a folder, and the name of its base model."""

    folder: Path
    base: str

    @property
    def origin(self) -> dict[str, str]:
        """The part of a signature that describes the adapter."""
        return {"base": title(self.base), "adapter": title(str(self.folder.resolve()))}

    @cached_property
    def shapes(self) -> dict[str, list[int]]:
        """The shapes of the adapter's tensors, by their names in the base model."""
        try:
            with safe_open(self.folder / WEIGHTS, framework="pt") as file:
                return {name.removeprefix(_PREFIX): list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise ModelError(f"{self.folder / WEIGHTS} is not a valid safetensors file ({first_line(error)})", _SAVED) from None

    def choose_class(self, name: str, config: PretrainedConfig, head: bool) -> tuple[Any, Objective | None, PreTrainedModel]:
        """The class to load the base model with, what it predicts, and its skeleton without weights. The first class
        that has all modules that the adapter changes is chosen.
        """
        task = str(read_json(self.folder / CONFIG).get("task_type"))
        sizes = [shape[0] for key, shape in self.shapes.items() if key.endswith(_CLASSIFIERS)]
        if sizes and task in ("SEQ_CLS", "TOKEN_CLS"):
            config.num_labels = sizes[0]
        kinds: list[tuple[Any, Objective | None]] = [] if head else [(AutoModel, None)]
        kinds += [BY_TASK[task]] if task in BY_TASK else []
        if getattr(config, "architectures", None):
            try:
                kinds.append(objective_of(name, config))
            except ModelError:
                if head and len(kinds) == 0:
                    raise
        for kind, objective in kinds:
            with torch.device("meta"):
                skeleton = kind.from_config(config)
            if self._target(skeleton) is not None:
                return kind, objective, skeleton
        modules = {name for network in (skeleton, skeleton.base_model) for name, _ in network.named_modules()}
        strange = next((module for module in self._modules() if module not in modules), "modules")
        raise ModelError(
            f"the adapter in {self.folder} changes {strange}, which {type(skeleton).__name__} of {title(self.base)} does not have",
            "Check base_model_name_or_path in its adapter_config.json",
        )

    def merge_into(self, network: PreTrainedModel) -> PreTrainedModel:
        """Merge the adapter into the weights of the base model, and return the model."""
        from peft import PeftConfig, PeftModel, get_peft_model_state_dict

        target = self._target(network)
        assert target is not None
        _require_merging(str(self.folder), [PeftConfig.from_pretrained(str(self.folder))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing weights are detected below
            loaded = get_peft_model_state_dict(PeftModel.from_pretrained(target, str(self.folder), is_trainable=False))
        with safe_open(self.folder / WEIGHTS, framework="pt") as file:
            if missing := sorted(loaded.keys() - file.keys()):
                raise ModelError(f"{self.folder / WEIGHTS} lacks {len(missing)} weights (first: {missing[0]})", _SAVED)
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name not in loaded or not torch.equal(loaded[name].cpu().float(), file.get_tensor(name).float()):
                    raise ModelError(f"{name} in {self.folder / WEIGHTS} does not belong to {title(self.base)}", _SAVED)
        merge_adapters(str(self.folder), target)
        return network

    def gives(self, key: str) -> bool:
        """Whether the adapter contains a weight of the base model, such as that of a new head."""
        return key in self.shapes

    def _modules(self) -> Iterator[str]:
        """The paths of the modules that the adapter changes."""
        for key in self.shapes:
            parts = key.split(".")
            marks = [number for number, part in enumerate(parts) if part.startswith(("lora_", "ia3_", "hada_", "lokr_", "oft_", "vera_"))]
            yield ".".join(parts[: marks[0]] if marks else parts[:-1])

    def _target(self, network: PreTrainedModel) -> PreTrainedModel | None:
        """The part of a model that the adapter was trained on: the whole model, or its body; None if neither."""
        for target in (network, network.base_model):
            names = {name for name, _ in target.named_modules()}
            if all(module in names for module in self._modules()):
                return target
        return None


def tuner_layers(network: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The layers that PEFT inserted into a model, by path; not those inside another one."""
    layers: dict[str, torch.nn.Module] = {}
    for path, module in network.named_modules():
        if type(module).__module__.startswith("peft.") and not any(path.startswith(f"{outer}.") for outer in layers):
            layers[path] = module
    return layers


def origin_of_adapters(network: Any) -> dict[str, str]:
    """The part of a signature that describes the active adapters of a model in memory; empty if it has none."""
    configs = getattr(network, "peft_config", None)
    if not configs:
        return {}
    active = getattr(network, "active_adapters", None)
    active = active() if callable(active) else active
    names = [name for name in (active if isinstance(active, list | tuple) else [active]) if name in configs]
    _require_merging("the model", [configs[name] for name in names])
    base = next((str(config.base_model_name_or_path) for config in configs.values() if config.base_model_name_or_path), "")
    return {**({"base": title(base)} if title(base) else {}), "adapter": "+".join(map(str, names)) or "none"}


def merge_adapters(name: str, network: PreTrainedModel) -> None:
    """Merge the active adapters of a model into its weights, and remove PEFT's layers."""
    with torch.no_grad():
        for path, layer in tuner_layers(network).items():
            parent, _, attribute = path.rpartition(".")
            setattr(network.get_submodule(parent), attribute, _merged(name, layer))
    for attribute in ("peft_config", "_hf_peft_config_loaded"):
        vars(network).pop(attribute, None)
    if left := tuner_layers(network):
        raise _unmergeable(name, type(next(iter(left.values()))).__name__)


def _merged(name: str, layer: Any) -> torch.nn.Module:
    """The layer that PEFT wrapped, with its active adapters merged."""
    if hasattr(layer, "unload_and_optionally_merge_module"):  # a layer that was trained in full, such as a new head
        module: torch.nn.Module = layer.unload_and_optionally_merge_module(merge=True, safe_merge=False, adapter_names=None)
        return module
    if not hasattr(layer, "get_base_layer") or not hasattr(layer, "merge"):
        raise _unmergeable(name, type(layer).__name__)
    if layer.disable_adapters and layer.merged:
        layer.unmerge()
    elif not layer.disable_adapters and not layer.merged:
        layer.merge()
    base: torch.nn.Module = layer.get_base_layer()
    return base


def _require_merging(name: str, configs: Iterable[Any]) -> None:
    """Refuse adapters that do not change weights, such as prompts."""
    for config in configs:
        if config.is_prompt_learning or str(getattr(config.peft_type, "value", config.peft_type)) == "ADAPTION_PROMPT":
            raise _unmergeable(name, str(getattr(config.peft_type, "value", config.peft_type)))


def _unmergeable(name: str, kind: str) -> ModelError:
    return ModelError(
        f"the adapter of {name} is of the kind {kind}, which cannot be merged into the weights of its base model",
        "Use LoRA or another adapter that changes weights",
    )
