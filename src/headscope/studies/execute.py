"""Execute a study: open and lock its folder, start or resume the work, sign and write the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headscope.core.state import States
from headscope.corpora import Corpus, read
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import look_first, prepare
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.load import load_given
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.model import Model
from headscope.results.counts import warning
from headscope.results.folder import Folder
from headscope.results.provenance import made
from headscope.results.results import Results
from headscope.results.signature import annotation_of, identity, key, origin_of, signature
from headscope.results.table import Table
from headscope.studies.base import Study, StudyContext, Work
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec


def execute(
    study: Study | str,
    settings: StudySpec | Mapping[str, Any],
    out: Path | None = None,
    *,
    model: Model | ModelInMemory | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    **corpora_and_options: Any,
) -> Results:
    """The results of a study, written to the folder `out` if it is given.

    A study may be given by its name, and its settings as plain values. A loaded `model` replaces the one that the
    settings name. `corpora_and_options` are loaded corpora, by the names of their settings, and what the study takes
    in addition to its settings. `notify` receives messages while the study runs.
    """
    folder = None if out is None else Folder(out)
    if folder is not None:
        look_first(folder, resume, overwrite)
    how = {"folder": folder, "resume": resume, "progress": progress, "notify": notify}
    study, work = open_work(study, settings, model, device, corpora_and_options, how)
    now = _identity(work)
    work.context.key = key(now)
    if folder is None:
        return _finished(study, work, now)
    with folder.locked():
        complete = prepare(folder, now, resume, overwrite)
        return _finished(study, work, now) if complete is None else complete


def open_work(
    study: Study | str,
    settings: StudySpec | Mapping[str, Any],
    model: Model | ModelInMemory | None,
    device: str | None,
    corpora_and_options: Mapping[str, Any],
    how: Mapping[str, Any],
) -> tuple[Study, Work]:
    """The study and one execution of it, with its model loaded; `how` are further fields of its context."""
    study = REGISTRY[study] if isinstance(study, str) else study
    spec = settings if isinstance(settings, StudySpec) else study.make(settings)
    options = dict(corpora_and_options)
    corpora = {name: options.pop(name, None) or _read(spec, name) for name in study.corpora}
    spec = study.resolve(spec, corpora)
    loaded = load_given(model, spec.model, device, spec.dtype, spec.random, head=study.predicts)
    if unknown := [name for name in options if name not in study.takes]:
        raise TypeError(f"{study.function}() takes no {unknown[0]}")
    context = StudyContext(loaded, corpora, options=options, **how)
    return study, study.work(spec.model_copy(update={"dtype": loaded.dtype}), context)


def do_jobs(work: Work, ledger: Ledger) -> States:
    """The merged states of all jobs; jobs that are not done yet are done first."""
    work.meter.begin(0)
    for number, job in enumerate(work.jobs(lambda: _merged(ledger))):
        if ledger.done(number):
            work.skip(job)
        else:
            ledger.add(number, work.do(job))
        work.meter.begin(number + 1)
    if ledger.merged is None:
        reasons = "; ".join(work.counts.dropped.lines())
        raise RunError(f"nothing to study: no text is left of {', '.join(work.spec.corpus)}", reasons)
    return ledger.merged


def require_length(model: Model, spec: StudySpec) -> None:
    """Raise an error if the longest text is longer than the model can read."""
    if model.max_length is not None and spec.max_length > model.max_length:
        remedy = f"Use --max-length {model.max_length}"
        raise RunError(f"max_length is {spec.max_length}, but {spec.model} ends at {model.max_length} tokens", remedy)


def _read(spec: StudySpec, name: str) -> Corpus | None:
    """The corpus that a setting names, if it names one."""
    names = getattr(spec, name)
    return read(*names, format=spec.format, on_error=spec.on_error) if names else None


def _identity(work: Work) -> dict[str, Any]:
    """Everything that can change a result, and the source of the annotation."""
    corpora = {name: corpus for name, corpus in work.context.corpora.items() if corpus is not None}
    hashes = {name: corpora[name].hash() if name in corpora else None for name in work.context.corpora}
    contents = {"model": work.model.fingerprint, **hashes, **work.contents}
    return identity(work.spec, work.model.device.type, contents) | annotation_of(*corpora.values()) | origin_of(work.model.origin)


def _finished(study: Study, work: Work, now: Mapping[str, Any]) -> Results:
    """Do all jobs that are not done yet, and write the results."""
    started = time.monotonic()
    context = work.context
    settings = work.spec.model_dump(mode="json")
    manifest = {"study": study.name, "signature": signature(work.spec, now), "settings": settings, "identity": dict(now)}
    manifest |= {"capture": work.model.capture, **made(settings, work.model.device.type, context.folder)}
    work.prepare()
    if context.folder is not None:
        context.folder.write_manifest({"status": "running", **manifest})
    ledger = Ledger(context.folder, context.key, context.resume)
    tables = work.tables(do_jobs(work, ledger))
    results = _written(
        manifest, tables, work, ledger, {"measures": {study.name: work.measured()}, "seconds": round(time.monotonic() - started, 3)}
    )
    work.close()
    return results


def _merged(ledger: Ledger) -> States:
    assert ledger.merged is not None
    return ledger.merged


def _written(manifest: Mapping[str, Any], tables: Mapping[str, Table], work: Work, ledger: Ledger, entries: Mapping[str, Any]) -> Results:
    """The results, written to the folder of the study if it has one."""
    signed = {name: Table(table.arrow.replace_schema_metadata({"signature": manifest["signature"]})) for name, table in tables.items()}
    counts = work.counts
    complete = {
        **manifest,
        "status": "complete",
        "tables": list(signed),
        "sites": [{"kind": s.kind, "layer": s.layer + 1, "heads": s.heads, "kv_heads": s.kv_heads} for s in work.model.layout.sites],
        "counts": {**counts.numbers(), "shards": ledger.next, "resumed_shards": ledger.resumed},
        "unknown_tokens": counts.unknown_tokens(),
        "read": counts.dropped.lines(read=True),
        "dropped": counts.dropped.lines(read=False),
        **entries,
        "notes": work.notes,
        **work.further(),
        "warnings": [*warning(counts, work.model_name), *work.warnings],
    }
    folder = work.context.folder
    states = _merged(ledger)
    if folder is not None:
        complete = folder.finish(signed, states, complete)
    return Results(complete, signed, folder.path if folder is not None else None, states=states)
