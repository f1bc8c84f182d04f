"""Loading a checkpoint from a folder, a GGUF file or the hub. Safetensors or GGUF only, no remote code."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModel
from transformers.utils import cached_file

from headscope.errors import ModelError
from headscope.models.folder import check_config, check_layers, check_reads_text, check_size, read_json, stored_numbers
from headscope.models.loading import gguf
from headscope.models.loading.adapter import Adapter
from headscope.models.loading.locate import ModelSource
from headscope.models.loading.tokenizers import read_tokenizer
from headscope.models.objectives import objective_of, require_weights
from headscope.models.predictions import Objective
from headscope.models.prune import described, load_whole

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A loaded checkpoint: its network, its tokenizer, what it predicts, which heads were cut out of it, and its
    origin.
    """

    network: PreTrainedModel
    tokenizer: Any
    objective: Objective | None
    pruned: dict[str, Any] | None
    origin: dict[str, str]


def read_checkpoint(name: str, source: ModelSource, dtype: torch.dtype, head: bool, device: torch.device | None) -> LoadedCheckpoint:
    """Load the checkpoint at `source`, with its prediction head if `head`. `device` is None if accelerate chooses."""
    options = source.options()
    adapter = None if source.adapter is None else Adapter(source.adapter, source.gguf or source.place)
    header = None if source.gguf is None else gguf.read_header(Path(source.place, source.gguf))
    config = _config(source, options)
    if adapter is not None:
        kind, objective, skeleton = adapter.choose_class(name, config, head)
    else:
        kind, objective = objective_of(name, config) if head else (_class_without_head(name, config), None)
        with torch.device("meta"):
            skeleton = kind.from_config(config)
    check_reads_text(name, skeleton)
    tokenizer = tokenizer_at(name, source, options)
    pruned = described(source.place) if source.local and header is None else None
    if source.local:
        check_size(name, stored_numbers(Path(source.place)) if header is None else header.numbers, skeleton)
    if pruned is not None:
        network, info = load_whole(skeleton, source.place, config, dtype, pruned)
    else:
        # If attention cannot be switched later, maps are available only if the model was loaded with eager attention.
        attention = {} if skeleton._can_set_attn_implementation() else {"attn_implementation": "eager"}
        how = {**attention, **options, **_device_map(config, device)}
        how |= {"use_safetensors": True} if header is None else gguf.unpacking()
        with nullcontext() if header is None else gguf.without_progress_bar():
            network, info = kind.from_pretrained(source.place, config=config, dtype=dtype, output_loading_info=True, **how)
    if adapter is not None:
        info = {**info, "missing_keys": _missing(adapter, network, info["missing_keys"], head)}
        network = adapter.merge_into(network)
    require_weights(name, network, objective if head else None, info)
    check_layers(name, network, info["unexpected_keys"])
    origin = {**(adapter.origin if adapter is not None else {}), **({"quantisation": f"gguf-{header.quantisation}"} if header else {})}
    return LoadedCheckpoint(network, tokenizer, objective if head else None, pruned, origin)


def _config(source: ModelSource, options: dict[str, Any]) -> Any:
    if not source.local:
        check_config(source.place, read_json(Path(cached_file(source.place, "config.json", **options))))
    config = AutoConfig.from_pretrained(source.place, **options)
    if source.gguf is not None:
        gguf.complete_config(config)
    return config


def continues_texts(name: str, source: ModelSource) -> bool:
    """Whether a checkpoint, by its configuration, is a decoder with a head that predicts next tokens."""
    config = _config(source, source.options())
    return objective_of(name, config)[1] == "causal" and not config.is_encoder_decoder


def _class_without_head(name: str, config: Any) -> Any:
    """The class that loads a model without its head. Quantised weights can be read only by their own class."""
    if getattr(config, "quantization_config", None):
        with suppress(ModelError):
            return objective_of(name, config)[0]
    return AutoModel


def tokenizer_at(name: str, source: ModelSource, options: dict[str, Any]) -> Any:
    """The tokenizer of the base model, unless an adapter brings one."""
    if source.adapter is not None and (source.adapter / "tokenizer.json").is_file():
        return read_tokenizer(name, str(source.adapter), {"local_files_only": True, "trust_remote_code": False})
    return read_tokenizer(name, source.place, options)


def _device_map(config: Any, device: torch.device | None) -> dict[str, Any]:
    """The option that places weights on devices. Quantised weights are placed while they are loaded, others are moved
    afterwards.
    """
    if device is None:
        return {"device_map": "sequential"}  # fills one device before the next; `auto` would fill all evenly
    quantised = getattr(config, "quantization_config", None) is not None
    return {"device_map": {"": device}} if quantised and device.type != "cpu" else {}


def _missing(adapter: Adapter, network: PreTrainedModel, missing: Any, head: bool) -> set[str]:
    """The weights that neither the base model nor the adapter contains; without `head`, only those of the body."""
    body = "" if network.base_model is network else f"{network.base_model_prefix}."
    return {key for key in missing if not adapter.gives(key) and (head or key.startswith(body))}
