"""Running a specification: read, encode, compute, merge, write."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headscope.core.heads import HeadLayout
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.batches import shards
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import RunError
from headscope.measures import Measure
from headscope.models.model import Model
from headscope.runs import engines
from headscope.runs.ledger import Ledger, States
from headscope.runs.results import Results
from headscope.runs.signature import differences, identity, key, signature
from headscope.runs.spec import RunSpec
from headscope.runs.store import Folder
from headscope.runs.table import Table


class Progress(Protocol):
    """Told how a run goes: the share of the corpus that is read, and the texts and tokens that are done."""

    def __call__(self, share: float | None, texts: int, tokens: int) -> None:
        """`share` is None when it cannot be known."""


@dataclass
class Counts:
    """What went through a run."""

    documents: int = 0
    texts: int = 0
    tokens: int = 0
    words: int = 0
    split_words: int = 0
    dropped: Tally = field(default_factory=Tally)

    def add(self, text: Encoded) -> None:
        """Count one input."""
        self.texts += 1
        self.tokens += len(text)
        self.words += len(text.words)
        pieces = [word for word in text.word_of if word >= 0]
        self.split_words += len({word for word in pieces if pieces.count(word) > 1}) if len(pieces) > len(text.words) else 0


def execute(
    spec: RunSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    device: str | None = None,
    engine: engines.Engine = "local",
    workers: int = 2,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name."""
    if engine not in ("local", "processes"):
        raise RunError(f"engine {engine!r} is unknown", "Use local or processes")
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    spec = spec.resolved(corpus.pairs)
    runner = engines.runner_for(spec, model) if model is not None else engines.make_runner(spec, device)
    model = runner.model
    if model.max_length is not None and spec.max_length > model.max_length:
        raise RunError(
            f"max_length is {spec.max_length}, but {model.name} ends at {model.max_length} tokens", f"Use --max-length {model.max_length}"
        )
    now = identity(spec, model.fingerprint, corpus.hash())
    folder = Folder(out) if out is not None else None
    with folder.locked() if folder is not None else nullcontext():
        if folder is not None and (finished := _prepare(folder, now, resume, overwrite)) is not None:
            return finished
        manifest: dict[str, Any] = {
            "status": "running",
            "signature": signature(spec, model.fingerprint, corpus.hash()),
            "identity": now,
            "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in runner.layout.sites],
            "capture": model.capture,
        }
        if folder is not None:
            folder.write_manifest(manifest)
        started = time.monotonic()
        ledger = Ledger(folder, key(now), resume)
        counts = Counts()
        work = _Work(corpus, _encoder(spec, model), spec, ledger, counts, progress)
        done = engines.local(work, runner) if engine == "local" else engines.processes(work, spec, device, workers)
        for number, states in done:
            ledger.add(number, states)
            work.tell()
        counts.dropped.update(corpus.skipped)
        if ledger.merged is None:
            raise RunError(f"nothing to measure: no text is left of {', '.join(spec.corpus)}", "; ".join(counts.dropped.lines()))
        manifest |= {"status": "complete", "seconds": round(time.monotonic() - started, 3), **_report(counts, ledger)}
        return _finish(folder, manifest, runner.measures, ledger.merged, runner.layout)


def count(corpus: Corpus, tokenizer: Tokenizer, spec: RunSpec) -> Counts:
    """What a run of a resolved specification would see and drop, without running a model."""
    counts = Counts()
    encoder = Encoder(tokenizer, unit=spec.unit or "sentence", max_length=spec.max_length, overlong=spec.overlong, seed=spec.seed)
    for text in encoder.texts(corpus, counts.dropped):
        counts.add(text)
    counts.dropped.update(corpus.skipped)
    return counts


def _prepare(folder: Folder, now: dict[str, Any], resume: bool, overwrite: bool) -> Results | None:
    """Make the folder ready, or return its results if the work is already done."""
    if overwrite:
        folder.clear()
        return None
    if not folder.manifest.exists():
        if foreign := folder.foreign():
            raise RunError(f"{folder.path} is not empty and no run folder (it holds {foreign[0]})", "Choose another folder with --out")
        return None
    if not resume:
        raise RunError(f"{folder.path} already holds a run", "Use --resume to go on with it, --overwrite to replace it, or another --out")
    manifest = folder.read_manifest()
    if changed := differences(manifest.get("identity", {}), now):
        raise RunError(f"{folder.path} was begun with other settings: {'; '.join(changed[:3])}", "Use --overwrite, or another --out")
    return Results.open(folder.path) if manifest["status"] == "complete" else None


def _encoder(spec: RunSpec, model: Model) -> Encoder:
    return Encoder(
        model.tokenizer,
        unit=spec.unit or "sentence",
        max_length=spec.max_length,
        overlong=spec.overlong,
        segment_ids=spec.segment_ids or "pair",
        seed=spec.seed,
        decoder_start=model.decoder_start,
    )


class _Work:
    """The shards still to do, made as they are asked for: the corpus is read no further ahead than the engine needs."""

    def __init__(self, corpus: Corpus, encoder: Encoder, spec: RunSpec, ledger: Ledger, counts: Counts, progress: Progress | None) -> None:
        self._corpus = corpus
        self._encoder = encoder
        self._spec = spec
        self._ledger = ledger
        self._counts = counts
        self._progress = progress
        self._shards = self._pending()

    def _texts(self) -> Iterator[Encoded]:
        for document in self._corpus:
            before = self._counts.texts
            for text in self._encoder.document_texts(document, self._counts.dropped):
                if self._spec.limit is not None and self._counts.texts >= self._spec.limit:
                    return
                self._counts.add(text)
                yield text
            self._counts.documents += self._counts.texts > before

    def _pending(self) -> Iterator[engines.Work]:
        for number, shard in enumerate(shards(self._texts(), self._spec.shard_tokens)):
            if not self._ledger.done(number):
                yield number, shard
            else:
                self.tell()

    def __iter__(self) -> Iterator[engines.Work]:
        return self

    def __next__(self) -> engines.Work:
        return next(self._shards)

    def tell(self) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(self._corpus.share, self._counts.texts, self._counts.tokens)


def _report(counts: Counts, ledger: Ledger) -> dict[str, Any]:
    numbers = {name: getattr(counts, name) for name in ("documents", "texts", "tokens", "words", "split_words")}
    return {"counts": {**numbers, "shards": ledger.next, "resumed_shards": ledger.resumed}, "dropped": counts.dropped.lines()}


def _finish(folder: Folder | None, manifest: dict[str, Any], measures: Sequence[Measure], states: States, layout: HeadLayout) -> Results:
    metadata = {"signature": manifest["signature"]}
    tables = {
        name: Table.of(columns, metadata) for measure in measures for name, columns in measure.tables(states[measure.name], layout).items()
    }
    if folder is not None:
        folder.finish(tables, states, manifest)
    return Results(manifest, tables, folder.path if folder is not None else None)
