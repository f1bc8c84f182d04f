"""A worker: the model, loaded once, and one shard after the other. The same in a process of this machine and on a
cluster.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from headscope.core.state import States
from headscope.encoding.texts import Encoded
from headscope.engine.compute import ShardRunner
from headscope.engine.failures import DeviceError, FaultTolerantRunner
from headscope.engine.generating import GeneratingRunner
from headscope.engine.plan import Plan
from headscope.engine.spec import RunSpec
from headscope.errors import HeadscopeError
from headscope.models import EMBEDDED
from headscope.models.load import load
from headscope.models.maps import maps_of
from headscope.models.model import Model
from headscope.results.signature import versions


class ShardJob(NamedTuple):
    """A shard to be done: its number, its texts, and the measures that are to see them."""

    number: int
    texts: Sequence[Encoded]
    measures: frozenset[str]


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker must know before its first shard, as plain values; `model` and `versions` are what it must turn
    out to have.
    """

    settings: dict[str, Any]
    device: str | None
    threads: int
    model: str
    versions: dict[str, str]

    @classmethod
    def of(cls, spec: RunSpec, device: str | None, threads: int, model: Model) -> WorkerSetup:
        """That of a resolved specification. A folder or a file is named so that it can be found from anywhere."""
        settings = spec.model_dump()
        if spec.model not in EMBEDDED and (path := Path(spec.model).expanduser()).exists():
            settings["model"] = str(path.resolve())
        return cls(settings, device, threads, model.fingerprint, versions())


# What a worker answers: "ready", "done" with states, "error" (problem, remedy) that ends the run, or "broken": it is of
# no more use.
Answer = tuple[str, Any]


class Worker:
    """Loads what it is told to, and answers each shard. No exception leaves it: an answer says what went wrong."""

    def __init__(self) -> None:
        self._run: FaultTolerantRunner | None = None

    def begin(self, start: WorkerSetup) -> Answer:
        """Load the model, and see that it is the one meant."""
        import torch

        torch.set_num_threads(start.threads)
        host = socket.gethostname()
        spec = RunSpec.model_validate(start.settings)
        try:
            runner = runner_for(spec, load(spec.model, start.device, spec.dtype, spec.random, head=spec.predicts))
        except HeadscopeError as error:
            return "error", (f"a worker on {host} cannot begin: {error.problem}", error.remedy)
        if runner.model.fingerprint != start.model:
            found = f"{spec.model} is another model for a worker on {host} ({runner.model.fingerprint}) than here ({start.model})"
            return "error", (found, "Put the same files there, and name them by a path that means the same everywhere")
        self._run = FaultTolerantRunner(runner)
        return "ready", None

    def do(self, texts: Sequence[Encoded], measures: frozenset[str]) -> Answer:
        """The states of a shard."""
        assert self._run is not None, "the worker was given a shard before it began"
        try:
            return "done", self._run(texts, measures)
        except DeviceError as error:
            return "broken", error.problem
        except HeadscopeError as error:
            return "error", (error.problem, error.remedy)


def runner_for(spec: RunSpec, model: Model) -> ShardRunner:
    """A loaded model, ready for the shards of a resolved specification."""
    maps = maps_of(model, spec.map)
    runner = ShardRunner if spec.decoding is None else partial(GeneratingRunner, decoding=spec.decoding)
    return runner(
        model,
        Plan.make(spec.build_measures(), maps.sites, spec.layers),
        maps=maps,
        word_rows=spec.word_rows or "mean",
        replicates=spec.replicates,
        seed=spec.seed,
        batch_tokens=spec.batch_tokens or 2048,
        sliced=spec.by is not None,
    )


def copied(states: States) -> States:
    """The same states in memory of this process's own: what comes from elsewhere may be a view of memory that is let
    go.
    """
    return {name: state.copy() for name, state in states.items()}
