"""Estimates of the time and memory of a study, with a simulated clock and with fixed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.state import States
from headscope.results.counts import Counts
from headscope.results.results import Results
from headscope.studies.base import Study
from headscope.studies.execute import execute
from headscope.studies.plan import StudyEstimate, plan_study
from headscope.studies.registry import REGISTRY
from helpers.small import SmallStudies
from helpers.toy import ToyWork

WHOLE = StudyEstimate("toy", Counts(), 4, 5.0, 12.0, 0.25, 36.0, False, 40_000_000, 1_500_000_000, "with all libraries", True)


def _linear(given: Sequence[int], weight: Sequence[int], *_: object, **__: object) -> int:
    return 2 * prod(given) * weight[0]


def _matmul(one: Sequence[int], other: Sequence[int], *_: object, **__: object) -> int:
    return 2 * prod(one) * other[-1]


# Without gradients torch does not decompose these before it counts operations.
WHOLE_PRODUCTS: dict[Any, Any] = {torch.ops.aten.linear: _linear, torch.ops.aten.matmul: _matmul}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(toy: Study, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock by which the first job of the toy study takes ten seconds, and each other job two."""
    clock, do = Clock(), ToyWork.do

    def slow(work: ToyWork, job: list[object]) -> States:
        clock.now += 2.0 if clock.now else 10.0
        return do(work, job)  # type: ignore[arg-type]

    monkeypatch.setattr(ToyWork, "do", slow)
    return clock


def test_a_stopped_trial_is_extrapolated_without_the_first_job(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of 19 documents take 28 s. The first is slow and not counted: the remaining nine take 18 s."""
    monkeypatch.setattr(ToyWork, "costs", lambda work: [1.0] * 19, raising=False)
    estimate = plan_study("toy", {"replicates": 10}, tried=28.0, clock=clock)
    assert (estimate.jobs, estimate.complete, estimate.tried) == (19, False, 28.0)
    assert estimate.share == pytest.approx(10 / 19)
    assert estimate.left == pytest.approx(18.0)
    assert estimate.seconds == pytest.approx(46.0)


def test_a_study_that_ends_within_the_trial_is_complete(clock: Clock) -> None:
    estimate = plan_study("toy", {"replicates": 10}, tried=1e6, clock=clock)
    assert (estimate.complete, estimate.jobs, estimate.share, estimate.seconds) == (True, None, 1.0, 46.0)
    assert estimate.counts.documents == 19


def test_an_estimate_is_printed_line_by_line() -> None:
    assert WHOLE.seconds == 53.0
    assert WHOLE.lines() == [
        "toy: 0 documents, 0 texts, 0 tokens, 0 words, 4 jobs",
        "memory: 1.5 GB with all libraries so far, 40 MB of it weights",
        "loading, reading and encoding: 5 s",
        "tried: 25.0% of the work in 12 s, then stopped",
        "expected: 53 s in all, less if probes stop early",
    ]


def test_a_complete_trial_has_the_jobs_of_the_study_and_no_files(
    study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all work is tried, jobs and texts are those of the finished study, and no file is written."""
    monkeypatch.chdir(small.material)
    before = {*small.material.iterdir()}
    estimate = plan_study(study, small.settings(study.name), tried=1e6)
    assert estimate.complete
    done = Results.open(small.folder(study.name)).manifest["counts"]
    assert estimate.jobs in (None, done["shards"])
    assert estimate.counts.texts == done["texts"]
    assert {*small.material.iterdir()} == before


@pytest.mark.parametrize("name", ["ablation", "structural_probe", "edge_probe"])
def test_shares_of_work_follow_the_operations_that_torch_counts(name: str, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a tenth of the work on, the estimate of the remaining time is within a factor of two if all products are
    equally fast.
    """
    monkeypatch.chdir(small.material)
    seen: dict[int, float] = {}  # the last share that is reported, by the number of operations
    with FlopCounterMode(display=False, custom_mapping=WHOLE_PRODUCTS) as counter:
        execute(name, small.settings(name), progress=lambda share, *_: seen.update({counter.get_total_flops(): share}))
    first, last = min(seen), max(seen)
    shares = [(share, (count - first) / (last - first)) for count, share in seen.items() if 0.1 <= share < 0.9]
    assert len(shares) >= 3
    assert not [pair for pair in shares if not 0.5 < (1 / pair[0] - 1) / (1 / pair[1] - 1) < 2]


def test_every_command_prints_a_plan_and_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headscope.studies.plan.plan_study", lambda study, spec, device: WHOLE)
    for study in REGISTRY.values():
        given = ["mini", "mini"] if study.arguments else []
        result = CliRunner().invoke(app, [*study.verb.split(), *given, "--plan"])
        assert result.output.splitlines() == WHOLE.lines(), study.verb
    assert CliRunner().invoke(app, ["importance", "--plan"]).output.splitlines() == WHOLE.lines()
    assert not [*tmp_path.iterdir()]
