"""Malicious tokenizers: patterns that backtrack without end, and rules that make a word longer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.errors import EncodingError, ModelError
from headscope.models.load import load_tokenizer
from helpers.architectures import build
from helpers.families import FAMILIES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokens = FAMILIES["wordpiece"]()
    build("bert", vocabulary=len(tokens)).save_pretrained(tmp_path)
    tokens.save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"  # a class that uses tokenizer.json unchanged
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "tokenizer_class": "PreTrainedTokenizerFast"}))
    return tmp_path


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    change(tokenizer)
    path.write_text(json.dumps(tokenizer))
    return folder


def replacing(*rules: tuple[dict[str, str], str]) -> Callable[[dict[str, Any]], None]:
    parts = [{"type": "Replace", "pattern": pattern, "content": content} for pattern, content in rules]
    return lambda tokenizer: tokenizer.update(normalizer={"type": "Sequence", "normalizers": parts})


@pytest.mark.parametrize("pattern", [{"String": "a"}, {"Regex": "a"}, {"Regex": ""}])
def test_rules_that_make_a_word_much_longer_are_refused_before_they_run(folder: Path, pattern: dict[str, str]) -> None:
    rewritten(folder, replacing(*[(pattern, "a" * 10)] * 10))  # one letter becomes ten thousand million letters
    for load in (hs.load, load_tokenizer):
        with pytest.raises(ModelError, match="replacement rules that can make a word 10,000,000,000 times as long"):
            load(folder)


def test_ordinary_replacement_rules_are_accepted(folder: Path) -> None:
    rewritten(folder, replacing(({"String": " "}, "▁"), ({"String": "``"}, '"'), ({"Regex": " {2,}"}, "▁"), ({"String": "…"}, "...")))
    assert hs.load(folder).layout.size == 8


def test_a_pattern_that_makes_the_tokenizer_panic_raises_a_clear_error(folder: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    rewritten(folder, lambda tokenizer: tokenizer.update(pre_tokenizer=split))
    model = hs.load(folder)
    with pytest.raises(EncodingError, match=r"the tokenizer panicked on a text of 2 words.*use the model's own tokenizer.json"):
        hs.view(model, "a" * 40 + " " + "a" * 2000 + "b").grids()
