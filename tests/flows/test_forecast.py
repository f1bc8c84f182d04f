"""Forecasts of the work per text, progress within a text, and flow between pairs of words only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

from headscope.corpora import read
from headscope.models.capture import implementation
from headscope.models.jacobian import closed, products
from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.blocks import read as read_block
from headscope.models.jacobian.costs import BlockCosts
from headscope.models.jacobian.layers import record
from headscope.models.jacobian.norms import NormReading
from headscope.models.jacobian.products import Pairs
from headscope.models.model import Model
from headscope.studies.execute import execute
from headscope.studies.flow.influence import text_flow
from headscope.studies.flow.jobs import FlowCosts, FlowText, Jobs
from headscope.studies.registry import REGISTRY
from helpers.architectures import build
from helpers.jacobians import text, wrap
from helpers.plain_texts import encoded, sentence


def test_default_limits_are_lower_if_g_star_is_measured() -> None:
    assert (REGISTRY["flow"].make({}).limit, REGISTRY["flow"].make({}).items) == (16, 16)
    assert REGISTRY["flow"].make({"limit": 500}).limit == 500
    assert REGISTRY["flow"].make({"limit": None}).limit is None
    assert REGISTRY["flow"].make({"measures": ["A", "G"]}).limit == REGISTRY["flow"].make({"measures": "A"}).items == 500
    assert REGISTRY["flow"].make({"preset": "reference"}).limit == 500
    assert "limit" not in REGISTRY["flow"].make({}).shown()
    assert REGISTRY["flow"].make({"limit": 500}).shown()["limit"] == "500"


def test_costs_of_a_text_are_as_worked_out_by_hand() -> None:
    """A sentence of eight tokens, and blocks of BERT's shape with d = 12 features. G has 7d³ multiplications per target
    and 3d² per pair. G* has 5d² + 4d·8 per row and token, with 32 rows per source.
    """
    text = FlowText(encoded(sentence("NOUN " * 6, [0, 1, 1, 1, 1, 1])), ("trees",))
    bert = FlowCosts(layers=3, weights=1000.0, block=BlockCosts(size=12, inner=12, shared=1, wide=48, maps=2), causal=False)
    exact = REGISTRY["flow"].make({"measures": ["A", "G"]})
    assert bert.by_measure(text, exact) == {"": 16000, "G": 8 * 7 * 12**3 + 64 * 3 * 12**2}
    row = 5 * 12**2 + 4 * 12 * 8
    assert bert.by_measure(text, REGISTRY["flow"].make({}))["G*"] == 32 * 8 * 8 * row  # G has already made the matrices of each token
    alone = REGISTRY["flow"].make({"measures": ["G*"]})
    assert bert.by_measure(text, alone)["G*"] == 32 * 8 * 8 * row + 8 * 5 * 12**3
    decoder = replace(bert, causal=True)
    assert decoder.by_measure(text, REGISTRY["flow"].make({}))["G*"] == 32 * 36 * row  # half of the pairs and the diagonal
    unknown = replace(bert, block=None)
    assert unknown.by_measure(text, alone)["G*"] == 32 * 8 * 8 * 3 * 1000
    assert bert.by_measure(text, REGISTRY["flow"].make({"measures": ["G"], "norm": "sum"}))["G"] == 8 * 4 * 1000


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_forecast_costs_agree_with_the_operations_that_torch_counts(name: str) -> None:
    """The forecast is within a factor of 1.5 of the operations that torch counts: for short and long texts, for G, G*
    or both, and for all pairs or for one source and two targets.
    """
    sizes = {"hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 128}
    model = wrap(build(name, **sizes, **({"num_key_value_heads": 2} if name == "llama" else {})).double())
    costs = FlowCosts.of(model)
    for words, measures, pairs in product((4, 30), (["G"], ["G*"], ["G", "G*"]), (None, Pairs([2], [4, 5]))):
        request: Any = SimpleNamespace(text=encoded(sentence("NOUN " * words)), pairs=lambda pairs=pairs: pairs)
        expected = costs.by_measure(request, REGISTRY["flow"].make({"measures": measures, "probes": 32}))
        ratio = counted(model, words + 2, measures, pairs) / (2 * costs.layers * (sum(expected.values()) - expected[""]))
        assert 2 / 3 < ratio < 1.5, (words, measures, pairs, ratio)


def counted(model: Model, tokens: int, measures: Sequence[str], pairs: Pairs | None) -> int:
    """The operations on all layers that torch counts: two for a multiplication and an addition."""
    with implementation(model.network, "eager"):
        layers = record(model.network, model.sites, text(model, tokens, tokens))
    blocks = [read_block(layer, site.heads) for layer, site in zip(layers, model.sites, strict=True)]

    def g(number: int) -> None:
        block = blocks[number]
        assert isinstance(block, Block)
        closed.sizes(block, "frobenius", pairs and pairs.targets)

    with FlopCounterMode(display=False) as counter:
        if "G*" in measures:
            products.forwards(
                layers, NormReading.make("frobenius", layers[0].states, 32), blocks, pairs, beside=g if "G" in measures else None
            )
        else:
            for number in range(len(blocks)):
                g(number)
    found: int = counter.get_total_flops()
    return found


def test_progress_within_a_text_is_reported_after_every_layer(mini: Model) -> None:
    """The shares of G and of G* grow by one twelfth per layer. The numbers are the same as without reports."""
    spec = REGISTRY["flow"].make({"measures": ["A", "G", "G*"], "probes": 2})
    text = encoded(sentence("NOUN " * 4, [0, 1, 1, 1]))
    reports: list[tuple[str, float]] = []
    reported = text_flow(mini, text, spec, progress=lambda measure, share: reports.append((measure, share)))
    shares = [(layer + 1) / 12 for layer in range(12)]
    assert reports == [(measure, share) for share in shares for measure in ("G", "G*")]
    for name, values in text_flow(mini, text, spec).values.items():
        np.testing.assert_array_equal(reported.values[name], values)


def test_progress_of_a_study_is_reported_within_a_text(mini: Model) -> None:
    """A study of one text reports a growing share after each of the twelve layers of G."""
    shares: list[float] = []
    settings = {"parts": ["trees"], "measures": ["G"], "limit": 1, "replicates": 10}
    execute("flow", settings, model=mini, progress=lambda share, texts, tokens: shares.append(share or 0.0))
    assert shares == sorted(shares)
    assert len({share for share in shares if 0 < share < 1}) >= 11


def test_flow_between_pairs_of_words_equals_that_of_the_whole_text(mini: Model) -> None:
    """The flow from the noun to the pronoun is the same as in the flow between all tokens."""
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
