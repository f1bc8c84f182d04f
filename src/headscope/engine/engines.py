"""Engines, which compute numbered states from numbered shards, in any order: in this process, in several, or on a
cluster.

`local` is here; `processes` and `ray` are pools of workers (engine/pool.py), which differ only in where their workers
run (engine/processes.py, engine/ray_workers.py).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING, Literal, get_args

from headscope.core.profile import is_profiling
from headscope.core.state import States
from headscope.core.suggest import choose_from
from headscope.engine.compute import ShardRunner
from headscope.engine.failures import FaultTolerantRunner
from headscope.engine.overlap import ahead
from headscope.engine.pool import WorkerPool
from headscope.engine.worker import ShardJob, runner_for
from headscope.errors import RunError

if TYPE_CHECKING:
    import torch

Done = tuple[int, States]
Engine = Literal["local", "processes", "ray"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
__all__ = ["ENGINES", "Done", "Engine", "ShardJob", "local", "pool_for", "runner_for"]


def local(work: Iterable[ShardJob], runner: ShardRunner) -> Generator[Done]:
    """Compute the shards one after the other, in this process. While a GPU works on one, threads read the next and
    store the results of the last.
    """
    if not _overlaps(runner.model.device):
        yield from _computed(work, runner)
        return
    unpacked = (job._replace(texts=list(job.texts)) for job in work)
    with closing(ahead(unpacked)) as jobs, closing(ahead(_computed(jobs, runner))) as done:
        yield from done


def _overlaps(device: torch.device) -> bool:
    """Whether threads help: the cores of a CPU are busy, and a profile adds up the parts of one thread."""
    return device.type != "cpu" and not is_profiling()


def _computed(work: Iterable[ShardJob], runner: ShardRunner) -> Iterator[Done]:
    careful = FaultTolerantRunner(runner)
    for job in work:
        yield job.number, careful(job.texts, job.measures)


def pool_for(
    engine: Engine, workers: int, device: str | None = None, address: str | None = None, gpus: float | None = None
) -> AbstractContextManager[WorkerPool | None]:
    """The workers of an engine for the duration of the context; None for `local`, which needs none."""
    if engine not in ENGINES:
        raise RunError(f"engine {engine!r} is unknown", choose_from(engine, ENGINES))
    if engine != "ray" and (address is not None or gpus is not None):
        given = "--address" if address is not None else "--gpus-per-worker"
        raise RunError(f"{given} does not apply to the {engine} engine", "Use it with --engine ray, or omit it")
    if engine == "local":
        return nullcontext()
    if device == "auto":
        raise RunError(f"device auto does not apply to the {engine} engine, whose workers have one device each", "Use cpu or cuda")
    if workers < 1:
        raise RunError(f"the {engine} engine cannot start with {workers} workers", "Use one worker or more")
    if engine == "processes":
        from headscope.engine.processes import ProcessPool

        return ProcessPool(workers, device)
    from headscope.engine.ray_workers import RayPool

    return RayPool(workers, device, address, gpus)
