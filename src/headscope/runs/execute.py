"""Running a specification: read, encode, compute, merge, write."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.runs import engines
from headscope.runs.hang import TOO_LONG, hang
from headscope.runs.ledger import Ledger
from headscope.runs.opening import look_first, prepare
from headscope.runs.plan import Reading, readings
from headscope.runs.provenance import made
from headscope.runs.results import Results
from headscope.runs.sample import SIZE, Sample
from headscope.runs.shard import ShardRunner
from headscope.runs.signature import annotation_of, identity, key, signature
from headscope.runs.spec import RunSpec
from headscope.runs.store import Folder
from headscope.runs.work import Progress, Work, require_labels


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
    gallery: int = SIZE,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name.

    `gallery` is how many texts of each reading are looked at again for the gallery; it changes no number.
    """
    if engine not in ("local", "processes"):
        raise RunError(f"engine {engine!r} is unknown", "Use local or processes")
    if engine == "processes" and (model is not None or workers < 1):
        problem = f"{workers} workers" if workers < 1 else "a loaded model cannot be sent to other processes"
        raise RunError(f"the processes engine cannot start: {problem}", "Use one worker or more, and name the model instead of passing it")
    folder = Folder(out) if out is not None else None
    if folder is not None:
        look_first(folder, resume, overwrite)
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    _require_annotation(spec, corpus)
    if model is not None and spec.weights == "random":
        raise RunError(
            "the weights of a loaded model are as they are", "Load it with random=, a seed, or name the model instead of passing it"
        )
    if model is None:
        model = load(spec.model, device, spec.dtype, spec.random, head=spec.differentiates)
    require_labels(spec, corpus, model)
    spec = spec.resolved(corpus.pairs, model.device.type).model_copy(update={"dtype": model.dtype})
    runner = engines.runner_for(spec, model)
    if (limit := runner.model.max_length) is not None and spec.max_length > limit:
        raise RunError(f"max_length is {spec.max_length}, but {spec.model} ends at {limit} tokens", f"Use --max-length {limit}")
    now = identity(spec, runner.plan.measures, runner.model.fingerprint, corpus.hash(), runner.model.device.type) | annotation_of(corpus)
    with folder.locked() if folder is not None else nullcontext():
        if folder is not None and (finished := prepare(folder, now, resume, overwrite)) is not None:
            hung = folder.gallery.exists() and finished.manifest.get("gallery") is not None  # a kill may part the two
            lacking = gallery and not hung and TOO_LONG not in finished.manifest["dropped"]
            return _complete(finished, spec, runner, corpus, progress, gallery) if lacking else finished
        return _run(spec, runner, corpus, folder, now, device, engine, workers, resume, progress, gallery)


def _require_annotation(spec: RunSpec, corpus: Corpus) -> None:
    """Refuse a measure that has nothing to go by before a model is loaded for it."""
    needed = {measure.name: measure.needs for measure in spec.build_measures() if measure.needs is not None}
    present = corpus.layers(set(needed.values())) if needed else set()
    for name, layer in needed.items():
        if layer not in present:
            remedy = f"Use a corpus with {layer}, or leave {name} out of --measures"
            raise RunError(f"{name} needs {layer}, and {', '.join(spec.corpus)} has none", remedy)


def _run(
    spec: RunSpec,
    runner: ShardRunner,
    corpus: Corpus,
    folder: Folder | None,
    now: dict[str, Any],
    device: str | None,
    engine: engines.Engine,
    workers: int,
    resume: bool,
    progress: Progress | None,
    gallery: int,
) -> Results:
    model, plan = runner.model, runner.plan
    threads = None if engine == "local" else max(1, (os.cpu_count() or 1) // workers)
    manifest = {
        "status": "running",
        "signature": signature(spec, plan.measures, now),
        "settings": spec.model_dump(mode="json"),
        "identity": now,
        "capture": model.capture,
        **made(spec.model_dump(), now["settings"]["device"], folder, threads, gallery=gallery),
    }
    if folder is not None:
        folder.write_manifest(manifest)
    started = time.monotonic()
    ledger = Ledger(folder, key(now), resume)
    sampled = _samples(spec, runner, gallery)
    work = Work(corpus, model, spec, sampled, ledger.done, progress)
    done = engines.local(work, runner) if engine == "local" else engines.processes(work, spec, device, workers)
    for number, states in done:
        ledger.add(number, states)
        work.tell()
    dropped = work.dropped().lines()
    if ledger.merged is None:
        raise RunError(f"nothing to measure: no text is left of {', '.join(spec.corpus)}", "; ".join(dropped))
    report = {
        "seconds": round(time.monotonic() - started, 3),
        "counts": {**work.counts[0].numbers(), "shards": ledger.next, "resumed_shards": ledger.resumed},
        "readings": [
            {"unit": way.unit, "overlong": way.overlong, "measures": sorted(way.measures), **counts.numbers()}
            for way, counts in zip(work.ways, work.counts, strict=True)
        ],
        "dropped": dropped,
    }
    results = Results.make({**manifest, **report}, plan.measures, ledger.merged, plan.layout, folder)
    return hang(results, plan, sampled, runner.look, spec.word_rows or "mean") if gallery else results


def _samples(spec: RunSpec, runner: ShardRunner, size: int) -> list[tuple[Reading, Sample]]:
    """The ways in which a run reads its corpus, and for each what the gallery will be made of."""
    ways = readings(runner.plan.measures, spec.unit or "sentence", spec.overlong or "drop")
    return [(way, Sample(size, runner.plan.layout)) for way in ways]


def _complete(results: Results, spec: RunSpec, runner: ShardRunner, corpus: Corpus, progress: Progress | None, gallery: int) -> Results:
    """A finished run with the gallery that it lacks. The corpus is read again, for the sample; no number is worked out anew."""
    assert results.path is not None
    sampled = _samples(spec, runner, gallery)
    for _ in Work(corpus, runner.model, spec, sampled, lambda shard: True, progress):
        pass
    hang(results, runner.plan, sampled, runner.look, spec.word_rows or "mean")
    return Results.open(results.path)
