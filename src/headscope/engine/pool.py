"""A pool of workers: assigns shards to workers, and replaces workers that die.

If a worker's process or machine dies, the worker is replaced and others repeat its shards: the states of a shard do not
depend on where or how often it is computed. A shard whose worker died `TRIES` times is set aside, and named when the
rest, or much of it, is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headscope.core.state import States
from headscope.engine.worker import ShardJob, WorkerSetup
from headscope.errors import RunError

AHEAD = 2  # shards assigned to a worker: one in progress, one next
TRIES = 3
ASIDE = 16  # shards that may be set aside before a run is aborted
BEYOND = 256  # shards finished after one was set aside: they cannot be merged without it, so their states are held
NAMED = 5


@dataclass(frozen=True)
class Event:
    """An answer of a worker (engine/worker.py); `died` with the reason for a worker that no longer answers."""

    worker: Hashable
    what: str
    answer: Any = None


class WorkerPool(ABC):
    """Workers of one kind. They compute their shards in order, and each of their answers is an event."""

    remedy = "If memory ran out, use fewer --workers or a smaller --batch-tokens"

    def __init__(self, size: int, device: str | None) -> None:
        self.size = size
        self.device = device  # where workers load their models

    @abstractmethod
    def threads(self) -> int:
        """The number of threads of a worker."""

    @abstractmethod
    def start_worker(self, start: WorkerSetup) -> Hashable:
        """Begin to start a worker, and return its number; an event tells when it is ready."""

    @abstractmethod
    def give(self, worker: Hashable, job: ShardJob) -> None:
        """Append a shard to a worker's queue."""

    @abstractmethod
    def events(self) -> list[Event]:
        """The new events, in order for each worker. Waits up to about a second for one."""

    @abstractmethod
    def stop_worker(self, worker: Hashable) -> None:
        """End a worker, dead or alive."""

    @abstractmethod
    def __enter__(self) -> Self:
        """Prepare the environment of workers."""

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all workers, and everything that was started for them."""

    def require_place(self) -> None:
        """Raise an error if no worker can be started and waiting does not help."""
        return


class Dispatch:
    """Gives the shards of some work to a pool."""

    def __init__(self, work: Iterator[ShardJob], pool: WorkerPool, start: WorkerSetup) -> None:
        self._work = work
        self._pool = pool
        self._start = start
        self._lines: dict[Hashable, deque[ShardJob]] = {}  # of workers that are ready
        self._beginning: set[Hashable] = set()
        self._again: deque[ShardJob] = deque()
        self._deaths: Counter[int] = Counter()  # by shard
        self._aside: list[tuple[ShardJob, str]] = []
        self._beyond = 0  # shards done since
        self._early_deaths = 0  # workers in a row that died before they were ready

    def __iter__(self) -> Iterator[tuple[int, States]]:
        """Numbers and states of all shards, in the order in which they finish."""
        job = self._next()
        for _ in range(self._pool.size if job is not None else 0):
            self._beginning.add(self._pool.start_worker(self._start))
        while job is not None or any(self._lines.values()):
            while job is not None and (worker := self._free()) is not None:
                self._lines[worker].append(job)
                self._pool.give(worker, job)
                job = self._next()
            for event in self._pool.events():
                yield from self._handle(event)
            job = job or self._next()
            if not self._lines:
                self._pool.require_place()
        if self._aside:
            raise self._set_aside()

    def _next(self) -> ShardJob | None:
        if self._again:
            return self._again.popleft()
        return next(self._work, None) if self._beyond < BEYOND else None

    def _free(self) -> Hashable | None:
        """The worker with the fewest shards, if it can take more."""
        worker = min(self._lines, key=lambda worker: len(self._lines[worker]), default=None)
        return worker if worker is not None and len(self._lines[worker]) < AHEAD else None

    def _handle(self, event: Event) -> Iterator[tuple[int, States]]:
        if event.worker not in self._lines and event.worker not in self._beginning:
            return  # it was dismissed meanwhile
        if event.what == "ready":
            self._beginning.discard(event.worker)
            self._lines[event.worker] = deque()
            self._early_deaths = 0
        elif event.what == "done":
            self._beyond += bool(self._aside)
            yield self._lines[event.worker].popleft().number, event.answer
        elif event.what == "error":
            raise RunError(*event.answer)
        else:
            self._lost(event)

    def _lost(self, event: Event) -> None:
        """Assign the shards of a lost worker to others, and start a replacement."""
        why = str(event.answer)
        self._pool.stop_worker(event.worker)
        if event.worker in self._beginning:
            self._beginning.discard(event.worker)
            self._early_deaths += 1
        line = self._lines.pop(event.worker, deque())
        if line:
            first = line[0]  # the shard in progress
            self._deaths[first.number] += 1
            if self._deaths[first.number] >= TRIES:
                self._aside.append((line.popleft(), why))
        self._again.extendleft(reversed(line))
        if len(self._aside) >= ASIDE:
            raise self._set_aside()
        if self._early_deaths < TRIES:
            self._beginning.add(self._pool.start_worker(self._start))
        elif not self._lines and not self._beginning:
            raise RunError(f"{self._early_deaths} workers in a row died before they could begin ({why})", self._pool.remedy)

    def _set_aside(self) -> RunError:
        job, why = self._aside[0]
        documents = list(dict.fromkeys(text.document for text in job.texts))
        named = ", ".join(documents[:NAMED]) + (f" and {len(documents) - NAMED} more" if len(documents) > NAMED else "")
        others = f", and so did {len(self._aside) - 1} other shards" if len(self._aside) > 1 else ""
        return RunError(
            f"shard {job.number + 1} ended its worker {TRIES} times ({why}){others}. It holds {named}",
            f"{self._pool.remedy}; else remove those texts from the corpus. Finished shards are kept, and --resume continues the run",
        )
