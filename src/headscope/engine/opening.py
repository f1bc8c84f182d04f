"""A folder for results: refused, cleared, or gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import differences


def study_folder(out: Path | None, resume: bool, overwrite: bool) -> Folder | None:
    """The folder of a study, if it is to have one; refused at once if it cannot be used."""
    if out is None:
        return None
    folder = Folder(out)
    look_first(folder, resume, overwrite)
    return folder


def once(folder: Folder | None, now: Mapping[str, Any], resume: bool, overwrite: bool, work: Callable[[], Results]) -> Results:
    """What `work` gives, which has the folder to itself; what the folder holds already, if that is the same work, finished."""
    if folder is None:
        return work()
    with folder.locked():
        finished = prepare(folder, now, resume, overwrite)
        return work() if finished is None else finished


def require_length(model: Model, name: str, length: int) -> None:
    """Refuse texts longer than a model can read."""
    if model.max_length is not None and length > model.max_length:
        remedy = f"Use --max-length {model.max_length}"
        raise RunError(f"max_length is {length}, but {name} ends at {model.max_length} tokens", remedy)


_HOLDS = "Use --resume to go on with it, --overwrite to replace it, or another --out"


def look_first(folder: Folder, resume: bool, overwrite: bool, remedy: str = _HOLDS) -> None:
    """Refuse a folder that cannot be used before a model is loaded for it."""
    folder.refuse_others()
    folder.require_writable()
    if folder.manifest.exists() and not resume and not overwrite:
        complete = folder.read_manifest().get("status") == "complete"
        if complete or folder.begun():
            raise RunError(f"{folder.path} already holds a run", remedy)


def prepare(folder: Folder, now: Mapping[str, Any], resume: bool, overwrite: bool) -> Results | None:
    """Make the folder ready, or return its results if the work is already done."""
    look_first(folder, resume, overwrite)
    if not resume or not folder.manifest.exists():
        folder.clear()
        return None
    manifest = folder.read_manifest()
    if manifest.get("status") not in ("running", "complete"):  # it was being replaced
        folder.clear()
        return None
    if changed := differences(manifest.get("identity", {}), now):
        raise RunError(f"{folder.path} was begun with other settings: {'; '.join(changed[:3])}", "Use --overwrite, or another --out")
    complete = manifest["status"] == "complete"
    folder.tidy(complete)
    return Results.open(folder.path) if complete else None
