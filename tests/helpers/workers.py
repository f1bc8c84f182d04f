"""Workers of the engine `processes` that run in this process: separate processes take seconds to start. tests/runs
starts and kills real ones.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Hashable
from types import TracebackType
from typing import Self

from headscope.engine.pool import Event, WorkerPool
from headscope.engine.worker import ShardJob, Worker, WorkerSetup


class WorkersHere(WorkerPool):
    """A pool of workers in this process. Like workers in other processes, each worker loads the model, and everything
    that it receives and answers is pickled.
    """

    def __init__(self, size: int, device: str | None = None) -> None:
        super().__init__(size, device)
        self._workers: list[Worker] = []
        self._answers: deque[Event] = deque()

    def threads(self) -> int:
        return 1

    def start_worker(self, start: WorkerSetup) -> Hashable:
        self._workers.append(Worker())
        number = len(self._workers) - 1
        self._answers.append(Event(number, *self._workers[number].begin(pickle.loads(pickle.dumps(start)))))
        return number

    def give(self, worker: Hashable, job: ShardJob) -> None:
        assert isinstance(worker, int)
        texts, measures = pickle.loads(pickle.dumps((job.texts, job.measures)))
        self._answers.append(Event(worker, *pickle.loads(pickle.dumps(self._workers[worker].do(texts, measures)))))

    def events(self) -> list[Event]:
        found, self._answers = list(self._answers), deque()
        return found

    def stop_worker(self, worker: Hashable) -> None:
        raise AssertionError("a worker of this process cannot die")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return
