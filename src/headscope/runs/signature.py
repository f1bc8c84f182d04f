"""What a number depends on: an identity that must match before states may be merged, and a line to print beside results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from headscope.core.automatic import joined, short
from headscope.core.names import printable
from headscope.corpora import Corpus
from headscope.measures import Measure
from headscope.measures.own import sources
from headscope.runs.spec import RunSpec

PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "numpy")
# Settings that change no number, or name things whose content is hashed, and so may be spelled differently from one run to the next.
_NEUTRAL = {"model", "corpus", "measures", "own", "preset", "allow_unknown"}


def versions() -> dict[str, str]:
    """Versions of the packages whose change could change a number."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def identity(spec: RunSpec, measures: Sequence[Measure], model: str, corpus: str, device: str) -> dict[str, Any]:
    """Everything that can change a result: settings, options, weights, corpus, kind of device, versions."""
    settings = {name: value for name, value in spec.model_dump(mode="json").items() if name not in _NEUTRAL}
    return {
        "settings": {**settings, "device": device},
        "measures": describe(measures),
        "model": model,
        "corpus": corpus,
        "versions": {**versions(), **sources(measures)},
    }


def describe(measures: Sequence[Measure]) -> dict[str, dict[str, Any]]:
    """Each measure with the options in force, as JSON keeps them."""
    described: dict[str, dict[str, Any]] = json.loads(json.dumps({measure.name: measure.options() for measure in measures}))
    return described


def key(identity: Mapping[str, Any]) -> str:
    """A short hash of an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def signature(spec: RunSpec, measures: Sequence[Measure], identity: Mapping[str, Any]) -> str:
    """One line that says what was measured, on what, and how, in the manner of sacrebleu. What is at its default is left out,
    but for what readers look for; the last part is a hash of everything.
    """
    corpus = "+".join(printable(name.rsplit("/", 1)[-1]) for name in spec.corpus)
    parts: dict[str, Any] = {
        "headscope": versions()["headscope"],
        "model": f"{printable(spec.model.rstrip('/').rsplit('/', 1)[-1])}@{identity['model'][:8]}",
        "corpus": f"{corpus}@{identity['corpus'][:8]}",
        **annotation_part(identity),
        "preset": spec.preset,
        "unit": spec.unit,
        "length": spec.max_length,
        "replicates": spec.replicates,
        "seed": spec.seed,
    }
    usual = {name: field.default for name, field in RunSpec.model_fields.items()}
    for name in ("weights", "segment_ids", "word_rows", "dtype", "overlong", "on_error", "limit"):
        value = getattr(spec, name)
        if value not in (usual[name], {"segment_ids": "pair", "word_rows": "mean", "overlong": "drop"}.get(name)):
            parts[name] = value
    if spec.layers is not None:
        parts["layers"] = ",".join(map(str, spec.layers))
    return "|".join([*(f"{name}:{value}" for name, value in parts.items()), *options_line(measures), f"run:{key(identity)[:8]}"])


def annotation_of(*corpora: Corpus | None) -> dict[str, str]:
    """What an identity says of annotation that a parser made, in any of these corpora; nothing where there is none."""
    found = joined(corpus.automatic for corpus in corpora if corpus is not None)
    return {} if found is None else {"annotation": found}


def annotation_part(identity: Mapping[str, Any]) -> dict[str, str]:
    """The part of a signature that says whose annotation it is, where a parser made it; empty where nothing is said."""
    return {"annotation": short(identity["annotation"])} if identity.get("annotation") else {}


def options_line(measures: Sequence[Measure]) -> list[str]:
    """The options of measures that are not at their default: `entropy.level:word`."""
    found = []
    for measure in measures:
        for field in fields(measure):
            value = getattr(measure, field.name)
            if value != field.default:
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
                found.append(f"{measure.name}.{field.name}:{text}")
    return found


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two identities, each with both values."""
    found = []
    for name in ("settings", "measures", "versions"):
        before, after = then.get(name, {}), now[name]
        for field in dict.fromkeys([*after, *before]):
            if before.get(field) != after.get(field):
                found.append(f"{field} was {before.get(field)!r} and is {after.get(field)!r}")
    return found + [f"the {name} has changed" for name in ("model", "corpus") if then.get(name) != now[name]]
