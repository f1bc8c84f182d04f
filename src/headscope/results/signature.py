"""What a number depends on: an identity, which must match before states merge, and a signature to print."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from headscope.core.versions import version_of
from headscope.corpora import Corpus
from headscope.corpora.automatic import joined, short
from headscope.measures import Measure
from headscope.measures.own import sources
from headscope.results.specification import Specification, text_of

_FIRST = ("model", "corpus", "maps")  # contents beside the settings; all other contents are among the settings
PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """The versions of the packages that can change a number."""
    return {package: version_of(package) for package in PACKAGES}


def identity(spec: Specification, device: str, contents: Mapping[str, str | None], measures: Sequence[Measure] = ()) -> dict[str, Any]:
    """Everything that can change a result: settings, options, kind of device, versions, hashes of `contents`."""
    settings = {name: value for name, value in spec.counted().items() if not (measures and name == "measures")}
    return {
        "settings": {**settings, **{name: value for name, value in contents.items() if name not in _FIRST}, "device": device},
        "measures": describe(measures),
        **{name: value for name, value in contents.items() if name in _FIRST},
        "versions": {**versions(), **sources(measures)},
    }


def describe(measures: Sequence[Measure]) -> dict[str, dict[str, Any]]:
    """Each measure with its options in force, as values of JSON."""
    described: dict[str, dict[str, Any]] = json.loads(json.dumps({measure.name: measure.options() for measure in measures}))
    return described


def key(identity: Mapping[str, Any]) -> str:
    """A short hash of an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def signature(spec: Specification, identity: Mapping[str, Any], measures: Sequence[Measure] = ()) -> str:
    """One line that says what was measured, on what, and how, in the manner of sacrebleu: contents with their
    hashes, settings and options of measures that are not at their default, and a hash of everything.
    """
    hashes = {name: value for name, value in {**identity["settings"], **identity}.items() if isinstance(value, str)}
    annotation = {"annotation": short(identity["annotation"])} if identity.get("annotation") else {}
    parts = {"headscope": versions()["headscope"], **spec.contents(hashes), **identity.get("origin", {}), **annotation, **spec.shown()}
    return "|".join([*(f"{name}:{value}" for name, value in parts.items()), *options_line(measures), f"run:{key(identity)[:8]}"])


def annotation_of(*corpora: Corpus | None) -> dict[str, str]:
    """The entry of an identity for annotation that a parser made in any of these corpora; empty if there is none."""
    summary = joined(corpus.automatic for corpus in corpora if corpus is not None)
    return {} if summary is None else {"annotation": summary}


def origin_of(origin: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The entry of an identity for a model's origin: an adapter and its base, a quantisation, an object in memory;
    empty for a model from a plain folder.
    """
    return {"origin": dict(origin)} if origin else {}


def options_line(measures: Sequence[Measure]) -> list[str]:
    """The options of measures that are not at their default: `entropy.level:word`."""
    options = [(measure.name, field, getattr(measure, field.name)) for measure in measures for field in fields(measure)]
    return [f"{name}.{field.name}:{text_of(value)}" for name, field, value in options if value != field.default]


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two identities, each with both values. Settings that only one of them has are ignored: they
    come from another version.
    """
    lines = []
    for name in ("settings", "measures", "versions"):
        before, after = then.get(name, {}), now[name]
        for field in dict.fromkeys([*after, *before]):
            if before.get(field) != after.get(field) and (name != "settings" or (field in before and field in after)):
                lines.append(f"{field} was {before.get(field)!r} and is {after.get(field)!r}")
    return lines + [f"the {name} has changed" for name in ("model", "corpus") if then.get(name) != now[name]]
