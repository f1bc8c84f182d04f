"""Shared fixtures of the tests of probes."""

from __future__ import annotations

import pytest

import headscope as hs
from headscope.models.model import Model
from helpers.edge_probes import QUICK, short_training
from helpers.predicting import loaded


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def bert_or_gpt2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A small random model that predicts words: BERT, then GPT-2."""
    return loaded(tmp_path_factory.mktemp("models"), request.param)


@pytest.fixture(scope="session")
def mini_on_cpu() -> object:
    """The embedded model on the CPU, even on a machine with a GPU."""
    return hs.load("mini", device="cpu")


@pytest.fixture(scope="session")
def edge_study(mini_on_cpu: object, tmp_path_factory: pytest.TempPathFactory) -> hs.StudyResult:
    """A study of two tasks with edge probes that are trained only briefly."""
    out = tmp_path_factory.mktemp("edge") / "study"
    with short_training():
        return hs.probe_edge(mini_on_cpu, "sampler", None, out, tasks=["pos", "coref"], single=True, **QUICK)
