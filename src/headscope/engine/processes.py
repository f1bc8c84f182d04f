"""Workers in processes of this machine, each with its own copy of the model."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

from headscope.engine.child_processes import end_with_parent, uninterrupted
from headscope.engine.pool import Event, WorkerPool
from headscope.engine.worker import Answer, ShardJob, Worker, WorkerSetup

PATIENCE = 10  # seconds that a worker has to end on its own


@dataclass(frozen=True)
class _WorkerProcess:
    """A process and the two ends of its pipes that are here."""

    process: SpawnProcess
    jobs: Connection
    answers: Connection


class ProcessPool(WorkerPool):
    """A pool of processes that are started for a run and end with it."""

    remedy = f"{WorkerPool.remedy}; a script must start its run under `if __name__ == '__main__':`"

    def __init__(self, size: int, device: str | None = None) -> None:
        super().__init__(size, device)
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Hashable, _WorkerProcess] = {}

    def threads(self) -> int:
        """The number of threads of a process: a share of the cores."""
        return max(1, (os.cpu_count() or 1) // self.size)

    def start_worker(self, start: WorkerSetup) -> Hashable:
        """Start a process."""
        theirs, jobs = self._context.Pipe(duplex=False)
        answers, mine = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_serve, args=(theirs, mine, start), daemon=True)
        with uninterrupted():
            process.start()
        theirs.close()  # so that the pipe ends when the process does
        mine.close()
        assert process.pid is not None
        self._workers[process.pid] = _WorkerProcess(process, jobs, answers)
        return process.pid

    def give(self, worker: Hashable, job: ShardJob) -> None:
        """Send a shard; an event reports if the worker is dead."""
        with suppress(OSError):
            self._workers[worker].jobs.send((job.texts, job.measures))

    def events(self) -> list[Event]:
        """The answers that have arrived from any process."""
        names = {held.answers: pid for pid, held in self._workers.items()}
        return [self._received(names[connection]) for connection in wait(list(names), timeout=1) if isinstance(connection, Connection)]

    def _received(self, worker: Hashable) -> Event:
        held = self._workers[worker]
        try:
            return Event(worker, *held.answers.recv())
        except (EOFError, OSError):
            held.process.join(PATIENCE)
            code = held.process.exitcode
            how = "it does not answer" if code is None else f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return Event(worker, "died", f"a worker process died: {how}")

    def stop_worker(self, worker: Hashable) -> None:
        """End a process immediately: it holds nothing that could be lost."""
        held = self._workers.pop(worker)
        held.process.kill()
        held.process.join(PATIENCE)
        held.jobs.close()
        held.answers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in list(self._workers):
            self.stop_worker(worker)


def _serve(jobs: Connection, answers: Connection, start: WorkerSetup) -> None:
    """The main function of a process: compute shards, one after the other, until it is ended."""
    end_with_parent()
    worker = Worker()
    ready = worker.begin(start)
    answers.send(ready)
    line: queue.SimpleQueue[tuple[object, object]] = queue.SimpleQueue()
    # A thread reads immediately, so that the sender never waits while this process computes.
    threading.Thread(target=_take, args=(jobs, line), daemon=True).start()
    while ready[0] == "ready":
        texts, measures = line.get()
        answer: Answer = worker.do(texts, measures)  # type: ignore[arg-type]
        answers.send(answer)


def _take(jobs: Connection, line: queue.SimpleQueue[tuple[object, object]]) -> None:
    with suppress(EOFError, OSError):
        while True:
            line.put(jobs.recv())
