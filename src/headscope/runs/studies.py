"""What all studies share: which texts they look at, how their results are named, kept and written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from itertools import count, islice
from typing import Any, Literal, NamedTuple

from headscope.core.state import States
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.models.model import Model
from headscope.runs.counts import Counts
from headscope.runs.ledger import Ledger
from headscope.runs.provenance import made
from headscope.runs.results import Results
from headscope.runs.settings import Specification
from headscope.runs.signature import annotation_of, identity, signature
from headscope.runs.store import Folder
from headscope.runs.table import Table
from headscope.runs.unknown import warning

Pick = Literal["random", "first"]


class _Candidate(NamedTuple):
    """A text that may be drawn, its number, and what was counted on the way to it."""

    number: int
    text: Encoded
    counted: list[Tally]


def picked(
    texts: Iterable[Encoded],
    limit: int | None,
    pick: Pick = "random",
    seed: int = 0,
    *,
    tally: Tally | None = None,
    corpus: Corpus | None = None,
) -> Iterator[Encoded]:
    """The texts asked for, in corpus order: the first ones, or some drawn by their names alone, from all documents.

    All texts have to be read to draw some. What is counted meanwhile, in `tally` and in what the `corpus` skipped, is kept for the texts
    that are drawn alone: all that was counted between the text before it and the text itself. If all texts are drawn, nothing is lost.
    """
    if limit is None or pick == "first":
        yield from islice(texts, limit)
        return

    def tallies() -> list[Tally]:  # each iteration over a corpus has a tally of its own
        return [*([tally] if tally is not None else []), *([corpus.skipped] if corpus is not None else [])]

    before = tally.take() if tally is not None else Tally()
    total = count()
    candidates = (_Candidate(next(total), text, [one.take() for one in tallies()]) for text in texts)
    drawn = nsmallest(limit, candidates, key=lambda one: hashlib.blake2b(f"{seed}\x1f{one.text.id}".encode()).digest())
    drawn.sort(key=lambda one: one.number)
    whole = len(drawn) == next(total)
    for place, one in enumerate(tallies()):
        after = one.take()  # the last text
        for candidate in drawn:
            one.update(candidate.counted[place])
        if whole:
            one.update(after)
    if tally is not None:
        tally.update(before)
    yield from (candidate.text for candidate in drawn)


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
