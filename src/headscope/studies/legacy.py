"""Temporary: how studies that are not yet a `Study` are begun and finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.core.state import States
from headscope.corpora import Corpus
from headscope.engine.checkpoint import Ledger
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.results.folder import Folder
from headscope.results.provenance import made
from headscope.results.results import Results
from headscope.results.signature import annotation_of, identity, signature
from headscope.results.specification import Specification
from headscope.results.table import Table
from headscope.results.unknown import warning


def study_identity(spec: Specification, model: Model, corpus: Corpus, **others: Corpus | str | None) -> dict[str, Any]:
    """Everything that can change a result: settings, weights, corpus, kind of device, versions. `others` are further corpora, or hashes of
    other things, by the names of the settings that name them; annotation may be automatic in some of the corpora.
    """
    corpora = [corpus, *(other for other in others.values() if isinstance(other, Corpus))]
    hashes = {name: other.hash() if isinstance(other, Corpus) else other for name, other in others.items()}
    contents = {"model": model.fingerprint, "corpus": corpus.hash(), **hashes}
    return identity(spec, model.device.type, contents) | annotation_of(*corpora)


def begin(study: str, spec: Specification, identity: Mapping[str, Any], model: Model, folder: Folder | None) -> dict[str, Any]:
    """The manifest of a study that begins, written to its folder if it has one."""
    settings = spec.model_dump(mode="json")
    manifest = {"study": study, "signature": signature(spec, identity), "settings": settings, "identity": dict(identity)}
    manifest |= {"capture": model.capture, **made(settings, model.device.type, folder)}
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
    """The results of a study, written to its folder if it has one. `said` goes into the manifest as well; its `warnings` come after that
    of unknown tokens.
    """
    signed = {name: Table(table.arrow.replace_schema_metadata({"signature": manifest["signature"]})) for name, table in tables.items()}
    complete = {
        **manifest,
        "status": "complete",
        "tables": list(signed),
        "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in model.layout.sites],
        "counts": {**counts.numbers(), "shards": ledger.next, "resumed_shards": ledger.resumed},
        "unknown_tokens": counts.unknown_tokens(),
        "read": counts.dropped.lines(read=True),
        "dropped": counts.dropped.lines(read=False),
        **said,
        "warnings": [*warning(counts, model.name), *said.get("warnings", ())],
    }
    if folder is not None:
        complete = folder.finish(signed, states, complete)
    return Results(complete, signed, folder.path if folder is not None else None, states=states)
