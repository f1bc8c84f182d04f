"""What all studies share: which texts they look at, how their results are named, kept and written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from headscope.core.names import printable
from headscope.core.state import States
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.models.model import Model
from headscope.runs.counts import Counts
from headscope.runs.ledger import Ledger
from headscope.runs.provenance import made
from headscope.runs.results import Results
from headscope.runs.signature import annotation_of, annotation_part, key, versions
from headscope.runs.store import Folder
from headscope.runs.table import Table
from headscope.runs.unknown import warning

if TYPE_CHECKING:
    from pydantic import BaseModel

Pick = Literal["random", "first"]


def picked(texts: Iterable[Encoded], limit: int | None, pick: Pick = "random", seed: int = 0) -> Iterator[Encoded]:
    """The texts asked for, in corpus order: the first ones, or some drawn by their names alone, from all documents."""
    if limit is None or pick == "first":
        yield from islice(texts, limit)
        return
    drawn = nsmallest(limit, enumerate(texts), key=lambda one: hashlib.blake2b(f"{seed}\x1f{one[1].id}".encode()).digest())
    yield from (text for _, text in sorted(drawn, key=lambda one: one[0]))


def study_identity(spec: BaseModel, model: Model, corpus: Corpus, *others: Corpus | None) -> dict[str, Any]:
    """Everything that can change a result: settings, weights, corpus, kind of device, versions. `others` are further corpora, by which
    it may be that annotation is partly automatic.
    """
    settings = spec.model_dump(mode="json", exclude={"model", "corpus", "preset"})
    settings["device"] = model.device.type
    return {
        **{"settings": settings, "measures": {}, "model": model.fingerprint, "corpus": corpus.hash()},
        **annotation_of(corpus, *others),
        "versions": versions(),
    }


def study_signature(spec: BaseModel, identity: Mapping[str, Any], named: Sequence[str], unusual: Sequence[str]) -> str:
    """One line that says what was looked at, on what, and how: settings that are always `named`, and those that are `unusual` if they are
    not at their default; the last part is a hash of everything.
    """
    settings = spec.model_dump(mode="json")
    corpus = "+".join(printable(name.rsplit("/", 1)[-1]) for name in settings["corpus"])
    parts: dict[str, Any] = {
        "headscope": versions()["headscope"],
        "model": f"{printable(settings['model'].rstrip('/').rsplit('/', 1)[-1])}@{identity['model'][:8]}",
        "corpus": f"{corpus}@{identity['corpus'][:8]}",
        **annotation_part(identity),
    }
    fields = type(spec).model_fields
    for name in [*named, *(name for name in unusual if getattr(spec, name) != fields[name].default)]:
        value = settings[name]
        parts[name] = "+".join(map(str, value)) if isinstance(value, list) else "all" if value is None and name == "limit" else value
    return "|".join([*(f"{name}:{value}" for name, value in parts.items()), f"run:{key(identity)[:8]}"])


def begin(study: str, spec: BaseModel, identity: Mapping[str, Any], signature: str, model: Model, folder: Folder | None) -> dict[str, Any]:
    """The manifest of a study that begins, written to its folder if it has one."""
    settings = spec.model_dump(mode="json")
    manifest = {"study": study, "signature": signature, "settings": settings, "identity": dict(identity), "capture": model.capture}
    manifest |= made(settings, model.device.type, folder)
    if folder is not None:
        folder.write_manifest({"status": "running", **manifest})
    return manifest


def finish(
    manifest: Mapping[str, Any],
    tables: Mapping[str, Table],
    model: Model,
    counts: Counts,
    ledger: Ledger,
    states: States,
    folder: Folder | None,
    said: Mapping[str, Any],
) -> Results:
    """The results of a study, written to its folder if it has one; `said` goes into the manifest, too."""
    signed = {name: Table(table.arrow.replace_schema_metadata({"signature": manifest["signature"]})) for name, table in tables.items()}
    complete = {
        **manifest,
        "status": "complete",
        "tables": list(signed),
        "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in model.layout.sites],
        "counts": {**counts.numbers(), "shards": ledger.next, "resumed_shards": ledger.resumed},
        "unknown_tokens": counts.unknown_tokens(),
        "warnings": warning(counts, model.name),
        "read": counts.dropped.lines(read=True),
        "dropped": counts.dropped.lines(read=False),
        **said,
    }
    if folder is not None:
        complete = folder.finish(signed, states, complete)
    return Results(complete, signed, folder.path if folder is not None else None, states=states)
