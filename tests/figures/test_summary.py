"""The report's sentences: what they say, and that they say nothing of what was not measured."""

from __future__ import annotations

import numpy as np
import pytest

import headscope as hs
from headscope.encoding.tokenizer import Tokenizer
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.report import body
from headscope.report.summary import sentences
from helpers.architectures import build
from helpers.families import FAMILIES

TOKENS = ["[CLS]", "a", "b", "c", "[SEP]"]


def planted() -> np.ndarray:
    """Two layers of two heads: one that looks at the previous token, one at [SEP] alone, two that are even."""
    maps = np.full((2, 2, 5, 5), 0.2)
    maps[0, 0] = np.eye(5, k=-1)
    maps[0, 0, 0] = 0.2
    maps[0, 1] = 0
    maps[0, 1, :, 4] = 1
    return maps


def told(*measures: str) -> list[str]:
    maps = [planted(), planted()]
    return sentences(hs.measure(maps, [TOKENS, TOKENS], list(measures), documents=["x", "y"]).results)


def test_habits_and_focus_of_planted_heads() -> None:
    lines = told("positions", "tokens", "entropy")
    assert lines[:2] == [
        "1 of 4 heads gives more than half of its attention to the previous token: 1-1 (0.80).",
        "1 of 4 heads gives more than half of its attention to [SEP]: 1-2 (1.00).",
    ]
    # Layer 1: an even first row of five (ln 5 / 5) and rows of one token; layer 2 is even.
    broad, narrow = np.log(5), np.log(5) / 5 / 2
    assert lines[2] == (
        f"Attention is broadest in layer 2 (entropy {broad:.2f} nats, as if spread over 5 tokens) and most focused in layer 1 "
        f"({narrow:.2f} nats, as if spread over 1 token); even attention would have {broad:.2f} nats."
    )


def test_nothing_is_said_of_what_was_not_measured() -> None:
    only = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["positions"])
    (line,) = sentences(only.results)
    assert line.startswith("None of 2 heads gives more than half of its attention to the ")
    assert {part for part in ("previous", "next", "itself", "[SEP]", "[CLS]", "commas") if part in line} == {"previous", "next", "itself"}
    one_layer = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["entropy"])
    assert sentences(one_layer.results) == ["Nothing is measured here that can be said in a sentence: see the tables."]


def test_layers_that_print_alike_are_called_alike() -> None:
    even = hs.measure(np.full((2, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["entropy"])
    assert sentences(even.results) == [
        "Attention is equally broad in all layers (entropy 1.10 nats, as if spread over 3 tokens; even attention: 1.10)."
    ]


def test_bits_are_not_called_nats() -> None:
    bits = hs.measure(planted(), TOKENS, {"entropy": {"base": "bits"}})
    assert not any("nats" in line for line in sentences(bits.results))
    assert "in nats, or" in body(bits.results)
    assert "published" not in body(bits.results)


@pytest.mark.parametrize(
    ("replicates", "words"),
    [(40, "with an interval clear of zero"), (0, "without intervals nobody knows how surely")],
)
def test_relations_with_and_without_intervals(replicates: int, words: str) -> None:
    run = hs.run("mini", "sampler", ["relations"], limit=120, replicates=replicates, gallery=0)
    (line,) = sentences(run.results)
    best = [row for row in run.results["relations_best"] if row["label"] != "all" and not np.isnan(row["value"])]
    sure = [row for row in best if (row["lift_low"] if replicates else row["lift"]) > 0]
    assert line.startswith(
        f"For {len(sure)} of {len(best)} relations a single head, chosen on other documents, finds the governor of a word"
    )
    assert words in line
    most = max(sure, key=lambda row: row["lift"])
    assert f"{most['label']} by {most['heads']}, " in line


def test_a_decoder_s_own_tokens_and_a_reading_by_document() -> None:
    tokens = FAMILIES["llama-2"]()
    network = build("llama", vocabulary=len(tokens))
    model = Model("tiny", network, Tokenizer(tokens), *find_sites(network))
    run = hs.run(model, "sampler", ["tokens", "entropy"], limit=12, replicates=5, max_length=60)
    html = body(run.results)
    assert "[CLS]" not in html
    assert "&lt;s&gt;" in html
    documents = hs.run("mini", "sampler", ["coreference"], replicates=5, gallery=0)
    assert "19 texts, one document at a time, from 19 documents" in body(documents.results)
    crossed = FAMILIES["t5"]()
    t5 = build("t5", vocabulary=len(crossed))
    both = hs.run(Model("t5", t5, Tokenizer(crossed), *find_sites(t5)), "sampler", ["entropy"], limit=6, replicates=5, max_length=60)
    assert "24 in 2 encoder, 2 decoder, 2 cross layers of attention" in body(both.results)
