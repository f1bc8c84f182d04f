"""How long a study takes is told before it does, and pairs of words take only what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from headscope.corpora import read
from headscope.models.model import Model
from headscope.studies.flow import forecast
from headscope.studies.flow.forecast import Clock, work
from headscope.studies.flow.influence import text_flow
from headscope.studies.flow.jobs import FlowText, Jobs
from headscope.studies.registry import REGISTRY
from helpers.plain_texts import encoded, sentence


def test_few_texts_by_default_where_g_star_is_measured() -> None:
    assert (REGISTRY["flow"].make({}).limit, REGISTRY["flow"].make({}).items) == (16, 16)
    assert REGISTRY["flow"].make({"limit": 500}).limit == 500
    assert REGISTRY["flow"].make({"limit": None}).limit is None
    assert REGISTRY["flow"].make({"measures": ["A", "G"]}).limit == REGISTRY["flow"].make({"measures": "A"}).items == 500
    assert REGISTRY["flow"].make({"preset": "reference"}).limit == 500
    assert "limit" not in REGISTRY["flow"].make({}).shown()
    assert REGISTRY["flow"].make({"limit": 500}).shown()["limit"] == "500"


def test_an_estimate_by_the_second_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve sentences of eight tokens: the second took 3 s, so that ten more take 30 s."""
    ticks: Iterator[float] = iter([100.0, 109.0, 112.0, 115.0])
    monkeypatch.setattr("headscope.studies.flow.forecast.time.monotonic", lambda: next(ticks))
    spec = REGISTRY["flow"].make({"measures": ["A", "G"]})
    jobs = [FlowText(encoded(sentence("NOUN " * 6, [0, 1, 1, 1, 1, 1])), ("trees",)) for _ in range(12)]
    assert work(jobs[0], spec) == 2 * 8 + 60 * 8
    said: list[str] = []
    clock = Clock(jobs, spec, said.append)
    for job in jobs[:3]:
        clock.tick(job)
    assert said == ["about 30 s for 10 more texts. What is done is kept: --resume goes on with it"]
    assert clock.share == pytest.approx(0.25)
    assert (clock.texts, clock.tokens) == (3, 24)
    star = REGISTRY["flow"].make({})
    assert work(jobs[0], star) > work(jobs[0], spec)
    assert "--measures A,G or --norm sum is faster" in forecast.sentence(4000, 60, star)
    assert "about 67 min for 60 more texts" in forecast.sentence(4000, 60, star)


def test_pairs_of_words_have_the_numbers_of_whole_texts(mini: Model) -> None:
    """From the noun to the pronoun, flow is what it is between all tokens."""
    spec = REGISTRY["flow"].make({"parts": ["coreference"], "measures": ["G", "G*"], "probes": 2, "items": 2, "context": 16})
    job = next(iter(Jobs(read("sampler"), mini, spec.resolved({"mentions"}))))
    pairs = job.pairs()
    assert pairs is not None
    assert len(pairs.sources) + len(pairs.targets) < len(job.text) / 2
    some, whole = text_flow(mini, job.text, spec, pairs), text_flow(mini, job.text, spec)
    for name in ("G", "G*"):
        places = np.ix_(range(12), pairs.sources, pairs.targets)
        np.testing.assert_allclose(some.values[name][places], whole.values[name][places], rtol=1e-4)
        assert (some.values[name][places] > 0).all()
