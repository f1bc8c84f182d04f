"""Checks of a model folder before anything in it is loaded: plain files, a configuration with plausible sizes, valid
weights, and no code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from safetensors import safe_open
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from headscope.core.paths import printable
from headscope.corpora.source import quoted
from headscope.errors import ModelError
from headscope.models.loading.quantised import pieces, require_readable

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INDEX = "model.safetensors.index.json"
_SAVED = "Name the folder that save_pretrained wrote"
_READ = (".json", ".safetensors", ".txt", ".model", ".jinja")  # what transformers may open
_JSON_BYTES = 500_000_000  # about ten times the tokenizer of a large vocabulary
_COUNTED = re.compile(r"(?:^|_)(?:num|n)_|layer|expert|head")  # settings that are counts
_NOT_COUNTED = re.compile(r"position|ctx|vocab|token|embd|embed|param|step|bucket|dim|size|inner")
_MANY = 100_000
_LAYERS = re.compile(r"(?:^|_)(?:n_)?layers?$")
_SHALLOW = 256  # layers that are accepted for any number of tensors: layers may share weights
_GROWTH = 100  # how many times as long a tokenizer's rules may make a word: real rules replace a few characters by a few others
_SLACK = 1 << 28  # numbers that a model may have beyond those in its files, such as position tables


def check_folder(folder: Path) -> None:
    """Refuse a folder without a model that can be loaded as it is, without running any code from it."""
    for path in sorted(folder.iterdir()):
        if path.suffix in _READ and not path.is_file() and not path.is_dir():
            raise ModelError(f"{path} cannot be read as a file", "It is a pipe, a device or a broken link: remove it")
        if path.suffix == ".json" and path.is_file() and path.stat().st_size > _JSON_BYTES:
            raise ModelError(f"{path} is larger than {_JSON_BYTES:,} bytes", _SAVED)
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json", _SAVED)
    config = read_json(folder / "config.json")
    check_config(str(folder), config)
    sizes = _weights(folder)
    for name, value in _numbers(config):
        if _LAYERS.search(name) and value > max(_SHALLOW, len(sizes)):
            raise _absurd(str(folder), name, value, f"the weights are {len(sizes)} tensors")


def check_config(name: str, config: Mapping[str, Any]) -> None:
    """Refuse a configuration that has implausible sizes or an unknown model type, or requires custom code."""
    for setting, value in _numbers(config):
        if isinstance(value, float) and math.isnan(value):
            raise ModelError(f"{setting} in the config.json of {name} is not a number (NaN)", _SAVED)
        if isinstance(value, int) and abs(value) > _MANY and _COUNTED.search(setting) and not _NOT_COUNTED.search(setting):
            raise _absurd(name, setting, value, "no model has that many")
    require_readable(name, config)
    for setting in ("attn_implementation", "_attn_implementation", "_attn_implementation_internal"):
        if "/" in str(config.get(setting, "")):
            raise ModelError(f"{name} needs custom code for its attention ({setting} in config.json)", "Remove that line")
    kind = config.get("model_type")
    if kind is not None and (not isinstance(kind, str) or kind not in CONFIG_MAPPING):
        if config.get("auto_map"):
            raise ModelError(f"{name} needs custom code, which headscope does not run", "Use a model that transformers knows")
        raise ModelError(
            f"{name} is of the type {printable(str(kind))[:60]!r}, which transformers {transformers.__version__} does not know",
            "Check model_type in its config.json, or update transformers",
        )


def check_reads_text(name: str, skeleton: PreTrainedModel) -> None:
    """Refuse a model of images, sound or time series."""
    if skeleton.main_input_name != "input_ids":
        raise ModelError(
            f"{name} is a {type(skeleton).__name__}, which reads {skeleton.main_input_name} (images, sound or other numbers), not text",
            "headscope reads text models; models of images and sound are out of its scope",
        )


def check_growth(name: str, tokenizer: Mapping[str, Any]) -> None:
    """Refuse a tokenizer whose replacement rules, applied one after the other, can make a word many times as long."""
    growth, todo = 1.0, [tokenizer.get("normalizer"), tokenizer.get("pre_tokenizer")]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo += part
        elif isinstance(part, dict):
            todo += [value for key, value in part.items() if key != "pattern"]
            if part.get("type") == "Replace" and isinstance(content := part.get("content"), str):
                pattern = part.get("pattern")
                literal = pattern.get("String") if isinstance(pattern, dict) else None
                growth *= max(1.0, len(content) / (len(literal) if isinstance(literal, str) and literal else 1))
    if growth > _GROWTH:
        raise ModelError(
            f"the tokenizer of {name} has replacement rules that can make a word {growth:,.0f} times as long",
            "Put the model's own tokenizer.json beside its weights",
        )


def stored_numbers(folder: Path) -> int:
    """The number of single weights in the files of a folder."""
    return sum(math.prod(shape) for shape in _weights(folder).values())


def check_size(name: str, held: int, skeleton: PreTrainedModel) -> None:
    """Refuse a configuration that describes a model many times larger than its files, before memory is allocated for
    it.
    """
    wanted = sum(tensor.numel() for tensor in (*skeleton.parameters(), *skeleton.buffers()))
    if wanted > 4 * held + _SLACK:
        raise ModelError(
            f"the config.json of {name} describes {wanted:,} numbers, but the weights have {held:,}",
            "Check that config.json belongs to the weights",
        )


def check_finite(name: str, network: torch.nn.Module) -> None:
    """Refuse weights that are NaN or infinite, because every result would be NaN."""
    for tensor, values in ((tensor, piece) for tensor, parameter in network.named_parameters() for piece in pieces(parameter)):
        # A sum is finite only if all its terms are. It may also overflow, so the terms of an infinite sum are checked.
        if not torch.isfinite(values.sum(dtype=torch.float32)) and not torch.isfinite(values).all():
            raise ModelError(f"{tensor} of {name} contains NaN or infinite numbers", "Use a checkpoint whose training did not diverge")


def check_layers(name: str, network: torch.nn.Module, unexpected: Iterator[str] | list[str]) -> None:
    """Refuse weights of layers that the configuration does not have. Other unused weights, such as those of a head, are
    accepted.
    """
    known = {re.sub(r"\.\d+\.", ".N.", key) for key in network.state_dict() if re.search(r"\.\d+\.", key)}
    extra = sorted(key for key in unexpected if any(re.sub(r"\.\d+\.", ".N.", tail) in known for tail in tails(key)))
    if extra:
        raise ModelError(
            f"{name} has {len(extra)} weights of layers that its config.json does not have (first: {printable(extra[0])})",
            "Check that config.json belongs to the weights",
        )


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    content = read_any_json(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} contains a {type(content).__name__}, but an object is needed", _SAVED)
    return content


def read_any_json(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON ({_line(error)})", "Copy or download it again") from None


def _weights(folder: Path) -> dict[str, list[int]]:
    """The shapes of all tensors in a folder, read from the headers of its files only."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise _without(folder)
    if (folder / INDEX).is_file():
        named = read_json(folder / INDEX).get("weight_map")
        if not isinstance(named, dict) or not all(isinstance(file, str) for file in named.values()):
            raise ModelError(f"{folder / INDEX} does not say where weights are", _SAVED)
        for file in dict.fromkeys(named.values()):
            if file not in {path.name for path in files}:
                raise ModelError(f"{folder / INDEX} names {printable(file)[:100]!r}, which is not a file in the folder", _SAVED)
    shapes: dict[str, list[int]] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                shapes |= {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a mapping
        except Exception as error:
            raise ModelError(f"{path} is not a valid safetensors file ({_line(error)})", "Copy or download it again") from None
    return shapes


def _without(folder: Path) -> ModelError:
    """The error for a folder without safetensors, which depends on the other files in it."""
    others = {suffix: sorted(folder.glob(f"*{suffix}")) for suffix in (".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack")}
    pickles = [path.name for suffix in (".bin", ".pt", ".pth", ".ckpt") for path in others[suffix]]
    if pickles:
        return ModelError(
            f"{folder} has its weights only as a pickle ({printable(pickles[0])}), which can run code when loaded",
            "Convert it with save_pretrained(..., safe_serialization=True) on a machine you trust it on",
        )
    if others[".gguf"]:
        return ModelError(f"{folder} has its weights only as GGUF", f"Name the file: {folder / printable(others['.gguf'][0].name)}")
    found = next((paths[0].name for paths in others.values() if paths), None)
    return ModelError(f"{folder} has no *.safetensors weights{f' but {printable(found)}' if found else ''}", _SAVED)


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """Every number in a configuration with the name of its setting, at any depth."""
    todo: list[tuple[str, Any]] = list(config.items())
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo += [(str(key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            todo += [(name, inner) for inner in value]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def _absurd(name: str, setting: str, value: float, why: str) -> ModelError:
    return ModelError(f"the config.json of {name} has {printable(setting)[:60]} = {quoted(value)}, but {why}", _SAVED)


def tails(key: str) -> Iterator[str]:
    """A weight's name without its first 0, 1, 2, … parts: a body may have been saved as a part of a larger model."""
    parts = key.split(".")
    return (".".join(parts[start:]) for start in range(len(parts)))


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
