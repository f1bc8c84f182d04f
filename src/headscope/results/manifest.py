"""What `run.json` of a complete run must hold for anything to be made of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.errors import RunError

_KINDS = {"signature": str, "settings": dict, "measures": dict, "tables": list, "sites": list, "counts": dict}
_IF_SAID = {
    "identity": dict,
    "dropped": list,
    "read": list,
    "warnings": list,
    "unknown_tokens": dict,
    "readings": list,
    "notes": list,
    "study": str,
    "files": dict,
}
_MOST = 10_000  # layers, or heads of one: lists are made of so many
_SITE = {"kind": str, "layer": int, "heads": int}


def check_complete(manifest: Mapping[str, Any], path: Path) -> None:
    """An error that names what a manifest lacks, or what in it is of no use."""
    wrong = [name for name, kind in _KINDS.items() if not isinstance(manifest.get(name), kind)]
    wrong += [name for name, kind in _IF_SAID.items() if not isinstance(manifest.get(name, kind()), kind)]
    if not wrong and not all(isinstance(name, str) for name in manifest["tables"]):
        wrong = ["tables"]
    if not wrong and not (manifest["sites"] and all(map(_is_site, manifest["sites"]))):
        wrong = ["sites"]
    if wrong:
        problem = f"the run.json in {path} does not say what it should of its {', '.join(wrong)}"
        raise RunError(problem, "It was changed by hand or cut short: run again with --overwrite")


def _is_site(site: object) -> bool:
    if not isinstance(site, dict) or not all(isinstance(site.get(name), kind) for name, kind in _SITE.items()):
        return False
    return all(1 <= site[name] <= _MOST for name in ("layer", "heads"))
