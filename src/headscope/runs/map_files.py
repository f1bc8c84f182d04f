"""Reading attention maps from files that other tools wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from headscope.core.paths import problem_of
from headscope.corpora.files import check_archive
from headscope.errors import MeasureError
from headscope.runs.given_maps import GivenMaps

_ATTENTION = ("attention", "attn", "attentions", "maps")
_LISTS = ("tokens", "roles", "words")


def read_maps(path: str | Path) -> GivenMaps:
    """Maps from an `.npz` or a `.safetensors` file: `attention` (or `attn`) [layers, heads, T, T] and `tokens`.

    Optional: `words`, `roles`, `document`. What is text lies in a safetensors file's metadata, lists as JSON.
    """
    path = Path(path)
    if found := problem_of(path):
        raise MeasureError(f"{path}: {found[0]}", found[1])
    if path.suffix not in (".npz", ".safetensors"):
        raise MeasureError(f"{path} is of an unknown kind", "Save maps as .npz or .safetensors")
    if path.suffix == ".npz":
        check_archive(path)
    try:
        arrays = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except Exception as error:  # numpy and safetensors raise many kinds for a damaged file
        raise MeasureError(
            f"{path} cannot be read ({type(error).__name__})", "Save maps as .npz without objects, or .safetensors"
        ) from None
    name = next((name for name in _ATTENTION if name in arrays), None)
    if name is None or "tokens" not in arrays:
        raise MeasureError(f"{path} holds no maps with tokens", "It needs an array `attention` [layers, heads, T, T] and `tokens`")
    lists: dict[str, Any] = {}
    for key in (key for key in _LISTS if key in arrays):
        values = arrays[key].tolist() if isinstance(arrays[key], np.ndarray) else arrays[key]
        if not isinstance(values, list) or (key == "roles" and not all(isinstance(value, str) for value in values)):
            raise MeasureError(f"{path}: `{key}` is no list of what it should be", "Give one for each position")
        lists[key] = tuple(values)
    lists["tokens"] = tuple(map(str, lists["tokens"]))
    document = str(arrays["document"]) if "document" in arrays else None
    return GivenMaps(np.asarray(arrays[name]), name=path.stem, document=document, **lists)


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name in (*_ATTENTION, *_LISTS, "document")}


def _read_safetensors(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="numpy") as file:
        found = {name: file.get_tensor(name) for name in file.keys() if name in (*_ATTENTION, "words")}  # noqa: SIM118 - not a mapping
        for name, text in (file.metadata() or {}).items():
            if name in _LISTS:
                found[name] = json.loads(text)
            elif name == "document":
                found[name] = text
        return found
