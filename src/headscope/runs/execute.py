"""The execution of a specification: read, encode, compute, merge, write."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.core.allocation import rare_collections
from headscope.core.paths import printable
from headscope.core.profile import timed, timing
from headscope.corpora import Corpus, read
from headscope.engine import engines, failures, generating
from headscope.engine.checkpoint import Ledger
from headscope.engine.compute import ShardRunner
from headscope.engine.opening import look_first, prepare
from headscope.engine.plan import CorpusReading, readings
from headscope.engine.pool import Dispatch, WorkerPool
from headscope.engine.prefetch import Prefetcher
from headscope.engine.sample import SIZE, Sample
from headscope.engine.shards import Progress, RunWork, require_labels
from headscope.engine.slicing import require_column
from headscope.engine.spec import RunSpec
from headscope.engine.worker import WorkerSetup
from headscope.errors import NoPredictionsError, RunError
from headscope.gallery.build import TOO_LONG, attach_gallery
from headscope.models.generation import require_generator
from headscope.models.load import load_given
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.model import Model
from headscope.results.folder import Folder
from headscope.results.provenance import made
from headscope.results.results import Results
from headscope.results.signature import annotation_of, identity, key, origin_of, signature


def execute(
    spec: RunSpec,
    out: Path | None = None,
    *,
    model: Model | ModelInMemory | None = None,
    corpus: Corpus | None = None,
    device: str | None = None,
    engine: engines.Engine = "local",
    workers: int = 2,
    address: str | None = None,
    gpus_per_worker: float | None = None,
    readers: int | None = 0,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    gallery: int = SIZE,
) -> Results:
    """The results of a specification, written to `out` if given. A loaded `model` or `corpus` replaces its name.

    `workers` are those of the engines `processes` and `ray`; `address` is that of a Ray cluster, instead of a new local
    Ray, and `gpus_per_worker` the number of GPUs of each of its workers. `readers` processes prefetch texts if the
    corpus consists of files; None: as many as suit the device. `gallery` is the number of texts of each reading from
    which the gallery is chosen; it changes no number.
    """
    if engine != "local" and model is not None:
        raise RunError(
            f"the {engine} engine cannot send a loaded model to its workers, which load models by name",
            "Name the model: a folder, an adapter, a GGUF file or a hub id; save a model that is only in memory with save_pretrained, "
            "and its tokenizer into the same folder",
        )
    folder = Folder(out) if out is not None else None
    if folder is not None:
        look_first(folder, resume, overwrite)
    with engines.pool_for(engine, workers, device, address, gpus_per_worker) as pool:
        with timing("loading the model"):
            spec, runner, corpus, kind = set_up(spec, model, corpus, device, pool)
        spec = _sharded_as_begun(spec, folder) if resume else spec
        readers = Prefetcher.usual(corpus, kind) if readers is None else readers
        return _Execution(spec, runner, corpus, kind, folder, pool, readers, resume, progress, gallery).results(overwrite)


@dataclass(frozen=True)
class _Execution:
    """One run: its specification, its parts, and the folder for its results."""

    spec: RunSpec
    runner: ShardRunner
    corpus: Corpus
    device: str
    folder: Folder | None
    pool: WorkerPool | None
    readers: int
    resume: bool
    progress: Progress | None
    gallery: int

    def results(self, overwrite: bool) -> Results:
        """The results in the folder if this run is already finished there, or else the results computed now."""
        with timing("hashing the model and the corpus"):
            contents = {"model": self.runner.model.fingerprint, "corpus": self.corpus.hash()}
        now = identity(self.spec, self.device, contents, self.runner.plan.measures) | annotation_of(self.corpus)
        now |= origin_of(self.runner.model.origin)
        folder = self.folder
        with folder.locked() if folder is not None else nullcontext():
            if folder is not None and (finished := prepare(folder, _as_begun(folder, now), self.resume, overwrite)) is not None:
                # A run may be killed after its tables are written and before its gallery is.
                has_gallery = folder.gallery.exists() and finished.manifest.get("gallery") is not None
                lacking = self.gallery and not has_gallery and TOO_LONG not in finished.manifest["dropped"]
                return self._with_gallery(finished) if lacking else finished
            with rare_collections():
                return self._compute(now)

    def _compute(self, now: dict[str, Any]) -> Results:
        """The results of all shards, including those of an interrupted run, and the gallery."""
        spec, folder, pool = self.spec, self.folder, self.pool
        model, plan = self.runner.model, self.runner.plan
        manifest = {
            "status": "running",
            "signature": signature(spec, now, plan.measures),
            "settings": spec.model_dump(mode="json"),
            "identity": now,
            "capture": model.capture,
            **made(spec.model_dump(), now["settings"]["device"], folder, None if pool is None else pool.threads(), gallery=self.gallery),
        }
        if folder is not None:
            folder.write_manifest(manifest)
        started = time.monotonic()
        ledger = Ledger(folder, _key(now), self.resume)
        sampled = samples(spec, self.runner, self.gallery)
        work = RunWork(self.corpus, model, spec, sampled, ledger.done, self.progress, self.readers)
        done = (
            engines.local(work, self.runner)
            if pool is None
            else _dispatched(Dispatch(work, pool, WorkerSetup.of(spec, pool.device, pool.threads(), model)))
        )
        failing = 0
        with closing(work), closing(done):  # files that are being read, and threads that read them, if the run ends early
            for number, states in done:
                failing += len(failures.failures(states))
                with timing("writing"):
                    ledger.add(number, states)
                work.report_progress(number)
                if failing > failures.MOST:
                    raise RunError(f"{spec.model} failed on more than {failures.MOST:,} texts", "Check that the model can read this corpus")
        more: dict[str, Any] = {}
        if spec.decoding is not None and ledger.merged is not None:
            written = list(generating.generated_texts(ledger.merged))
            work.recount(written)
            manifest["generated"] = generating.summary_of(written, spec.decoding)
            more[generating.NAME] = generating.columns_of(written, model.tokenizer)
        tally = work.dropped()
        dropped = tally.lines(read=False)
        if ledger.merged is None:
            raise RunError(f"nothing to measure: no text is left of {', '.join(spec.corpus)}", "; ".join(dropped))
        failed, name = failures.failures(ledger.merged), printable(Path(spec.model).name)
        if failed and spec.on_error == "raise":
            raise failures.error(failed, name, kept=folder is not None)
        if failed:
            dropped.append(failures.line(failed, name))
        report = {
            "seconds": round(time.monotonic() - started, 3),
            "counts": {**work.counts[0].numbers(), "shards": ledger.next, "resumed_shards": ledger.resumed},
            "readings": [
                {"unit": way.unit, "overlong": way.overlong, "measures": sorted(way.measures), **counts.described()}
                for way, counts in zip(work.ways, work.counts, strict=True)
            ],
            "unknown_tokens": work.least_known.unknown_tokens(),
            "warnings": work.warnings(),
            "read": tally.lines(read=True),
            "dropped": dropped,
            "failed": [vars(failure) for failure in failed],
            **({"slices": slices} if (slices := work.slices()) is not None else {}),
        }
        for _, sample in sampled:
            sample.leave_out(failure.text for failure in failed)
        states = {measure.name: ledger.merged[measure.name] for measure in plan.measures}
        results = Results.make({**manifest, **report}, plan.measures, states, plan.layout, folder, more)
        with timing("gallery"):
            return attach_gallery(results, plan, sampled, self.runner.look, spec.word_rows or "mean") if self.gallery else results

    def _with_gallery(self, results: Results) -> Results:
        """A finished run with its missing gallery added. The corpus is read again; no number is computed again."""
        assert results.path is not None
        sampled = samples(self.spec, self.runner, self.gallery)
        for _ in RunWork(self.corpus, self.runner.model, self.spec, sampled, lambda shard: True, self.progress):
            pass
        for _, sample in sampled:
            sample.leave_out(failed["text"] for failed in results.manifest.get("failed", ()))
        attach_gallery(results, self.runner.plan, sampled, self.runner.look, self.spec.word_rows or "mean")
        return Results.open(results.path)


def _dispatched(dispatch: Dispatch) -> Generator[engines.Done]:
    """The shards that workers finish, with the time that this process waits for them, as a generator to close."""
    yield from timed(dispatch, "waiting for workers")


def set_up(
    spec: RunSpec, model: Model | ModelInMemory | None, corpus: Corpus | None, device: str | None, pool: WorkerPool | None = None
) -> tuple[RunSpec, ShardRunner, Corpus, str]:
    """The complete specification, the runner, the corpus and the kind of device of a run; an error if it cannot run."""
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    _require_annotation(spec, corpus)
    _require_one_reading(spec, corpus)
    if spec.by is not None:
        require_column(corpus, spec.by, ", ".join(spec.corpus))
    try:
        model = load_given(model, spec.model, _here(device, pool), spec.dtype, spec.random, head=spec.predicts)
    except NoPredictionsError as error:
        raise _cannot_predict(spec, error) from None
    if spec.generate is not None:
        require_generator(model)
    if spec.differentiates:
        model.require_plain_weights("gradients")
    require_labels(spec, corpus, model)
    kind = torch.device(pool.device).type if pool is not None and pool.device is not None else model.device.type
    spec = spec.resolved(corpus.pairs, kind).model_copy(update={"dtype": model.dtype})
    runner = engines.runner_for(spec, model)
    if (limit := runner.model.max_length) is not None and spec.max_length > limit:
        raise RunError(f"max_length is {spec.max_length}, but {spec.model} ends at {limit} tokens", f"Use --max-length {limit}")
    return spec, runner, corpus, kind


def _here(device: str | None, pool: WorkerPool | None) -> str | None:
    """The device on which this process loads the model: that of workers, unless they have a GPU and it has none."""
    wanted = device if pool is None else pool.device
    return "cpu" if pool is not None and wanted == "cuda" and not torch.cuda.is_available() else wanted


def _sharded_as_begun(spec: RunSpec, folder: Folder | None) -> RunSpec:
    """The settings with the shards of an unfinished run: batches may have another size, shards may not."""
    try:
        begun = folder.read_manifest()["settings"]["shard_tokens"] if folder is not None else None
    except (RunError, KeyError):
        begun = None
    return spec if begun is None else spec.model_copy(update={"shard_tokens": begun})


def _as_begun(folder: Folder, now: dict[str, Any]) -> dict[str, Any]:
    """The identity that a folder must have to be resumed. An unfinished run with `on_error` raise may be resumed with
    skip.

    The finished shards are the same in both cases: a shard is kept only if everything before it could be read, and it
    records which of its texts failed.
    """
    try:
        manifest = folder.read_manifest()
    except RunError:
        return now
    strict = manifest.get("identity", {}).get("settings", {}).get("on_error") == "raise"
    unfinished = manifest.get("status") == "running"
    return {**now, "settings": {**now["settings"], "on_error": "raise"}} if strict and unfinished else now


def _key(now: dict[str, Any]) -> str:
    """The key that all kept shards must have: a hash of everything that can change them, which `on_error` cannot."""
    return key({**now, "settings": {name: value for name, value in now["settings"].items() if name != "on_error"}})


def _require_annotation(spec: RunSpec, corpus: Corpus) -> None:
    """Refuse a measure whose annotation the corpus does not have, before a model is loaded."""
    needed = {measure.name: measure.needs for measure in spec.build_measures() if measure.needs is not None}
    if needed and spec.generate is not None:
        name, layer = next(iter(needed.items()))
        raise RunError(
            f"{name} needs {layer}, and generated words have no annotation", f"Remove {name} from --measures, or omit --generate"
        )
    one_of = {layer: {*layer.split(" or ")} for layer in needed.values()}
    present = corpus.layers(set().union(*one_of.values())) if needed else set()
    for name, layer in needed.items():
        if not one_of[layer] & present:
            remedy = f"Use a corpus with {layer}, or remove {name} from --measures"
            raise RunError(f"{name} needs {layer}, and {', '.join(spec.corpus)} has none", remedy)


def _require_one_reading(spec: RunSpec, corpus: Corpus) -> None:
    """Refuse to continue pairs of texts, or the same texts cut in several ways."""
    if spec.generate is None:
        return
    unit = spec.resolved(corpus.pairs).unit
    for measure in spec.build_measures():
        if (option := "unit" if measure.unit is not None else "overlong" if measure.overlong is not None else None) is not None:
            raise RunError(f"{measure.name}.{option} cuts texts for one measure, and generated text is the same for all", f"Use --{option}")
    if unit in ("pair", "segment"):
        raise RunError(f"the model continues one text, and a {unit} is two", "Use --unit sentence, paragraph or document with --generate")


def _cannot_predict(spec: RunSpec, error: NoPredictionsError) -> NoPredictionsError:
    """The error with what needs predictions, and how to run without them."""
    if spec.generate is not None:
        return NoPredictionsError(f"{error.problem}, and --generate needs one", "Use a language model such as gpt2, or omit --generate")
    slopes = ", ".join(measure.name for measure in spec.build_measures() if measure.slope() is not None)
    return NoPredictionsError(f"{error.problem}, and {slopes} needs a loss", f"{error.remedy}, or remove {slopes} from --measures")


def samples(spec: RunSpec, runner: ShardRunner, size: int) -> list[tuple[CorpusReading, Sample]]:
    """The ways in which a run reads its corpus, each with the sample of texts for the gallery."""
    ways = readings(runner.plan.measures, spec.unit or "sentence", spec.overlong or "drop")
    measured = runner.measured if spec.generate is not None else None
    return [(way, Sample(size, runner.plan.layout, measured)) for way in ways]
