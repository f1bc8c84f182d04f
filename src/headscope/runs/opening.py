"""A folder for results: refused, cleared, or gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.errors import RunError
from headscope.runs.results import Results
from headscope.runs.signature import differences
from headscope.runs.store import Folder


def look_first(folder: Folder, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that cannot be used before a model is loaded for it."""
    folder.refuse_others()
    if folder.manifest.exists() and not resume and not overwrite:
        complete = folder.read_manifest().get("status") == "complete"
        if complete or folder.begun():
            remedy = "Use --resume to go on with it, --overwrite to replace it, or another --out"
            raise RunError(f"{folder.path} already holds a run", remedy)


def prepare(folder: Folder, now: Mapping[str, Any], resume: bool, overwrite: bool) -> Results | None:
    """Make the folder ready, or return its results if the work is already done."""
    look_first(folder, resume, overwrite)
    if not resume or not folder.manifest.exists():
        folder.clear()
        return None
    manifest = folder.read_manifest()
    if changed := differences(manifest.get("identity", {}), now):
        raise RunError(f"{folder.path} was begun with other settings: {'; '.join(changed[:3])}", "Use --overwrite, or another --out")
    return Results.open(folder.path) if manifest["status"] == "complete" else None
