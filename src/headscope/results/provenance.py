"""How a run was made, as far as it is needed to repeat the run. It is not part of the identity or the signature.

It is kept in `run.json` under `made`: `threads` of the CPU, on which the last bits of gradients depend; `machine`, the
kind of device; `gallery`, the number of texts for the gallery; and, only if the run names files by relative paths,
`from`: the working directory, as a path relative to the run folder.
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
    """The entry `made` of a manifest. For a resumed run it has the numbers of threads of both parts."""
    import torch

    used = [threads or torch.get_num_threads()]
    started: dict[str, Any] = {}
    if folder is not None:
        try:
            started = folder.read_manifest().get("made", {})
        except RunError:  # the run is new
            started = {}
    used = [*started.get("threads", ()), *(number for number in used if number not in started.get("threads", ()))]
    record = {"threads": used, "machine": machine(device), **more}
    if folder is not None and any(map(_relative, _named(settings))):
        record["from"] = os.path.relpath(Path.cwd(), folder.path.resolve())
    return {"made": record}


def machine(device: str) -> str:
    """The kind of device, in the detail that can change the last bits of numbers."""
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
