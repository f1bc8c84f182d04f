"""The heads that a run describes, for views of other texts."""

from __future__ import annotations

import pytest

import headscope as hs
from headscope.core.document import Document
from headscope.corpora import Corpus, read
from headscope.views.known import known_heads, seen_texts, sentence_of


@pytest.fixture(scope="module")
def run() -> hs.Run:
    documents = [Document(document.id, document.sentences[1:3]) for document in read("sampler")]
    return hs.run("mini", Corpus.of(documents), {"positions": {}, "entropy": {}, "relations": {"least": 10}}, replicates=50)


def test_syntactic_heads_come_before_positional_and_broad_heads(run: hs.Run) -> None:
    known = known_heads(run.results, "one")
    labels = run.results.head_labels
    assert {head.head for head in known} == {str(label.head) for label in labels.sure}
    order = {"syntactic": 0, "positional": 1, "broad": 2}
    ranks = [min(order[label.type.name] for label in labels.sure if str(label.head) == head.head) for head in known]
    assert ranks == sorted(ranks)
    assert {0, 1} <= set(ranks)
    words = {head.head: head.word for head in known}
    assert words["1-5"] == "next token"
    first = known[0]
    assert first.run == "one"
    assert first.sentence.startswith("finds the other word of the relation")
    assert ", baseline " in first.sentence


def test_texts_of_the_gallery_are_short_and_show_a_known_head(run: hs.Run) -> None:
    known = known_heads(run.results, "one")
    texts = seen_texts(run.results, known, "one")
    assert 1 <= len(texts) <= 4
    assert {text.head for text in texts} <= {head.head for head in known}
    assert all(len(text.text.split()) <= 24 for text in texts)


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("She did n't , he said .", "She didn't, he said."),
        ('" Please read it . "', '"Please read it."'),
        ("Kofi 's father ( Samuel ) left !", "Kofi's father (Samuel) left!"),
    ],
)
def test_a_sentence_is_written_with_the_usual_spaces(words: str, written: str) -> None:
    assert sentence_of({"forms": words.split()}) == written
