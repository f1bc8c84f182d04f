"""What a number depends on: a key that must match before states may be merged, and a line to print beside results."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from headscope.runs.spec import RunSpec

PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Versions of the packages whose change could change a number."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def identity(spec: RunSpec, model: str, corpus: str) -> dict[str, Any]:
    """Everything that can change a result: settings, model fingerprint, corpus hash, versions."""
    return {"settings": spec.model_dump(mode="json"), "model": model, "corpus": corpus, "versions": versions()}


def key(identity: dict[str, Any]) -> str:
    """A short hash of an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def signature(spec: RunSpec, model: str, corpus: str) -> str:
    """One line that says what was measured, on what, and how; in the manner of sacrebleu."""
    parts = {
        "headscope": versions()["headscope"],
        "model": f"{spec.model}@{model[:8]}",
        "corpus": f"{'+'.join(name.rsplit('/', 1)[-1] for name in spec.corpus)}@{corpus[:8]}",
        "preset": spec.preset,
        "unit": spec.unit,
        "length": spec.max_length,
        "segments": spec.segment_ids,
        "words": spec.word_rows,
        "replicates": spec.replicates,
        "seed": spec.seed,
    }
    if spec.limit is not None:
        parts["limit"] = spec.limit
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The names of what differs between two identities, with both values."""
    found = []
    for name in ("settings", "versions"):
        before, after = then.get(name, {}), now[name]
        found += [f"{field} was {before.get(field)!r} and is {after[field]!r}" for field in after if before.get(field) != after[field]]
    found += [f"the {name} has changed" for name in ("model", "corpus") if then.get(name) != now[name]]
    return found
