"""Model folders that are written completely or not at all: a killed process leaves no incomplete model that can be
loaded.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from headscope.core.paths import kind_of, remove_matching, unusable
from headscope.errors import ModelError

_CONFIG = "config.json"  # a folder without it is not loaded
WEIGHTS = re.compile(r"model(-[0-9]{5}-of-[0-9]{5})?\.safetensors")  # as transformers names them
_OF_MODELS = re.compile(rf"{WEIGHTS.pattern}|model\.safetensors\.index\.json|pruned_heads\.json")


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to write a model into. If the block ends without an error, it becomes `folder`, or its
    files replace those of the model there: the old configuration is removed first, and the new one is moved last.
    Otherwise it is deleted.
    """
    place = folder.parent / f".{folder.name}.{os.getpid()}.tmp"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        place.mkdir()
        yield place
        for path in sorted(place.iterdir()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        _move(place, folder)
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(f"{folder} cannot be written ({reason})", "Free some space, or name another folder") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def require_room(folder: Path, size: int = 0) -> None:
    """Raise an error if a model of `size` bytes cannot be written to the folder. It is called before any work is
    done.
    """
    if wrong := unusable(folder):
        raise ModelError(f"{folder}: {wrong[0]}", wrong[1])
    if (kind := kind_of(folder)) not in ("missing", "folder"):
        raise ModelError(f"{folder} is a {kind}", "Name a folder")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        raise ModelError(f"{there} cannot be written to", "Name another folder")
    if (free := shutil.disk_usage(there).free) < size:
        needed = f"the model takes {size / 2**20:,.0f} MiB, and {there} has {free / 2**20:,.0f} MiB left"
        raise ModelError(needed, "Free some space, or name another folder")


def is_whole(folder: Path) -> bool:
    """Whether a folder contains a model that was written completely and is not being replaced."""
    return (folder / _CONFIG).is_file()


def invalidate(folder: Path) -> None:
    """Prevent a saved model from being loaded until it is written again."""
    (folder / _CONFIG).unlink(missing_ok=True)


def _move(place: Path, folder: Path) -> None:
    if not folder.is_dir() or not any(folder.iterdir()):
        place.rename(folder)  # atomic; works for an empty folder, too
        return
    invalidate(folder)
    remove_matching(folder.resolve(), _OF_MODELS)
    for path in sorted(place.iterdir(), key=lambda path: path.name == _CONFIG):
        path.replace(folder / path.name)


def _sweep(folder: Path) -> None:
    """Remove the incomplete folders of processes that no longer exist."""
    own = re.compile(rf"\.{re.escape(folder.name)}\.([0-9]+)\.tmp")
    for path in folder.parent.iterdir():
        if (named := own.fullmatch(path.name)) and path.is_dir() and not Path(f"/proc/{named[1]}").exists():
            shutil.rmtree(path, ignore_errors=True)
