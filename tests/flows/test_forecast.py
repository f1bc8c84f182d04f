"""How much work a text is, and that pairs of words take only what is asked of them."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.corpora import read
from headscope.models.model import Model
from headscope.studies.execute import execute
from headscope.studies.flow.influence import text_flow
from headscope.studies.flow.jobs import FlowText, Jobs, work
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


def test_the_work_of_a_text() -> None:
    """A sentence of eight tokens: two passes, and of 288 features sixty for each token whose Jacobian is worked out."""
    text = FlowText(encoded(sentence("NOUN " * 6, [0, 1, 1, 1, 1, 1])), ("trees",))
    exact = REGISTRY["flow"].make({"measures": ["A", "G"]})
    assert work(text, exact, 288) == {"": 2 * 8, "G": pytest.approx(60 * 8)}
    assert work(text, exact, 576)["G"] == pytest.approx(120 * 8)  # d³ a target, against d² a pass
    sketched = work(text, REGISTRY["flow"].make({}), 288)
    # 256 rows: O and P of each token, which G has made already, and 0.2 passes a row and token
    assert sketched["G*"] == pytest.approx(8 * 0.2 * 256)
    assert work(text, REGISTRY["flow"].make({"measures": ["G*"]}), 288)["G*"] == pytest.approx(8 * (42 + 0.2 * 256))
    few = REGISTRY["flow"].make({"measures": ["G*"], "probes": 2})  # too few rows for O and P
    assert work(text, few, 288)["G*"] == pytest.approx(8 * 16 * 0.6)


def test_a_text_reports_every_layer(mini: Model) -> None:
    """The shares of a measure grow by one twelfth a layer, G beside G*; the numbers are those without reports."""
    spec = REGISTRY["flow"].make({"measures": ["A", "G", "G*"], "probes": 2})
    text = encoded(sentence("NOUN " * 4, [0, 1, 1, 1]))
    heard: list[tuple[str, float]] = []
    told = text_flow(mini, text, spec, tell=lambda measure, share: heard.append((measure, share)))
    shares = [(layer + 1) / 12 for layer in range(12)]
    assert heard == [(measure, share) for share in shares for measure in ("G", "G*")]
    for name, values in text_flow(mini, text, spec).values.items():
        np.testing.assert_array_equal(told.values[name], values)


def test_a_study_reports_within_a_text(mini: Model) -> None:
    """One text of a study gives a growing share after each of the twelve layers of G."""
    shares: list[float] = []
    settings = {"parts": ["trees"], "measures": ["G"], "limit": 1, "replicates": 10}
    execute("flow", settings, model=mini, progress=lambda share, texts, tokens: shares.append(share or 0.0))
    assert shares == sorted(shares)
    assert len({share for share in shares if 0 < share < 1}) >= 11


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
