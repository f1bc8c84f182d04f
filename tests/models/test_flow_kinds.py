"""Rollout, maximum flow and value norms, compared with plain implementations by paths, augmenting paths and loops."""

from __future__ import annotations

from collections import deque
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch

from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoder
from headscope.errors import MeasureError
from headscope.kernels import kernel
from headscope.models.jacobian import values
from headscope.models.jacobian.choices import ALL_KINDS, KINDS
from headscope.models.jacobian.flow import flow
from headscope.models.jacobian.rollout import edges, maxflow, rollout
from headscope.models.jacobian.values import value_norms
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import ALL, build
from helpers.value_maps import plain_norms, text, tiny

SEVERAL = ["bert", "roberta", "distilbert", "gpt2", "llama", "t5", "bart"]


def paths(attention: np.ndarray) -> np.ndarray:
    """Rollout, computed as a sum over all paths from a target down to an input token."""
    layers, size, _ = attention.shape
    found = np.zeros_like(attention)
    for layer in range(layers):
        for path in product(range(size), repeat=layer + 2):  # from the input up
            share = 1.0
            for step, (below, above) in enumerate(pairwise(path)):
                share *= 0.5 * attention[step, below, above] + 0.5 * (below == above)
            found[layer, path[0], path[-1]] += share
    return found


def edmonds_karp(capacity: dict[Any, dict[Any, float]], source: Any, sink: Any) -> float:
    """Return the maximum flow, computed with shortest augmenting paths."""
    capacity = {node: dict(after) for node, after in capacity.items()}
    total = 0.0
    while True:
        parent, queue = {source: source}, deque([source])
        while queue and sink not in parent:
            node = queue.popleft()
            for after, left in capacity.get(node, {}).items():
                if left > 1e-15 and after not in parent:
                    parent[after] = node
                    queue.append(after)
        if sink not in parent:
            return total
        path = [sink]
        while path[-1] != source:
            path.append(parent[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        least = min(capacity[one][other] for one, other in steps)
        for one, other in steps:
            capacity[one][other] -= least
            capacity.setdefault(other, {})[one] = capacity.get(other, {}).get(one, 0.0) + least
        total += least


def flows(attention: np.ndarray) -> np.ndarray:
    """Maximum flows, computed pair by pair. Nodes are (layer, token)."""
    capacity: dict[Any, dict[Any, float]] = {}
    for layer, below, above in np.ndindex(attention.shape):
        capacity.setdefault((layer + 1, above), {})[layer, below] = 0.5 * attention[layer, below, above] + 0.5 * (below == above)
    found = np.zeros_like(attention)
    for layer, below, above in np.ndindex(attention.shape):
        found[layer, below, above] = edmonds_karp(capacity, (layer + 1, above), (0, below))
    return found


def attention(layers: int, size: int, seed: int, sharp: float) -> np.ndarray:
    """Random attention [layer, source, target], peaked if `sharp` is large."""
    logits = np.random.default_rng(seed).normal(size=(layers, size, size)) * sharp
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(1, keepdims=True))


def test_rollout_and_maximum_flow_equal_values_worked_by_hand() -> None:
    # Two layers of two tokens. Layer 1: token 0 attends to itself, token 1 to token 0. Layer 2: both attend to token 1.
    #   Â1 = [[1, 0], [.5, .5]],  Â2 = [[.5, .5], [0, 1]]  (rows: targets, columns: sources)
    maps = torch.tensor([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(rollout(maps)[1], [[0.5 * 1 + 0.5 * 0.5, 0.5], [0.5 * 0.5, 0.5]])
    # Target 0: .5 goes to token 0 below, and .5 to token 1, which can pass all of it on to 0 or to 1. Target 1: 1 goes
    # to token 1 below, then .5 to each token.
    np.testing.assert_array_equal(maxflow(maps, 2)[1], [[0.5 + 0.5, 0.5], [0.5, 0.5]])
    # Three layers. In the first two, each token attends only to itself; in the last, token 0 also attends to token 1.
    identity = torch.eye(2).double()
    mixing = torch.tensor([[0.2, 0.0], [0.8, 1.0]], dtype=torch.float64)
    np.testing.assert_allclose(maxflow(torch.stack([identity, identity, mixing]), 2)[2], [[0.6, 0.0], [0.4, 1.0]], rtol=1e-15)


def test_value_norms_equal_values_worked_by_hand() -> None:
    # Two heads, two features. The vectors of token 0 are (3, 0) in head 0 and (0, 4) in head 1; those of token 1 are
    # (1, 0) and (−1, 0).
    vectors = torch.tensor([[[3.0, 0.0], [1.0, 0.0]], [[0.0, 4.0], [-1.0, 0.0]]]).double()
    weights = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]]).double()  # [head, target, source]
    np.testing.assert_allclose(values.together(weights, vectors), [[5.0, 2.5], [0.0, 0.0]], atol=1e-15)  # the two vectors of token 1 cancel
    np.testing.assert_allclose(values.by_head(weights, vectors), [[[3.0, 1.5], [0.0, 0.5]], [[4.0, 2.0], [0.0, 0.5]]])


@pytest.mark.parametrize(("layers", "size"), [(1, 1), (1, 4), (2, 5), (3, 1), (4, 3), (5, 4)])
@pytest.mark.parametrize("sharp", [0.5, 4])
def test_rollout_and_maximum_flow_of_random_attention_equal_the_plain_ones(layers: int, size: int, sharp: float) -> None:
    maps = attention(layers, size, 7 * layers + size, sharp)
    shares = rollout(torch.from_numpy(maps)).numpy()
    np.testing.assert_allclose(shares, paths(maps), rtol=1e-12)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-12)
    most = maxflow(torch.from_numpy(maps), size).numpy()
    np.testing.assert_allclose(most, flows(maps), rtol=1e-10, atol=1e-12)
    assert (most >= shares - 1e-12).all(), "the product along a path is at most its smallest weight"
    assert (most <= 1 + 1e-12).all()
    np.testing.assert_allclose(most[0], edges(torch.from_numpy(maps))[0].T, rtol=1e-12)


def test_maximum_flows_with_reversed_paths_equal_the_plain_ones() -> None:
    # Each target attends to few sources, so that the first augmenting paths block others and must be reversed.
    rng = np.random.default_rng(0)
    for _ in range(12):
        maps = (rng.random((5, 6, 6)) < 0.3) * rng.integers(1, 9, (5, 6, 6)) + np.eye(6) * 1e-3
        maps = maps / maps.sum(1, keepdims=True)
        np.testing.assert_allclose(maxflow(torch.from_numpy(maps), 6), flows(maps), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [*SEVERAL, "mpnet", "deberta-v2"])
def test_all_kinds_of_flow_equal_the_plain_ones_on_several_architectures(name: str) -> None:
    model = tiny(name)
    inputs = text(model)
    found = flow(model, inputs, ("A", "rollout", "maxflow", "norms"))
    assert list(found.values) == ["A", "rollout", "maxflow", "norms"]
    assert set(found.method.values()) == {"exact"}
    assert {matrix.dtype for matrix in found.values.values()} == {np.dtype(np.float64)}
    np.testing.assert_allclose(found.values["rollout"], paths(found.values["A"]), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found.values["rollout"].sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(found.values["maxflow"], flows(found.values["A"]), rtol=1e-7, atol=1e-12)
    expected = plain_norms(model, name, inputs)
    tolerance = 1e-5 if name in ("llama", "t5") else 1e-9  # these normalise or attend in float32 even if their weights are float64
    np.testing.assert_allclose(found.values["norms"], expected[:, -1], rtol=tolerance, atol=tolerance)
    heads = values.each(model, inputs, values.by_head)
    np.testing.assert_allclose(heads, expected[:, :-1], rtol=tolerance, atol=tolerance)
    if name in ("gpt2", "llama"):
        assert not any(np.tril(matrix, -1).any() for matrix in found.values.values()), "a later token has no influence on an earlier one"


@pytest.mark.parametrize("name", ALL)
def test_every_architecture_has_norms(name: str) -> None:
    network = build(name)
    model = Model("tiny", network, None, *find_sites(network))  # type: ignore[arg-type]
    found = flow(model, text(model), ("norms",)).values["norms"]
    assert found.shape == (2, 6, 6)
    assert (np.diagonal(found, axis1=1, axis2=2) > 0).all()


def test_value_norms_of_a_bfloat16_model_are_close_to_those_in_float64() -> None:
    model = tiny("bert")
    expected = flow(model, text(model), ("norms",)).values["norms"]
    model.network.bfloat16()
    np.testing.assert_allclose(flow(model, text(model), ("norms",)).values["norms"], expected, rtol=0.3, atol=0.03 * expected.max())


def test_flow_that_cannot_be_computed_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("bert")
    with pytest.raises(MeasureError, match=r"between 6 tokens .* is 5 tokens\. Use rollout instead, or allow it with longest=6"):
        flow(model, text(model), ("maxflow",), longest=5)
    dense = model.network.encoder.layer[1].attention.output.dense
    dense.register_forward_pre_hook(lambda module, args: (args[0] * 1.01,))
    with pytest.raises(
        MeasureError, match=r"BertModel has no linear map whose input is the output of the heads of layer 2\. .* A or rollout"
    ):
        flow(model, text(model), ("norms",))
    model = tiny("mpnet")
    model.network.encoder.layer[0].attention.attn.o.register_forward_pre_hook(lambda module, args: (args[0] * 1.01,))
    with pytest.raises(MeasureError, match=r"MPNetModel has no linear map whose input is the output of the heads of layer 1"):
        flow(model, text(model), ("norms",))
    assert kernel("no_such_kernel") is None
    monkeypatch.setattr("headscope.models.jacobian.rollout.kernel", lambda name: None)
    with pytest.raises(MeasureError, match="Install it with pip install numba"):
        flow(model, text(model), ("maxflow",))


def test_flow_of_the_embedded_model_has_the_expected_shapes_and_bounds() -> None:
    model = load(device="cpu")
    sentence = next(text for text in Encoder(model.tokenizer).texts(read("sampler"), Tally()) if len(text.words) == 6)
    n = len(sentence)
    assert (KINDS, set(KINDS) < set(ALL_KINDS)) == (("A", "G", "G*"), True)
    found = flow(model, sentence, ("rollout", "maxflow", "norms"))
    assert {matrix.shape for matrix in found.values.values()} == {(12, n, n)}
    np.testing.assert_allclose(found.values["rollout"].sum(1), 1, rtol=1e-5)
    heads = value_norms(model, sentence)
    assert heads.shape == (12, 12, n, n)
    assert (found.values["norms"] <= heads.sum(1) * (1 + 1e-9)).all(), "the triangle inequality is violated"
