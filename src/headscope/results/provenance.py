"""How a run was made, as far as making it again needs it: no part of its identity or its signature.

It is kept in `run.json` under `made`: `threads` of the CPU, on which the last bits of gradients depend; `machine`,
the kind of device; `gallery`, how many texts the gallery was made of; `from`, the place it was started in as seen
from its folder, only if it names files by relative paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headscope.core.paths import kind_of
from headscope.corpora.inputs import split_columns
from headscope.errors import RunError
from headscope.results.folder import Folder

_PATHS = ("model", "corpus", "dev", "look", "run", "vectors", "own")


def made(settings: Mapping[str, Any], device: str, folder: Folder | None, threads: int | None = None, **more: Any) -> dict[str, Any]:
    """What the manifest says of it. Where a run is gone on with, the numbers of threads of both times are kept."""
    import torch

    used = [threads or torch.get_num_threads()]
    started: dict[str, Any] = {}
    if folder is not None:
        try:
            started = folder.read_manifest().get("made", {})
        except RunError:  # it begins
            started = {}
    used = [*started.get("threads", ()), *(number for number in used if number not in started.get("threads", ()))]
    told = {"threads": used, "machine": machine(device), **more}
    if folder is not None and any(map(_relative, _named(settings))):
        told["from"] = os.path.relpath(Path.cwd(), folder.path.resolve())
    return {"made": told}


def machine(device: str) -> str:
    """The kind of device, as far as it can change bits."""
    import torch

    if device == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{device} ({torch.backends.cpu.get_cpu_capability()})" if device == "cpu" else device


def _named(settings: Mapping[str, Any]) -> Iterator[str]:
    for name in _PATHS:
        value = settings.get(name)
        yield from () if value is None else (value,) if isinstance(value, str) else value


def _relative(name: str) -> bool:
    """Whether a name is that of a file or folder by a relative path; `own` names FILE.py:CLASS."""
    path = Path(name.split(".py:")[0] + ".py" if ".py:" in name else split_columns(name)[0])
    return not path.is_absolute() and kind_of(path) in ("file", "folder")
