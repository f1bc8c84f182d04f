"""The sentences of the report: their wording and numbers. They mention only what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headscope as hs
from headscope.encoding.tokenizer import Tokenizer
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.report import body, page
from headscope.report.summary import sentences
from helpers.architectures import build
from helpers.families import FAMILIES
from helpers.planted_maps import TOKENS, planted


def summary_text(*measures: str) -> list[str]:
    maps = [planted(), planted()]
    return sentences(hs.measure(maps, [TOKENS, TOKENS], list(measures), documents=["x", "y"]).results)


def test_sentences_on_planted_heads_match_those_worked_out_by_hand() -> None:
    lines = summary_text("positions", "tokens", "entropy")
    assert lines[:2] == [
        "1 of 4 heads gives more than half of its attention to the previous token: 1-1 (0.80).",
        "1 of 4 heads gives more than half of its attention to [SEP]: 1-2 (1.00).",
    ]
    # Entropy of layer 1: one head has an even row and four one-hot rows (ln 5 / 5), the other only one-hot rows (0).
    # All rows of layer 2 are even.
    broad, narrow = np.log(5), np.log(5) / 5 / 2
    assert lines[2] == (
        f"Attention is broadest in layer 2 (entropy {broad:.2f} nats, effectively 5 tokens) and most focused in layer 1 "
        f"({narrow:.2f} nats, effectively 1 token); even attention would have {broad:.2f} nats."
    )


def test_sentences_mention_only_what_was_measured() -> None:
    only = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["positions"])
    (line,) = sentences(only.results)
    assert line.startswith("None of 2 heads gives more than half of its attention to the ")
    assert {part for part in ("previous", "next", "itself", "[SEP]", "[CLS]", "commas") if part in line} == {"previous", "next", "itself"}
    one_layer = hs.measure(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["entropy"])
    assert sentences(one_layer.results) == ["This run has no finding that fits into a sentence: see the tables."]


def test_layers_with_the_same_printed_entropy_are_called_equally_broad() -> None:
    even = hs.measure(np.full((2, 2, 3, 3), 1 / 3), ["a", "b", "c"], ["entropy"])
    assert sentences(even.results) == [
        "Attention is equally broad in all layers (entropy 1.10 nats, effectively 3 tokens; even attention: 1.10)."
    ]


def test_entropy_in_bits_is_not_reported_in_nats() -> None:
    bits = hs.measure(planted(), TOKENS, {"entropy": {"base": "bits"}})
    assert not any("nats" in line for line in sentences(bits.results))
    assert "(entropy in nats), or" in body(bits.results)
    assert "published" not in body(bits.results)


@pytest.mark.parametrize(
    ("replicates", "words"),
    [
        (40, "significantly more often than a fixed offset (the 95 % interval of the difference excludes 0)"),
        (0, "the run has no intervals"),
    ],
)
def test_the_sentence_on_relations_states_whether_there_are_intervals(replicates: int, words: str) -> None:
    run = hs.run("mini", "sampler", ["relations"], limit=120, replicates=replicates, gallery=0)
    (line,) = sentences(run.results)
    best = [row for row in run.results["relations_best"] if row["label"] != "all" and not np.isnan(row["value"])]
    sure = [row for row in best if (row["lift_low"] if replicates else row["lift"]) > 0]
    assert line.startswith(
        f"For {len(sure)} of {len(best)} relations a single head, chosen on other documents, finds the governor of a word"
    )
    assert words in line
    most = max(sure, key=lambda row: row["lift"])
    assert f"({most['label']}: {most['value']:.2f}" in line
    assert most["heads"].replace(" | ", " and ") in line


def small(architecture: str, family: str) -> Model:
    tokens = FAMILIES[family]()
    network = build(architecture, vocabulary=len(tokens))
    return Model("tiny", network, Tokenizer(tokens), *find_sites(network))


def test_the_page_of_a_decoder_names_the_first_token_instead_of_cls_and_sep(mini_decoder: Model) -> None:
    run = hs.run(mini_decoder, "sampler", ["positions", "tokens", "entropy", "relations", "distances"], limit=12, replicates=5)
    html = body(run.results)
    for absent in ("[CLS]", "[SEP]", "decoder/", "“next”", "8-10"):
        assert absent not in html, absent
    assert "1 of 64 heads gives more than half of its attention to the previous token: 4-3 (" in sentences(run.results)[1]
    assert "heads give more than half of their attention to the first token, <|endoftext|>: 5-4 (0.99)" in sentences(run.results)[0]
    assert "to the first token, &lt;|endoftext|&gt;" in html, "the description of a quantity"
    assert "does a layer attend to the first token, punctuation and neighbouring tokens?" in html
    assert "High attention to the first token, whatever the text says" in html
    assert "<b>first token</b><br>0.99</a>" in html, "a cell of the grid"
    assert "8-8 is head 8 of layer 8" in html
    assert "only the later one of a word and its governor can attend" in html
    assert "gives more than half of its attention to a sink: first token or punctuation (measure tokens)" in html
    random = small("gpt2", "gpt2")
    page_without_opening_token = body(hs.run(random, "sampler", ["positions", "tokens"], limit=4, replicates=0, max_length=60).results)
    assert "does a layer attend to the first token, punctuation and neighbouring tokens?" in page_without_opening_token, (
        "the same words if the first token varies"
    )
    assert "[SEP]" not in page_without_opening_token


def test_the_page_of_a_decoder_on_repeated_sequences_reports_induction(mini_decoder: Model) -> None:
    run = hs.run(mini_decoder, "repeats:20x8", ["positions", "tokens", "entropy", "sequences", "sinks"], replicates=20)
    whole = page(run.results, ())
    for absent in ("[CLS]", "[SEP]", "decoder/"):
        assert absent not in whole, absent
    assert "Induction: " in whole
    assert "first token" in run.results.spelled("[CLS]")


@pytest.mark.parametrize("gallery", [0, 1])
def test_special_tokens_are_named_as_in_the_model_or_by_default_without_a_gallery(mini: Model, mini_decoder: Model, gallery: int) -> None:
    settings: dict[str, Any] = {"limit": 3, "replicates": 0, "gallery": gallery}
    encoder = hs.run(mini, "sampler", ["tokens"], **settings).results.special_tokens
    assert (encoder.names, encoder.labels, encoder.idle) == (["[CLS]", "[SEP]"], ["[CLS]", "[SEP]"], "[SEP]")
    decoder = hs.run(mini_decoder, "sampler", ["tokens"], **settings).results.special_tokens
    assert (decoder.names, decoder.labels, decoder.idle) == (["the first token"], ["first token"], "the first token")
    summary_text = "the opening token, [CLS], and the [CLS] row"
    assert encoder.spelled(summary_text) == summary_text
    assert decoder.spelled(summary_text) == f"the first token,{' <|endoftext|>,' if gallery else ''} and the first token row"
    closed = hs.run(small("roberta", "roberta"), "sampler", ["tokens"], max_length=60, **settings).results.special_tokens
    assert closed.names == (["<s>", "</s>"] if gallery else ["[CLS]", "[SEP]"])
    unknown = hs.run(mini_decoder, "sampler", ["entropy"], limit=3, replicates=0, gallery=0).results.special_tokens
    assert unknown.names == []


def test_the_report_states_texts_per_document_and_kinds_of_attention() -> None:
    documents = hs.run("mini", "sampler", ["coreference"], replicates=5, gallery=0)
    assert "19 texts, one document each, from 19 documents" in body(documents.results)
    both = body(hs.run(small("t5", "t5"), "sampler", ["entropy"], limit=6, replicates=5, max_length=60).results)
    assert "24 in 2 encoder, 2 decoder, 2 cross layers of attention" in both
    assert 'href="#head=encoder/' in both, "kinds are shown if there are several"
    assert "cross/2-4 is head 4 of layer 2 of cross attention" in both
