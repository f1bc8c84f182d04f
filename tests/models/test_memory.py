"""The memory of a backward pass: the plan is compared with what torch saves, and batches stay within the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.encoding.texts import Encoded
from headscope.models import memory
from headscope.models.memory import SCORES, BackwardMemory, estimate, saved_bytes
from headscope.models.model import Model
from helpers.predicting import encoded, loaded

KINDS = ("bert", "bert classes", "gpt2", "llama", "t5")


def longer_inputs(model: Model, texts: int, tokens: int) -> dict[str, torch.Tensor]:
    """Inputs of `texts` texts of `tokens` tokens, longer than those from which the plan is made."""
    ids = torch.randint(
        3, model.answers if model.objective != "classes" else 12, (texts, tokens), generator=torch.Generator().manual_seed(0)
    )
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return inputs | ({f"decoder_{name}": tensor for name, tensor in inputs.items()} if model.encoder_decoder else {})


@pytest.mark.parametrize("kind", KINDS)
def test_the_planned_memory_equals_what_torch_saves(kind: str, tmp_path: Path) -> None:
    """Measured on more and longer texts than the plan is made from, without predictions, which the forward pass does
    not save.
    """
    model = loaded(tmp_path, kind)
    plan = replace(model.backward_memory, prediction=0)
    texts = 1 if model.objective == "classes" else 3
    assert_allclose(plan.planned(texts, 40), saved_bytes(model, longer_inputs(model, texts, 40)), rtol=0.03)


def test_the_planned_memory_equals_values_worked_by_hand(tmp_path: Path) -> None:
    """The maps of a layer are saved once, after the softmax. A prediction takes three times 4 bytes per word of the
    vocabulary.
    """
    model = loaded(tmp_path, "llama")
    assert model.backward_memory.pair == pytest.approx(4 * 3 * 4, rel=1e-6)  # bytes × layers × heads
    assert model.backward_memory.prediction == SCORES * 4 * model.answers == 12 * len(model.tokenizer.hf)
    plan = BackwardMemory(token=100, pair=2, prediction=1000, most=0)
    assert plan.planned(3, 10) == 3 * (10 * 100 + 100 * 2 + 10 * 1000)
    assert plan.planned(3, 10, share=0.15) == 3 * (10 * 100 + 100 * 2 + 1500)


def test_batches_stay_within_the_bound(tmp_path: Path) -> None:
    model = loaded(tmp_path, "gpt2")
    texts = [text for text in encoded(model) for _ in range(5)]
    plan = BackwardMemory(token=100, pair=10, prediction=0, most=8000)
    batches = list(plan.batches(texts))
    assert sorted(id(text) for batch in batches for text in batch) == sorted(map(id, texts))
    for batch in batches:
        longest = max(text.cost for text in batch)
        assert len(batch) == 1 or len(batch) * (longest * 100 + longest**2 * 10) <= 8000
    assert 1 < max(map(len, batches)) < len(texts)
    assert [len(batch) for batch in replace(plan, most=0).batches(texts)] == [1] * len(texts)


def test_batches_of_a_large_decoder_are_split_to_stay_within_the_bound() -> None:
    """16 texts of 128 tokens would take 3.3 GB in SmolLM2-135M, as measured. A batch may take at most 384 MiB."""
    plan = BackwardMemory(token=901_620, pair=1_080, prediction=SCORES * 4 * 49_152, most=memory.MOST)
    assert plan.planned(16, 128) == pytest.approx(3.34e9, rel=0.01)
    assert max(texts for texts in range(1, 17) if plan.planned(texts, 128) <= memory.MOST) == 1
    assert plan.planned(10, 25) <= memory.MOST


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_results_do_not_depend_on_splitting_a_batch(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tmp_path, kind)
    sizes: list[int] = []
    differentiate = Model.differentiate

    def recorded(self: Model, texts: Sequence[Encoded], *rest: Any) -> None:
        sizes.append(len(texts))
        differentiate(self, texts, *rest)

    monkeypatch.setattr(Model, "differentiate", recorded)
    whole = hs.run(model, "sampler", ["saliency"], limit=6, gallery=0, allow_unknown=True)["saliency"].table
    assert max(sizes) > 1
    sizes.clear()
    object.__setattr__(model, "backward_memory", replace(model.backward_memory, most=0))
    parts = hs.run(model, "sampler", ["saliency"], limit=6, gallery=0, allow_unknown=True)["saliency"].table
    assert set(sizes) == {1}
    for column in ("value", "low", "high"):
        assert_allclose(whole[column], parts[column], rtol=1e-4)


def test_the_estimated_memory_of_a_layer_equals_values_worked_by_hand(tmp_path: Path) -> None:
    """4 bytes × tokens × (6 × 24 + 3 × 24): the width is 24, the widest weight 24 × 24, the feed-forward width 20."""
    model = loaded(tmp_path, "llama")
    need = estimate(model, batch=2, length=10)
    assert need.activations == 4 * 20 * (6 * 24 + 3 * 24)
    assert need.layer == 4 * 2 * 100 * 4
    assert (need.maps, estimate(model, 2, 10, without_maps=True).maps) == (4 * need.layer, 0)
