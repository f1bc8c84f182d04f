"""A worker: loads the model once and computes one shard after the other. It is the same in a local process and on a
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
    """A shard to compute: its number, its texts, and the measures to update."""

    number: int
    texts: Sequence[Encoded]
    measures: frozenset[str]


@dataclass(frozen=True)
class WorkerSetup:
    """The settings of a worker, as plain values. `model` and `versions` are the fingerprint and versions that it must
    have.
    """

    settings: dict[str, Any]
    device: str | None
    threads: int
    model: str
    versions: dict[str, str]

    @classmethod
    def of(cls, spec: RunSpec, device: str | None, threads: int, model: Model) -> WorkerSetup:
        """The setup for a resolved specification. Folders and files get absolute paths."""
        settings = spec.model_dump()
        if spec.model not in EMBEDDED and (path := Path(spec.model).expanduser()).exists():
            settings["model"] = str(path.resolve())
        return cls(settings, device, threads, model.fingerprint, versions())


# What a worker answers: "ready", "done" with states, "error" (problem, remedy), which ends the run, or "broken" if the
# worker can no longer be used.
Answer = tuple[str, Any]


class Worker:
    """Loads the model, and answers each shard. It raises no exception: an answer reports what went wrong."""

    def __init__(self) -> None:
        self._run: FaultTolerantRunner | None = None

    def begin(self, start: WorkerSetup) -> Answer:
        """Load the model, and check its fingerprint."""
        import torch

        torch.set_num_threads(start.threads)
        host = socket.gethostname()
        spec = RunSpec.model_validate(start.settings)
        try:
            runner = runner_for(spec, load(spec.model, start.device, spec.dtype, spec.random, head=spec.predicts))
        except HeadscopeError as error:
            return "error", (f"a worker on {host} cannot start: {error.problem}", error.remedy)
        if runner.model.fingerprint != start.model:
            found = f"{spec.model} is another model for a worker on {host} ({runner.model.fingerprint}) than here ({start.model})"
            return "error", (found, "Put the same files there, and name them by a path that is valid on all machines")
        self._run = FaultTolerantRunner(runner)
        return "ready", None

    def do(self, texts: Sequence[Encoded], measures: frozenset[str]) -> Answer:
        """The states of a shard."""
        assert self._run is not None, "the worker received a shard before it was ready"
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
    """A copy of the states in this process's memory: received states may be views of memory that is freed later."""
    return {name: state.copy() for name, state in states.items()}
