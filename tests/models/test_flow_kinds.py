"""Rollout, maximum flow and norms of values against loops, paths and augmentations written down plainly."""

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
    """Rollout as a sum over every single path from a target down to an input token."""
    layers, size, _ = attention.shape
    found = np.zeros_like(attention)
    for layer in range(layers):
        for path in product(range(size), repeat=layer + 2):  # from the input up
            share = 1.0
            for step, (below, above) in enumerate(pairwise(path)):
                share *= 0.5 * attention[step, below, above] + 0.5 * (below == above)
            found[layer, path[0], path[-1]] += share
    return found


def edmonds_karp(room: dict[Any, dict[Any, float]], source: Any, sink: Any) -> float:
    """The maximum flow by shortest augmenting paths."""
    room = {node: dict(after) for node, after in room.items()}
    total = 0.0
    while True:
        came, queue = {source: source}, deque([source])
        while queue and sink not in came:
            node = queue.popleft()
            for after, left in room.get(node, {}).items():
                if left > 1e-15 and after not in came:
                    came[after] = node
                    queue.append(after)
        if sink not in came:
            return total
        path = [sink]
        while path[-1] != source:
            path.append(came[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        least = min(room[one][other] for one, other in steps)
        for one, other in steps:
            room[one][other] -= least
            room.setdefault(other, {})[one] = room.get(other, {}).get(one, 0.0) + least
        total += least


def flows(attention: np.ndarray) -> np.ndarray:
    """Maximum flows pair by pair; nodes are (layer, token)."""
    room: dict[Any, dict[Any, float]] = {}
    for layer, below, above in np.ndindex(attention.shape):
        room.setdefault((layer + 1, above), {})[layer, below] = 0.5 * attention[layer, below, above] + 0.5 * (below == above)
    found = np.zeros_like(attention)
    for layer, below, above in np.ndindex(attention.shape):
        found[layer, below, above] = edmonds_karp(room, (layer + 1, above), (0, below))
    return found


def attention(layers: int, size: int, seed: int, sharp: float) -> np.ndarray:
    """Random attention [layer, source, target], peaked if `sharp` is large."""
    logits = np.random.default_rng(seed).normal(size=(layers, size, size)) * sharp
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(1, keepdims=True))


def test_worked_by_hand() -> None:
    # Two layers of two tokens. Layer 1: token 0 attends to itself, token 1 to token 0. Layer 2: both attend to token 1.
    #   Â1 = [[1, 0], [.5, .5]],  Â2 = [[.5, .5], [0, 1]]  (rows: targets, columns: sources)
    maps = torch.tensor([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(rollout(maps)[1], [[0.5 * 1 + 0.5 * 0.5, 0.5], [0.5 * 0.5, 0.5]])
    # From token 0: .5 straight down, and .5 to token 1, which passes on all of it, to 0 or 1. From token 1: 1 to
    # itself, then .5 to each.
    np.testing.assert_array_equal(maxflow(maps, 2)[1], [[0.5 + 0.5, 0.5], [0.5, 0.5]])
    # Three layers: a detour. Only in the last layer does 0 attend to 1; the first two attend to nothing else than
    # themselves.
    still = torch.eye(2).double()
    turn = torch.tensor([[0.2, 0.0], [0.8, 1.0]], dtype=torch.float64)
    np.testing.assert_allclose(maxflow(torch.stack([still, still, turn]), 2)[2], [[0.6, 0.0], [0.4, 1.0]], rtol=1e-15)


def test_norms_worked_by_hand() -> None:
    # Two heads, two features. Token 0 is worth (3, 0) to head 0 and (0, 4) to head 1; token 1 is worth (1, 0) and (−1,
    # 0).
    vectors = torch.tensor([[[3.0, 0.0], [1.0, 0.0]], [[0.0, 4.0], [-1.0, 0.0]]]).double()
    weights = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]]).double()  # [head, target, source]
    np.testing.assert_allclose(values.together(weights, vectors), [[5.0, 2.5], [0.0, 0.0]], atol=1e-15)  # token 1's cancel each other
    np.testing.assert_allclose(values.by_head(weights, vectors), [[[3.0, 1.5], [0.0, 0.5]], [[4.0, 2.0], [0.0, 0.5]]])


@pytest.mark.parametrize(("layers", "size"), [(1, 1), (1, 4), (2, 5), (3, 1), (4, 3), (5, 4)])
@pytest.mark.parametrize("sharp", [0.5, 4])
def test_random_attention(layers: int, size: int, sharp: float) -> None:
    maps = attention(layers, size, 7 * layers + size, sharp)
    shares = rollout(torch.from_numpy(maps)).numpy()
    np.testing.assert_allclose(shares, paths(maps), rtol=1e-12)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-12)
    most = maxflow(torch.from_numpy(maps), size).numpy()
    np.testing.assert_allclose(most, flows(maps), rtol=1e-10, atol=1e-12)
    assert (most >= shares - 1e-12).all(), "a path's product is no more than its least weight"
    assert (most <= 1 + 1e-12).all()
    np.testing.assert_allclose(most[0], edges(torch.from_numpy(maps))[0].T, rtol=1e-12)


def test_flows_that_must_turn_back() -> None:
    # Attention of a few sources each, so that the first paths that are found block others and must be taken back.
    rng = np.random.default_rng(0)
    for _ in range(12):
        maps = (rng.random((5, 6, 6)) < 0.3) * rng.integers(1, 9, (5, 6, 6)) + np.eye(6) * 1e-3
        maps = maps / maps.sum(1, keepdims=True)
        np.testing.assert_allclose(maxflow(torch.from_numpy(maps), 6), flows(maps), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [*SEVERAL, "mpnet", "deberta-v2"])
def test_kinds_of_models(name: str) -> None:
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
    tolerance = 1e-5 if name in ("llama", "t5") else 1e-9  # these normalise or attend in float32 whatever their weights are
    np.testing.assert_allclose(found.values["norms"], expected[:, -1], rtol=tolerance, atol=tolerance)
    heads = values.each(model, inputs, values.by_head)
    np.testing.assert_allclose(heads, expected[:, :-1], rtol=tolerance, atol=tolerance)
    if name in ("gpt2", "llama"):
        assert not any(np.tril(matrix, -1).any() for matrix in found.values.values()), "a later token bears on no earlier one"


@pytest.mark.parametrize("name", ALL)
def test_every_architecture_has_norms(name: str) -> None:
    network = build(name)
    model = Model("tiny", network, None, *find_sites(network))  # type: ignore[arg-type]
    found = flow(model, text(model), ("norms",)).values["norms"]
    assert found.shape == (2, 6, 6)
    assert (np.diagonal(found, axis1=1, axis2=2) > 0).all()


def test_half_precision() -> None:
    model = tiny("bert")
    expected = flow(model, text(model), ("norms",)).values["norms"]
    model.network.bfloat16()
    np.testing.assert_allclose(flow(model, text(model), ("norms",)).values["norms"], expected, rtol=0.3, atol=0.03 * expected.max())


def test_what_cannot_be_done_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_embedded_model() -> None:
    model = load(device="cpu")
    sentence = next(text for text in Encoder(model.tokenizer).texts(read("sampler"), Tally()) if len(text.words) == 6)
    n = len(sentence)
    assert (KINDS, set(KINDS) < set(ALL_KINDS)) == (("A", "G", "G*"), True)
    found = flow(model, sentence, ("rollout", "maxflow", "norms"))
    assert {matrix.shape for matrix in found.values.values()} == {(12, n, n)}
    np.testing.assert_allclose(found.values["rollout"].sum(1), 1, rtol=1e-5)
    heads = value_norms(model, sentence)
    assert heads.shape == (12, 12, n, n)
    assert (found.values["norms"] <= heads.sum(1) * (1 + 1e-9)).all(), "the triangle inequality"
