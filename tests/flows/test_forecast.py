"""How much work a text is, and that pairs of words take only what is asked of them."""

from __future__ import annotations

import numpy as np

from headscope.corpora import read
from headscope.models.model import Model
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
    """A sentence of eight tokens: two passes, and sixty for each token whose Jacobian is worked out."""
    text = FlowText(encoded(sentence("NOUN " * 6, [0, 1, 1, 1, 1, 1])), ("trees",))
    exact = REGISTRY["flow"].make({"measures": ["A", "G"]})
    assert work(text, exact) == 2 * 8 + 60 * 8
    assert work(text, REGISTRY["flow"].make({})) > work(text, exact)


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
