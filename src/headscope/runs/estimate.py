"""An estimate of what a run would do: its corpus is read and cut, and a few shards are timed. Nothing is written."""

from __future__ import annotations

import time
from dataclasses import dataclass

from headscope.core.state import States
from headscope.core.timing import spelled
from headscope.core.wording import number_of
from headscope.corpora import Corpus
from headscope.encoding.batches import batches
from headscope.engine.accumulate import Accumulator
from headscope.engine.checkpoint import merge
from headscope.engine.compute import ShardRunner
from headscope.engine.failures import FaultTolerantRunner
from headscope.engine.prefetch import Prefetcher
from headscope.engine.shards import Progress, RunWork
from headscope.engine.spec import RunSpec
from headscope.engine.worker import ShardJob
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.memory import estimate
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.results.folder import encode_states
from headscope.runs.execute import samples, set_up

TRIED = 3  # shards


@dataclass(frozen=True)
class TimedShards:
    """Shards that were timed: their tokens, the seconds of computing, and the seconds of merging and writing."""

    shards: int
    tokens: int
    computing: float
    keeping: float

    @property
    def speed(self) -> float:
        """Tokens per second of one worker."""
        return self.tokens / max(self.computing, 1e-9)


@dataclass(frozen=True)
class RunEstimate:
    """What a run would read and skip, and what it would cost in bytes and seconds. Tokens do not include padding."""

    counts: tuple[Counts, ...]  # one for each way in which the corpus is read
    ways: tuple[str, ...]
    shards: int
    batches: int
    longest: int  # tokens of a text
    notes: tuple[tuple[str, str], ...]  # lines about what was skipped or read differently, each after its label
    warnings: tuple[str, ...]
    reading: float  # seconds of reading, cutting and encoding, by this process
    weights: int
    maps: int  # of the largest batch
    state: int  # of one shard
    trial: TimedShards | None
    passes: int = 0  # tokens that each layer reads, including repeated passes

    @property
    def tokens(self) -> int:
        """The tokens of all readings."""
        return sum(counts.tokens for counts in self.counts)

    def seconds(self, workers: int | None = None) -> float | None:
        """The time of the run with this many workers, or in one process; None if nothing was timed.

        One process reads, computes, and merges and writes in turn. Workers compute while this process does the rest,
        and the slower of the two decides.
        """
        if self.trial is None:
            return None
        alone = self.reading + self.shards * self.trial.keeping / self.trial.shards
        computing = self.tokens / self.trial.speed
        return alone + computing if workers is None else max(alone, computing / workers)

    def lines(self, workers: int | None = None) -> list[str]:
        """The estimate as lines of text."""
        lines = []
        worst = max(self.counts, key=lambda counts: counts.unknown_share)
        for way, counts in zip(self.ways, self.counts, strict=True):
            sizes = (number_of(getattr(counts, f"{name}s"), name) for name in ("document", "text", "token", "word"))
            lines.append(f"by {way}: {', '.join(sizes)} ({counts.split_words:,} of them of several tokens)")
        lines.append(f"{number_of(self.shards, 'shard')}, batches: {self.batches:,}; the longest text has {self.longest:,} tokens")
        if worst.unknown:
            lines.append(f"unknown tokens: {worst.unknown:,} of {worst.word_tokens:,} ({worst.unknown_share:.1%})")
        lines += [f"{label}: {line}" for label, line in (*self.notes, *(("warning", line) for line in self.warnings))]
        held = f"{_size(self.weights)} of weights and {f'up to {_size(self.maps)}' if self.maps else 'none'} of attention maps at a time"
        lines.append(f"memory: {held}{' for each worker' if workers is not None else ''}, and {_size(self.state)} for the sums of a shard")
        if self.passes > self.tokens:
            times = self.passes / max(self.tokens, 1)
            lines.append(
                f"passes: each layer runs again for each token of a text, over {self.passes:,} tokens in all, {times:,.0f} times the texts"
            )
        lines.append(f"reading and encoding: {_speed(self.tokens / max(self.reading, 1e-9))}, {spelled(self.reading)} in all")
        whole = self.seconds(workers)
        if self.trial is None or whole is None:
            return [*lines, "computing time was not measured"]
        tried, each = number_of(self.trial.shards, "shard"), " per worker" if workers is not None else ""
        lines.append(f"computing: {_speed(self.trial.speed)}{each}, tried on {tried}")
        who = "in this process" if workers is None else f"with {number_of(workers, 'worker')}"
        bound = workers is not None and whole > self.tokens / self.trial.speed / workers
        return [*lines, f"expected: {spelled(whole)} {who}{', bound by reading' if bound else ''}"]


def plan_run(
    spec: RunSpec,
    *,
    model: Model | ModelInMemory | None = None,
    corpus: Corpus | None = None,
    device: str | None = None,
    tried: int = TRIED,
    readers: int | None = 0,
    progress: Progress | None = None,
) -> RunEstimate:
    """The estimate of a run: the corpus is read and cut, and after one shard to warm up `tried` shards are timed."""
    spec, runner, corpus, kind = set_up(spec, model, corpus, device)
    readers = Prefetcher.usual(corpus, kind) if readers is None else readers
    work = RunWork(corpus, runner.model, spec, samples(spec, runner, 0), lambda shard: False, progress, readers)
    trying = _Trying(runner, tried)
    shards = count = longest = passes = 0
    largest = (1, 1)  # texts and tokens of the batch with the largest maps
    began = time.perf_counter()
    for job in work:
        shards += 1
        for batch in batches(job.texts, runner.batch_tokens):
            count += 1
            longest = max(longest, batch[-1].cost)
            passes += sum(len(text) * runner.maps.passes(len(text)) for text in batch)
            largest = max(largest, (len(batch), batch[-1].cost), key=lambda shape: shape[0] * shape[1] ** 2)
        trying.add(job)
        work.report_progress(job.number)
    memory = estimate(runner.model, *largest, runner.makes_no_maps)
    return RunEstimate(
        tuple(work.counts),
        tuple(way.unit for way in work.ways),
        shards,
        count,
        longest,
        tuple(work.dropped().labelled()),
        tuple(work.warnings()),
        time.perf_counter() - began - trying.seconds,
        memory.weights,
        memory.maps,
        trying.state or len(encode_states(Accumulator(runner.plan, spec.replicates, spec.seed).states, {})),
        trying.trial(),
        passes,
    )


class _Trying:
    """Runs the first shards that it receives: one to warm up, and then those that are timed."""

    def __init__(self, runner: ShardRunner, shards: int) -> None:
        self._runner = FaultTolerantRunner(runner)
        self._left = shards + 1 if shards else 0
        self._timed: list[tuple[int, float, float]] = []
        self._merged: States | None = None
        self.seconds = 0.0  # of all these shards
        self.state = 0  # bytes of the largest state

    def add(self, job: ShardJob) -> None:
        if not self._left:
            return
        self._left -= 1
        began = time.perf_counter()
        states = self._runner(job.texts, job.measures)
        computed = time.perf_counter()
        before, self._merged = self._merged, states if self._merged is None else merge(self._merged, states)
        self.state = max(self.state, len(encode_states(self._merged, {})))
        ended = time.perf_counter()
        self.seconds += ended - began
        if before is not None:
            self._timed.append((sum(map(len, job.texts)), computed - began, ended - computed))

    def trial(self) -> TimedShards | None:
        tokens, computing, keeping = (sum(column) for column in zip(*self._timed, strict=True)) if self._timed else (0, 0.0, 0.0)
        return TimedShards(len(self._timed), int(tokens), computing, keeping) if tokens else None


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def _speed(tokens: float) -> str:
    return f"{tokens:,.0f} tokens/s"
