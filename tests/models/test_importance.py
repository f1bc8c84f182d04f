"""Importance of heads, compared with finite differences of gates and with gradients at the output projections, text by
text.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadLayout, Site
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.answers import ask, asking_inputs
from headscope.models.gates import gated
from headscope.models.importance import Importance, importance, normalised
from headscope.models.model import Model
from helpers.predicting import CLASSES, TINY, encoded, loaded

# The ends of the names of modules that read the outputs of heads.
READERS = ("attention.output.dense", "out_lin", "attn.c_proj", "o_proj", "out_proj", "SelfAttention.o", "EncDecAttention.o", "attn.o")
PLAIN = [name for name in TINY if name != "albert"]  # all layers of ALBERT share one projection


def loss(model: Model, text: Encoded, reduction: str = "mean") -> torch.Tensor:
    """The loss of one text, computed from the logits of all positions."""
    assert model.whole is not None
    targets = ask(model, [text], 0.4, "k")
    logs = model.whole(**asking_inputs(model, [text], targets), use_cache=False).logits.log_softmax(-1)
    if model.objective == "classes":
        assert text.label is not None
        number = {"good": 2, "1": 1, "BAD": 0}[text.label]
        assert len(CLASSES["id2label"]) == 3
        return -torch.as_tensor(logs)[0, number]
    losses = torch.stack([-logs[0, place, label] for place, label in zip(targets.places, targets.labels, strict=True)])
    return losses.mean() if reduction == "mean" else losses.sum()


def by_hand(model: Model, text: Encoded) -> list[torch.Tensor]:
    """Att · ∂L/∂Att [token, head] per site, computed from the input of each output projection."""
    seen: list[torch.Tensor] = []

    def keep(module: torch.nn.Module, args: Any) -> tuple[torch.Tensor]:
        given = args[0] if args[0].requires_grad else args[0].clone().requires_grad_()
        given.retain_grad()
        seen.append(given)
        return (given,)

    modules = [module for name, module in model.network.named_modules() if name.endswith(READERS)]
    assert len(modules) == len(model.sites)
    handles = [module.register_forward_pre_hook(keep) for module in modules]
    with torch.enable_grad():
        loss(model, text).backward()  # type: ignore[no-untyped-call]
    for handle in handles:
        handle.remove()
    products = []
    for site, given in zip(model.sites, seen, strict=True):
        assert given.grad is not None
        products.append((given * given.grad)[0].detach().reshape(len(given[0]), site.heads, -1).sum(-1))
    return products


@pytest.mark.parametrize("name", PLAIN)
def test_all_kinds_of_importance_equal_those_computed_text_by_text(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name, double=True)
    texts = encoded(model)
    found = importance(model, texts, 40, share=0.4, key="k")
    each = [by_hand(model, text) for text in texts]
    slopes = np.array([torch.cat([part.sum(0) for part in parts]).numpy() for parts in each])
    sizes = np.array([torch.cat([part.abs().sum(0) for part in parts]).numpy() for parts in each])
    tokens = np.array([np.repeat([len(part) for part in parts], [part.shape[1] for part in parts]) for parts in each])
    tolerance = 1e-3 if name == "t5" else 1e-5  # losses are float32, and T5 normalises in float32
    assert_allclose(found.slopes, slopes, rtol=tolerance, atol=tolerance * np.abs(slopes).max())
    assert_allclose(found.sizes, sizes, rtol=tolerance, atol=tolerance * np.abs(sizes).max())
    assert_allclose(found.of("example", "none"), np.abs(slopes).mean(0), rtol=10 * tolerance, atol=tolerance)
    assert_allclose(found.of("token", "none"), sizes.sum(0) / tokens.sum(0), rtol=10 * tolerance, atol=tolerance)
    pieces = [np.abs(slopes[start : start + 2].sum(0)) for start in range(0, len(texts), 2)]
    assert_allclose(found.of("batch", "none", 2), sum(pieces) / len(texts), rtol=10 * tolerance, atol=10 * tolerance)
    alone = importance(model, texts, 1, share=0.4, key="k")
    assert_allclose(alone.slopes, found.slopes, rtol=tolerance, atol=tolerance * np.abs(slopes).max())
    assert_allclose(alone.of("batch", batch_texts=1), alone.of("example"))
    assert np.abs(slopes).max() > 1e-3


@pytest.mark.parametrize("name", ["bert", "albert", "gpt2 classes", "bart"])
def test_slopes_equal_finite_differences_of_gates(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name, double=True)
    texts, step = encoded(model)[:2], 1e-5
    found = importance(model, texts, share=0.4, key="k", reduction="sum")
    ids = [(number, head) for number, site in enumerate(model.sites) for head in range(site.heads)]
    for flat, (number, head) in enumerate(ids):
        for row, text in enumerate(texts):
            ends = []
            for by in (step, -step):
                gate = torch.ones(model.sites[number].heads, dtype=torch.float64)
                gate[head] += by
                with torch.no_grad(), gated(model, {number: gate}):
                    ends.append(float(loss(model, text, "sum")))
            assert found.slopes[row, flat] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-7)


def test_importance_with_a_head_gated_off_equals_that_with_its_weights_zeroed(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert", double=True)
    texts = encoded(model)
    gate = torch.tensor([1.0, 0, 1, 1])
    with gated(model, {1: gate}):
        found = importance(model, texts)
    assert not found.slopes[:, 5].any()
    weights = model.network.get_submodule("encoder.layer.1.attention.output.dense").weight
    weights[:, 6:12] = 0
    expected = importance(model, texts)
    assert_allclose(found.slopes, expected.slopes, rtol=1e-8, atol=1e-12)
    assert np.abs(found.slopes[:, 4]).max() > 1e-4


def test_all_kinds_of_importance_equal_values_worked_by_hand() -> None:
    layout = HeadLayout((Site("encoder", 0, 2, 2, "a"), Site("encoder", 1, 2, 2, "b")))
    slopes = np.array([[3.0, -2, 0, 0], [-1, -2, 0, 0], [2, 2, 0, 0]])
    sizes = np.array([[4.0, 2, 0, 1], [2, 2, 0, 1], [6, 5, 0, 4]])
    found = Importance(layout, slopes, sizes, np.array([[2] * 4, [3] * 4, [5] * 4]))
    assert_allclose(found.of("example", "none"), [2, 2, 0, 0])
    assert_allclose(found.of("token", "none"), [1.2, 0.9, 0, 0.6])
    assert_allclose(found.of("batch", "none", 2), [4 / 3, 2, 0, 0])
    assert_allclose(found.of(), [0.5**0.5, 0.5**0.5, 0, 0])
    assert_allclose(found.of("token"), [0.8, 0.6, 0, 1])
    assert_allclose(found.of("token", "global_minmax"), [1, 0.75, 0, 0.5])
    assert_allclose(normalised(np.full(4, 2.0), layout, "global_minmax"), np.zeros(4))


def test_importance_without_texts_a_prediction_head_or_labels_is_refused(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert classes")
    texts = encoded(model)
    with pytest.raises(ModelError, match="no texts"):
        importance(model, [])
    with pytest.raises(ModelError, match="Load it with head=True"):
        importance(hs.load("mini", device="cpu"), texts)
    with pytest.raises(ModelError, match="has nothing that"):
        importance(model, [replace(texts[0], label=None)])
