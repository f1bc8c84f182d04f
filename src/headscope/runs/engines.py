"""Who does the work: this process, or several. Engines turn numbered shards into numbered states, in any order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Literal

from headscope.core.state import States
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.runs.plan import Plan
from headscope.runs.shard import ShardRunner
from headscope.runs.spec import RunSpec

Work = tuple[int, list[Encoded], frozenset[str]]  # number, texts, and the measures that are to see them
Done = tuple[int, States]
Engine = Literal["local", "processes"]


def runner_for(spec: RunSpec, model: Model) -> ShardRunner:
    """A loaded model, ready for the shards of a resolved specification."""
    return ShardRunner(
        model,
        Plan.make(spec.build_measures(), model.sites, spec.layers),
        word_rows=spec.word_rows or "mean",
        replicates=spec.replicates,
        seed=spec.seed,
        batch_tokens=spec.batch_tokens or 2048,
    )


def local(work: Iterator[Work], runner: ShardRunner) -> Iterator[Done]:
    """One shard after the other, here."""
    for number, texts, names in work:
        yield number, runner(texts, names)


def processes(work: Iterator[Work], spec: RunSpec, device: str | None, workers: int) -> Iterator[Done]:
    """Several processes, each with its own copy of the model. Never more than two shards a worker are under way."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (spec.model_dump(), device, threads)) as pool:
        waiting: dict[Future[States], int] = {}
        try:
            for number, texts, names in work:
                with _uninterrupted():
                    waiting[pool.submit(_work, texts, names)] = number
                if len(waiting) >= 2 * workers:
                    yield from _finished(waiting)
            while waiting:
                yield from _finished(waiting)
        except BrokenProcessPool:
            raise RunError(
                "a worker process died",
                "If memory ran out, use fewer --workers or a smaller --batch-tokens, and go on with --resume; "
                "a script must start its run under `if __name__ == '__main__':`",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C, since they inherit what is blocked; the one that starts them hears it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _finished(waiting: dict[Future[States], int]) -> Iterator[Done]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in sorted(done, key=waiting.__getitem__):
        yield waiting.pop(future), future.result()


_runner: ShardRunner | None = None


def _begin(settings: dict[str, object], device: str | None, threads: int) -> None:
    """Runs once in each worker."""
    global _runner
    import torch

    parent = multiprocessing.parent_process()
    if parent is not None:
        # A worker whose parent was killed would wait for work for ever.
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)
    spec = RunSpec.model_validate(settings)
    _runner = runner_for(spec, load(spec.model, device, spec.dtype, spec.random, head=spec.differentiates))


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _work(texts: list[Encoded], names: frozenset[str]) -> States:
    assert _runner is not None, "the worker was not started by `processes`"
    return _runner(texts, names)
