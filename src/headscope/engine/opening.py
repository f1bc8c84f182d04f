"""Opening a folder for results: it is refused, cleared, or resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.errors import RunError
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import differences

_HOLDS = "Use --resume to continue it, --overwrite to replace it, or another --out"


def look_first(folder: Folder, resume: bool, overwrite: bool, remedy: str = _HOLDS) -> None:
    """Refuse an unusable folder before a model is loaded."""
    folder.refuse_others()
    folder.require_writable()
    if folder.manifest.exists() and not resume and not overwrite:
        complete = folder.read_manifest().get("status") == "complete"
        if complete or folder.begun():
            raise RunError(f"{folder.path} already holds a run", remedy)


def prepare(folder: Folder, now: Mapping[str, Any], resume: bool, overwrite: bool) -> Results | None:
    """Prepare the folder, or return its results if the work is already done."""
    look_first(folder, resume, overwrite)
    if not resume or not folder.manifest.exists():
        folder.clear()
        return None
    manifest = folder.read_manifest()
    if manifest.get("status") not in ("running", "complete"):  # it was being replaced
        folder.clear()
        return None
    if changed := differences(manifest.get("identity", {}), now):
        raise RunError(f"{folder.path} was started with other settings: {'; '.join(changed[:3])}", "Use --overwrite, or another --out")
    complete = manifest["status"] == "complete"
    folder.tidy(complete)
    return Results.open(folder.path) if complete else None
