"""`hs.inspect`: the description of models of several kinds, on one screen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import headscope as hs
from headscope.models.inspection.description import positions, window
from headscope.models.inspection.summary import ModelDescription
from helpers.predicting import loaded

EXPECTED = {
    "bert": ("encoder, 3 layers × 4 heads, 12 heads in all", "learned, absolute", "masked words (masked LM)"),
    "bert classes": ("encoder, 3 layers × 4 heads, 12 heads in all", "learned, absolute", "classes of texts (classifier)"),
    "bert tags": ("encoder, 3 layers × 4 heads, 12 heads in all", "learned, absolute", "tags of words (tagger)"),
    "gpt2": ("decoder, 3 layers × 4 heads, 12 heads in all", "learned, absolute", "the next word (causal LM)"),
    "llama": (
        "decoder, 3 layers × 4 heads (2 key-value heads), 12 heads in all",
        "rotary (RoPE), base 10,000",
        "the next word (causal LM)",
    ),
    "deberta": ("encoder, 3 layers × 4 heads, 12 heads in all", "relative: scores of content and of distance", "masked words (masked LM)"),
    "t5": (
        "encoder, 3 layers × 4 heads, 12 heads in all; decoder, 2 layers × 4 heads, 8 heads in all; "
        "cross, 2 layers × 4 heads, 8 heads in all",
        "learned biases by distance, 32 buckets",
        "the next word (causal LM), given a source",
    ),
    "marian": (
        "encoder, 3 layers × 4 heads, 12 heads in all; decoder, 2 layers × 3 heads, 6 heads in all; "
        "cross, 2 layers × 3 heads, 6 heads in all",
        "sinusoidal",
        "the next word (causal LM), given a source",
    ),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_description_states_attention_positions_and_predictions_on_one_screen(kind: str, tmp_path: Path) -> None:
    model = loaded(tmp_path, kind)
    summary = ModelDescription.of(model)
    facts = summary.facts
    assert (facts["attention"], facts["positions"], facts["predicts"]) == EXPECTED[kind]
    assert (model.capture == "interface") == facts["maps"].startswith("layer by layer")
    assert (model.needs_maps is None) == facts["without maps"].startswith("verified")
    path, *lines = str(summary).splitlines()
    assert path == str(tmp_path / kind)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 23


def test_the_description_of_the_embedded_model_states_its_size_and_memory() -> None:
    summary = hs.inspect("mini", device="cpu", lengths=[100])
    assert list(summary.memory) == [100, 128, 256], "the requested length, the usual ones, and the model's maximum"
    assert summary.facts["longest text"] == "256 tokens"
    assert "16.9 million parameters, float32, 67 MB on cpu" in str(summary)
    assert summary.memory[100].layer == 4 * 12 * 100 * 100
    same = hs.inspect(hs.load("mini", device="cpu"), lengths=[100])
    assert str(same) == str(summary)


def network(modules: dict[str, torch.nn.Module] | None = None, **settings: Any) -> Any:
    """A stand-in for a network, with the two parts that are read: its configuration and its modules."""
    config = SimpleNamespace(model_type="any", **settings)
    config.get_text_config = lambda: config
    return SimpleNamespace(config=config, named_modules=lambda: (modules or {}).items())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "none: every layer can see the whole text"),
        ({"sliding_window": 4096}, "4,096 tokens in all layers"),
        ({"sliding_window": 4096, "use_sliding_window": False}, "none: every layer can see the whole text"),
        ({"sliding_window": 512, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}, "512 tokens in 5 of 6 layers"),
        ({"sliding_window": 512, "layer_types": ["full_attention"] * 6}, "none: every layer can see the whole text"),
        ({"attention_chunk_size": 8192, "layer_types": ["chunked_attention", "full_attention"]}, "8,192 tokens in 1 of 2 layers"),
    ],
)
def test_attention_windows_are_described(settings: dict[str, Any], says: str) -> None:
    assert window(network(**settings)) == says


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6}}, "rotary (RoPE), base 1,000,000, scaled by yarn"),
        (
            {"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}},
            "rotary (RoPE), base 10,000 and 1,000,000",
        ),
        ({"alibi": True}, "biases by distance (ALiBi)"),
        ({"position_embedding_type": "relative_key"}, "learned, relative"),
        ({}, "not stated in its configuration"),
    ],
)
def test_kinds_of_positions_are_described(settings: dict[str, Any], says: str) -> None:
    assert positions(network(**settings)) == says
