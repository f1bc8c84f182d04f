"""The models that can read texts: each is loaded when first needed, and used by one request at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headscope.app.errors import Refusal, missing
from headscope.app.limits import Limits
from headscope.app.served_runs import unique
from headscope.models import DEFAULT, EMBEDDED
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.models.model import Model

T = TypeVar("T")


class ModelSlot:
    """One model, or the name to load it by, and the thread that it works in."""

    def __init__(self, source: Model | str) -> None:
        self._source = source
        self.worker = ThreadPoolExecutor(1, "headscope-model")
        self.waiting = 0

    @property
    def source(self) -> str:
        """The name or path that the model is loaded by."""
        return self._source if isinstance(self._source, str) else self._source.name

    @property
    def loaded(self) -> Model | None:
        """The model; None if it is not loaded yet."""
        return None if isinstance(self._source, str) else self._source

    def load(self) -> Model:
        """The model, loaded if necessary. To be called only in the thread of the model."""
        if isinstance(self._source, str):
            from headscope.models.load import load_to_continue

            self._source = load_to_continue(self._source)
        return self._source


class ServedModels:
    """Models by name."""

    def __init__(self, models: Mapping[str, Model | str], limits: Limits) -> None:
        self._places = {name: ModelSlot(model) for name, model in models.items()}
        self._limits = limits

    @property
    def names(self) -> list[str]:
        """The names of the models on this server."""
        return list(self._places)

    def places(self) -> dict[str, str]:
        """The name of each model on this server, by the name or path that it is loaded by."""
        return {place.source: name for name, place in self._places.items()}

    def describe(self) -> list[dict[str, Any]]:
        """The models as the API lists them; what is not known before a model is loaded is null."""
        return [{"name": name, **_describe(place.loaded)} for name, place in self._places.items()]

    def describe_one(self, name: str) -> dict[str, Any]:
        """One model as the API lists it."""
        return {"name": name, **_describe(self._places[name].loaded)}

    async def work(self, name: str, function: Callable[[Model], T]) -> T:
        """The value of a function of a model, once it is this request's turn."""
        place = self._places.get(name)
        if place is None:
            raise missing("there is no such model", f"The models are {', '.join(self.names)}")
        if place.waiting >= self._limits.waiting:
            raise Refusal(429, "too many requests wait for this model", "Try again in a moment")
        place.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(place.worker, lambda: function(place.load()))
        finally:
            place.waiting -= 1

    def warm(self) -> None:
        """Begin to load the first model, so that the first visitor does not wait for it."""
        for place in list(self._places.values())[:1]:
            place.worker.submit(place.load)

    def close(self) -> None:
        """Begin no new work."""
        for place in self._places.values():
            place.worker.shutdown(wait=False, cancel_futures=True)


def _describe(model: Model | None) -> dict[str, Any]:
    if model is None:
        return {"loaded": False, "encoder_decoder": None, "heads": None, "max_tokens": None, "fingerprint": None}
    return {
        "loaded": True,
        "encoder_decoder": model.encoder_decoder,
        "heads": model.layout.size,
        "max_tokens": model.max_length,
        "fingerprint": model.fingerprint,
    }


def find_models(named: Sequence[str], runs: Mapping[str, Results]) -> dict[str, Model | str]:
    """The named models, loaded, and the models of runs, if they are on this disk; `mini` if there is no other.

    A hub model is fetched only if it was named: the model of a run is offered if it is embedded, a folder or a file.
    """
    models: dict[str, Model | str] = {}
    seen: set[str] = set()
    for name in dict.fromkeys(named):
        from headscope.models.load import load_to_continue

        models[unique(_short(name), models)] = load_to_continue(name)
        seen.add(_place(name))
    for results in runs.values():
        settings = results.manifest.get("settings", {})
        name = settings.get("model") or ""
        in_memory = "object" in results.manifest.get("identity", {}).get("origin", {})  # its folder may hold other weights
        if not in_memory and settings.get("weights", "trained") == "trained" and _here(name) and _place(name) not in seen:
            models[unique(_short(name), models)] = name
            seen.add(_place(name))
    return models or {DEFAULT: DEFAULT}


def _here(name: str) -> bool:
    path = Path(name).expanduser()
    files = [path / file for file in ("config.json", "adapter_config.json", "modules.json")]
    return name in EMBEDDED or (bool(name) and any(file.is_file() for file in ([path] if path.suffix == ".gguf" else files)))


def _short(name: str) -> str:
    return Path(_place(name)).name if _on_disk(name) else name


def _place(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if _on_disk(name) else name


def _on_disk(name: str) -> bool:
    return name not in EMBEDDED and Path(name).expanduser().exists()
