"""Which worker computes which shard, and what happens to shards of workers that die: a pool in memory, whose workers
die by script.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

import headscope as hs
from headscope.core.annotation import Annotation
from headscope.core.state import State
from headscope.encoding.texts import Encoded
from headscope.engine import processes
from headscope.engine.pool import AHEAD, ASIDE, BEYOND, TRIES, Dispatch, Event, WorkerPool
from headscope.engine.worker import ShardJob, WorkerSetup
from headscope.errors import RunError
from helpers.small_models import save_small

START = WorkerSetup({}, None, 1, "", {})


class Scripted(WorkerPool):
    """A pool whose workers finish one shard per call of `events`. `deadly` has the number of workers that each shard
    kills; the first `stillborn` workers die before they begin.
    """

    remedy = "Be gentle"

    def __init__(self, size: int, deadly: dict[int, int] | None = None, stillborn: int = 0) -> None:
        super().__init__(size, None)
        self._deadly = dict(deadly or {})
        self._stillborn = stillborn
        self._new_events: deque[Event] = deque()
        self.queues: dict[Hashable, deque[ShardJob]] = {}
        self.hired = 0
        self.longest = 0

    def threads(self) -> int:
        return 1

    def start_worker(self, start: WorkerSetup) -> Hashable:
        self.hired += 1
        self.queues[self.hired] = deque()
        self._new_events.append(Event(self.hired, "died", "too young") if self.hired <= self._stillborn else Event(self.hired, "ready"))
        return self.hired

    def give(self, worker: Hashable, job: ShardJob) -> None:
        self.queues[worker].append(job)
        self.longest = max(self.longest, len(self.queues[worker]))

    def events(self) -> list[Event]:
        found, self._new_events = list(self._new_events), deque()
        for worker, queue in list(self.queues.items()):
            if queue:
                number = queue.popleft().number
                if self._deadly.get(number, 0):
                    self._deadly[number] -= 1
                    found.append(Event(worker, "died", "signal SIGKILL"))
                    queue.clear()
                else:
                    found.append(Event(worker, "done", {"m": State({"number": np.array([number])}, {"number": "concat"})}))
        return found

    def stop_worker(self, worker: Hashable) -> None:
        del self.queues[worker]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


def jobs(count: int) -> Iterator[ShardJob]:
    for number in range(count):
        annotation = Annotation.of_sentence(f"document {number}", ())
        yield ShardJob(number, [Encoded(f"t{number}", annotation, np.zeros(1, int), np.zeros(1, int), (), (), ())], frozenset())


def done(pool: WorkerPool, count: int) -> list[int]:
    """Compute all shards, and return their sorted numbers."""
    found = []
    for number, states in Dispatch(jobs(count), pool, START):
        assert states["m"]["number"].tolist() == [number], "a shard has the states of another"
        found.append(number)
    return sorted(found)


def test_every_shard_is_computed_once_and_no_worker_has_more_than_two() -> None:
    pool = Scripted(3)
    assert done(pool, 20) == list(range(20))
    assert pool.longest == AHEAD
    assert pool.hired == 3


def test_shards_are_read_only_as_far_as_workers_need_them() -> None:
    """Two shards per worker, and one that is about to be assigned."""
    read, finished = 0, 0

    def counted() -> Iterator[ShardJob]:
        nonlocal read
        for job in jobs(50):
            read += 1
            assert read - finished <= 2 * AHEAD + 1
            yield job

    for _ in Dispatch(counted(), Scripted(2), START):
        finished += 1
    assert finished == 50


def test_shards_of_dead_workers_are_computed_by_others() -> None:
    pool = Scripted(2, deadly={0: TRIES - 1, 7: 1, 19: TRIES - 1})
    assert done(pool, 20) == list(range(20))
    assert pool.hired == 2 + 2 * (TRIES - 1) + 1


def test_shards_that_always_kill_their_worker_are_reported_after_all_others_are_done() -> None:
    pool, found = Scripted(2, deadly={3: 99, 11: 99}), list[int]()
    with pytest.raises(RunError) as error:
        collect_numbers(found, Dispatch(jobs(20), pool, START))
    assert "shard 4 ended its worker 3 times (signal SIGKILL), and so did 1 other shards. It holds document 3" in str(error.value)
    assert "Be gentle" in str(error.value)
    assert sorted(found) == [number for number in range(20) if number not in (3, 11)]


def test_a_bounded_number_of_shards_is_computed_after_one_is_set_aside() -> None:
    found: list[int] = []
    with pytest.raises(RunError, match="shard 1 ended its worker"):
        collect_numbers(found, Dispatch(jobs(5000), Scripted(2, deadly={0: 99}), START))
    assert BEYOND <= len(found) < BEYOND + 20


def collect_numbers(found: list[int], numbered: Iterable[tuple[int, object]]) -> None:
    """Append the numbers of finished shards to a list, which is kept if an error ends the loop."""
    for number, _ in numbered:
        found.append(number)


def test_a_run_ends_if_every_shard_kills_its_worker() -> None:
    pool = Scripted(2, deadly=dict.fromkeys(range(1000), 99))
    with pytest.raises(RunError, match=f"and so did {ASIDE - 1} other shards"):
        done(pool, 1000)


def test_workers_that_never_begin_end_the_run() -> None:
    pool = Scripted(2, stillborn=99)
    with pytest.raises(RunError, match=r"[34] workers in a row died before they could begin \(too young\). Be gentle"):
        done(pool, 5)
    assert done(Scripted(2, stillborn=2), 5) == list(range(5)), "two deaths at the start are not attributed to a shard"


def test_no_worker_is_hired_without_shards() -> None:
    pool = Scripted(2)
    assert done(pool, 0) == []
    assert pool.hired == 0


def test_a_killed_process_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real process, killed after some shards: the bytes of the states are the same."""
    model = save_small(tmp_path / "small")
    settings: dict[str, Any] = {"shard_tokens": 60, "replicates": 5, "gallery": 0, "limit": 24}
    pids: list[Any] = []
    start_worker = processes.ProcessPool.start_worker

    def recorded(pool: processes.ProcessPool, start: WorkerSetup) -> Hashable:
        pid = start_worker(pool, start)
        pids.append(pid)
        return pid

    def kill(share: float | None, texts: int, tokens: int) -> None:
        if len(pids) == 1:
            os.kill(pids[0], signal.SIGKILL)
            time.sleep(0.01)

    monkeypatch.setattr(processes.ProcessPool, "start_worker", recorded)
    run = hs.run(model, "sampler", ["positions"], tmp_path / "run", engine="processes", workers=1, progress=kill, **settings)
    assert len(pids) == 2
    hs.run(model, "sampler", ["positions"], tmp_path / "local", **settings)
    assert run.results.manifest["status"] == "complete"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["failed"] == []
    assert (tmp_path / "run" / "states.safetensors").read_bytes() == (tmp_path / "local" / "states.safetensors").read_bytes()
