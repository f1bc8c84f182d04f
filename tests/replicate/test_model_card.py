"""The numbers on the cards of the embedded models, which independent scripts measured, are reproduced."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.document import Document
from headscope.corpora import Corpus, read

PREVIOUS = {"2-1": 0.90, "2-2": 0.91, "2-9": 0.88, "2-12": 0.68}
NEXT = {"1-5": 0.91, "2-3": 0.83, "7-12": 0.74}
SEP = [0.11, 0.10, 0.16, 0.46, 0.48, 0.40, 0.43, 0.44, 0.51, 0.45, 0.56, 0.52]
ENTROPY = [1.95, 1.29, 2.15, 1.83, 1.57, 1.95, 1.74, 1.85, 1.73, 1.82, 1.66, 1.76]


DECODER = {"obj": ("8-5", 0.86), "case": ("6-6", 0.73), "nmod:poss": ("4-6", 0.81)}  # chosen on other documents


@pytest.fixture(scope="module")
def corpus(data: Path) -> Corpus:
    """UD English-GUM dev, the first 300 sentences of 3 to 60 words."""
    documents: list[Document] = []
    left = 300
    for document in read(data / "ud" / "en_gum-ud-dev.conllu.xz"):
        chosen = tuple(sentence for sentence in document.sentences if 3 <= len(sentence) <= 60)[:left]
        left -= len(chosen)
        documents.append(Document(document.id, chosen))
        if not left:
            break
    return Corpus.of(documents)


def test_surface_numbers_of_the_card_of_mini_are_reproduced(corpus: Corpus) -> None:
    """The numbers of the card are token-level."""
    run = hs.run("mini", corpus, replicates=0, gallery=0)
    table = run["positions"].table
    for quantity, expected in (("previous", PREVIOUS), ("next", NEXT)):
        found = {f"{row['layer']}-{row['head']}": row["value"] for row in table.where(quantity=quantity)}
        for head, value in expected.items():
            assert found[head] == pytest.approx(value, abs=0.0051), head
        others = [value for head, value in found.items() if head not in expected]
        assert max(others) < min(expected.values())
    assert_allclose(run["tokens"].layers.where(quantity="to_sep")["value"], SEP, atol=0.0051)
    assert_allclose(run["entropy"].layers.where(quantity="entropy")["value"], ENTROPY, atol=0.0051)


def test_numbers_of_the_card_of_mini_decoder_are_reproduced(corpus: Corpus) -> None:
    run = hs.run("mini-decoder", corpus, ["positions", "tokens", "relations"], replicates=0, gallery=0)
    best = {row["label"]: row for row in run.results["relations_best"]}
    for label, (head, accuracy) in DECODER.items():
        assert best[label]["heads"] == head, label
        assert best[label]["value"] == pytest.approx(accuracy, abs=0.0151), label
    to_first = {f"{row['layer']}-{row['head']}": row["value"] for row in run["tokens"].table.where(quantity="to_cls")}
    assert to_first["5-4"] == pytest.approx(0.99, abs=0.0051)
    assert to_first["7-3"] == pytest.approx(0.98, abs=0.0151)
    previous = run["positions"].table.where(quantity="previous").sort("value", descending=True)
    assert (previous["layer"][0], previous["head"][0]) == (4, 3)
    assert previous["value"][0] == pytest.approx(0.64, abs=0.0051)
