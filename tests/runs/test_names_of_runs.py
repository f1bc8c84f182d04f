"""The names of runs in a comparison."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headscope.comparison.base import names_of


def run_with(**settings: Any) -> Any:
    """A stand-in for a run, with everything that its name depends on."""
    usual = {"model": "mini-decoder", "corpus": ["sampler"], "generate": None, "prompt_tokens": None, "limit": None, "layers": None}
    manifest = {"settings": {**usual, **settings}, "identity": {"model": "1", "corpus": "2"}}
    return SimpleNamespace(manifest=manifest, study=None, map="weights", path=None)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (({}, {"generate": 40}), ("given text", "40 generated tokens")),
        (({"generate": 20, "prompt_tokens": 8}, {"generate": 40, "prompt_tokens": 8}), ("20 generated tokens", "40 generated tokens")),
        (({}, {"limit": 50}), ("all texts", "50 texts")),
        (({}, {"layers": [1, 2]}), ("all layers", "layers 1,2")),
        (({"model": "gpt2"}, {"generate": 40}), ("gpt2", "mini-decoder")),
        (({"punct_rule": False}, {"punct_rule": True}), ("no punct rule", "punct rule")),
        (({"segment_ids": None}, {"segment_ids": "zeros"}), ("default segment ids", "segment ids zeros")),
    ],
)
def test_runs_are_named_by_the_settings_that_differ(settings: tuple[dict[str, Any], dict[str, Any]], names: tuple[str, str]) -> None:
    assert names_of([run_with(**each) for each in settings]) == names
