"""The place of a named model: an embedded one, a folder, an adapter, a GGUF file, or the hub."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi, try_to_load_from_cache

from headscope.core.paths import kind_of, problem_of
from headscope.errors import ModelError
from headscope.models import EMBEDDED, MODEL_HELP
from headscope.models.folder import check_folder, read_any_json

_MODULES = "modules.json"  # written by sentence_transformers: the parts of a model and their folders


class ModelSource(NamedTuple):
    """The place to load a model from: a folder or a hub id. If `local`, it is loaded only from this disk."""

    place: str
    local: bool
    gguf: str | None = None  # the GGUF file in the folder, if the weights are in one
    adapter: Path | None = None  # the folder of an adapter, if `place` is its base model

    def options(self) -> dict[str, Any]:
        """The options of transformers' loading functions. A hub model is requested once, without retries."""
        local = self.local or _cached_or_reachable(self.place)
        return {"local_files_only": local, "trust_remote_code": False, **({} if self.gguf is None else {"gguf_file": self.gguf})}


def locate(name: str) -> ModelSource:
    """The place to load the model of this name from."""
    if name in EMBEDDED:
        return ModelSource(str(files("headscope.models") / name), True)
    path = Path(name).expanduser()
    if not name.strip():
        raise ModelError("the model has no name", f"Name {MODEL_HELP}, such as bert-base-uncased")
    if (kind := kind_of(path)) == "unusable":
        problem, remedy = problem_of(path, "folder") or ("", "")
        raise ModelError(f"{name[:200]}: {problem}", remedy)
    if kind == "folder":
        return _in_folder(path)
    if kind == "file" and path.suffix == ".gguf":
        return ModelSource(str(path.parent), True, gguf=path.name)
    if kind != "missing" or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(
            f"{name} is not a folder",
            "Name a folder with config.json and *.safetensors, a GGUF file, a hub id such as bert-base-uncased, mini or mini-decoder",
        )
    return ModelSource(name, False)


def _in_folder(folder: Path) -> ModelSource:
    """The place of the model in a folder: a checkpoint, the Transformer of a sentence_transformers model, or an
    adapter.
    """
    if (folder / "adapter_config.json").exists():
        from headscope.models.loading.adapter import base_of

        base = _base(folder, base_of(folder))
        if base.adapter is not None:
            raise ModelError(f"{folder} contains an adapter of another adapter, {base.adapter}", "Merge that into its base model first")
        return base._replace(adapter=folder)
    if not (folder / "config.json").exists() and (folder / _MODULES).is_file():
        folder = _transformer(folder)
    check_folder(folder)
    return ModelSource(str(folder), True)


def _base(folder: Path, name: str) -> ModelSource:
    """The place of an adapter's base model. A file names the base model, not the user, so nothing is downloaded."""
    places = [Path(name).expanduser(), folder / name]
    for place in places:
        if kind_of(place) in ("folder", "file"):
            return locate(str(place))
    if name in EMBEDDED:
        return locate(name)
    if not any(str(place).startswith(("/", ".")) for place in places[:1]) and name.count("/") < 2:
        try:
            cached = isinstance(try_to_load_from_cache(name, "config.json"), str)
        except ValueError:  # not a hub id
            cached = False
        if cached:
            return ModelSource(name, False)
    raise ModelError(
        f"{folder} contains an adapter of {name}, which is neither a folder here nor in the local cache",
        "Download the base model, or add its folder to adapter_config.json as base_model_name_or_path",
    )


def _transformer(folder: Path) -> Path:
    """The folder of the Transformer in a sentence_transformers model of the older layout."""
    try:
        parts = read_any_json(folder / _MODULES)
        paths = [str(part["path"]) for part in parts if str(part["type"]).rpartition(".")[2] == "Transformer"]
    except (KeyError, TypeError):
        paths = []
    inside = [folder / path for path in paths if path and (folder / path).resolve().is_relative_to(folder.resolve())]
    if not inside or not inside[0].is_dir():
        raise ModelError(
            f"{folder / _MODULES} does not name a Transformer in the folder", "Name the folder that sentence_transformers saved"
        )
    return inside[0]


def _cached_or_reachable(name: str) -> bool:
    """True if a hub model is in the local cache, False if it must be downloaded and the hub has it; otherwise an error.
    The hub is asked once, without retries.
    """
    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return True
    try:
        HfApi().model_info(name, timeout=10)
    except Exception as error:
        raise ModelError(
            f"{name} is neither a folder here, nor in the local cache, nor available from the hub ({type(error).__name__})",
            f"Name {MODEL_HELP}, such as bert-base-uncased",
        ) from None
    return False
