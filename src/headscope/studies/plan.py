"""An estimate of a study: its corpora are read, and some of its work is done and timed. No folder is written."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from headscope.core.timing import TimeLeft, spelled
from headscope.core.wording import number_of
from headscope.engine.checkpoint import Ledger
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.base import Study, Work
from headscope.studies.execute import do_jobs, open_work
from headscope.studies.spec import StudySpec

TRIED = 15.0  # seconds of work that are timed
STEPS = 3  # reports of progress that must be seen, the first for warming up


@dataclass(frozen=True)
class StudyEstimate:
    """What a study would read, and what it would cost: seconds, and bytes of memory as far as it was tried."""

    study: str
    counts: Counts
    jobs: int | None  # None: not known before they are done
    reading: float  # seconds to load the model, and to read and encode the texts
    tried: float  # seconds of work
    share: float  # of all work that was done in them
    left: float | None  # seconds of work after that; None if not enough was tried
    complete: bool  # whether all jobs were done, and tables made
    weights: int
    memory: int  # largest memory of the process, or of the GPU
    place: str  # where that memory is
    at_most: bool  # whether training may stop early

    @property
    def seconds(self) -> float | None:
        """How long the study would take."""
        return None if self.left is None else self.reading + self.tried + self.left

    def lines(self) -> list[str]:
        """The estimate in words, line by line."""
        counts, jobs = self.counts, "" if self.jobs is None else f", {self.jobs:,} job{'s' * (self.jobs != 1)}"
        texts = ", ".join(number_of(getattr(counts, f"{name}s"), name) for name in ("document", "text", "token", "word"))
        lines = [f"{self.study}: {texts}{jobs}"]
        lines += [f"{label}: {line}" for label, line in counts.dropped.labelled()]
        lines.append(f"memory: {_size(self.memory)} {self.place} so far, {_size(self.weights)} of it weights")
        lines.append(f"loading, reading and encoding: {spelled(self.reading)}")
        lines.append(f"tried: {self.share:.1%} of the work in {spelled(self.tried)}, then stopped")
        if self.complete:
            lines[-1] = f"tried: all of the work, in {spelled(self.tried)}"
        if self.seconds is None:
            return [*lines, "the time for the rest cannot be estimated"]
        stops = ", less if probes stop early" if self.at_most and not self.complete else ""
        return [*lines, f"expected: {spelled(self.seconds)} in all{stops}"]


class _Enough(Exception):
    """Raised to end the trial."""


def plan_study(
    study: Study | str,
    settings: StudySpec | Mapping[str, Any],
    *,
    model: Model | ModelInMemory | None = None,
    device: str | None = None,
    tried: float = TRIED,
    clock: Callable[[], float] = time.monotonic,
    **corpora_and_options: Any,
) -> StudyEstimate:
    """Read the corpora as the study would, work on it for about `tried` seconds, and estimate the rest from that.

    The work is not kept. A study that takes less time is done completely.
    """
    began = clock()
    left = TimeLeft(clock)

    def watch(share: float | None, texts: int, tokens: int) -> None:
        left.add(share or 0.0)
        if left.elapsed >= tried and left.steps >= STEPS:
            raise _Enough

    study, work = open_work(study, settings, model, device, corpora_and_options, {"progress": watch})
    work.prepare()
    reading = clock() - began
    costs = work.costs()
    began, complete = clock(), False
    try:
        work.tables(do_jobs(work, Ledger(None, "")))
        complete = True
    except _Enough:
        pass
    finally:
        work.close()
    memory, place = _memory(work)
    return StudyEstimate(
        study.verb,
        work.counts,
        None if costs is None else len(costs),
        reading,
        clock() - began,
        1.0 if complete else left.share,
        0.0 if complete else left.seconds,
        complete,
        sum(weight.numel() * weight.element_size() for weight in (work.model.whole or work.model.network).parameters()),
        memory,
        place,
        study.stops_early,
    )


def _memory(work: Work) -> tuple[int, str]:
    """The largest memory so far, in bytes, and where it is."""
    if work.model.device.type == "cuda":
        return torch.cuda.max_memory_allocated(work.model.device), "of the GPU"
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "with all libraries"


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
