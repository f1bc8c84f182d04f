"""Documents of treebanks without # newdoc, formed from the ids of their sentences."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headscope.core.document import Mention
from headscope.corpora import Corpus, read, stats

Write = Callable[[str, str], Path]
ALONE = "sentences read as separate documents: the file has no # newdoc"
BY_ID = "documents formed from the ids of their sentences: the file has no # newdoc"


def treebank(ids: Sequence[str | None], before: str = "") -> str:
    sentences = (f"# sent_id = {id}\n1 w _ _ _ _ _ _ _ _\n" if id else "1 w _ _ _ _ _ _ _ _\n" for id in ids)
    return before + "\n".join(sentences)


def shape(corpus: Corpus) -> list[tuple[str, int]]:
    return [(document.id, len(document.sentences)) for document in corpus]


PENN = ["wsj_0001-1", "wsj_0001-2", "wsj_0003-1", "wsj_0003-2", "wsj_0003-30"]
EWT = [f"weblog-blogspot.com_nominations_20041117_ENG-{number:04}" for number in (1, 2, 3)] + ["email-enronsent08_01-0043"]


@pytest.mark.parametrize(
    ("ids", "documents"),
    [
        (PENN, [("wsj_0001", 2), ("wsj_0003", 3)]),
        (EWT, [("weblog-blogspot.com_nominations_20041117_ENG", 3), ("email-enronsent08_01", 1)]),
        (["b204.1", "b204.2", "b504.1", "b504.2"], [("b204", 2), ("b504", 2)]),  # Turku
        (["a1-0-s1", "a1-0-s2", "a2-0-s1", "a2-0-s2"], [("a1-0", 2), ("a2-0", 2)]),  # AnCora
    ],
)
def test_sentence_ids_that_name_documents_form_documents(columns: Write, ids: list[str], documents: list[tuple[str, int]]) -> None:
    for name in ("a.conllu", "a.conll"):
        corpus = read(columns(name, treebank(ids)))
        assert shape(corpus) == documents
        assert corpus.skipped.lines(read=True) == [f"{len(documents)} {BY_ID} (first: line 1 of {name})"]
        assert corpus.skipped.lines(read=False) == []
    assert stats(corpus).documents == len(documents)


@pytest.mark.parametrize(
    "ids",
    [
        ["dev-s1", "dev-s2", "dev-s3", "dev-s4"],  # German GSD: the prefix names the split
        ["de-dev-s1", "de-dev-s2", "de-test-s1", "de-test-s2"],
        ["n01001011", "n01001013", "n01002017"],  # PUD
        ["a-1", "a-2", "a-3"],  # all sentences have the same prefix
        ["a-1", "b-1", "a-2", "b-2"],
        ["a-1", "a-2", "b-1", "b-2", "a-3", "a-4"],
        ["a-1", "b-1", "c-1", "d-1"],
        ["a-1", "a-1", "b-1", "b-1"],
        ["a-1", "a-2", "b-1", "b-2", None],
        ["a-1", "a-2", "b-1", "b-2", "x"],
        ["a-1", "a-2", "b-1", f"b-{'9' * 5000}"],
    ],
)
def test_other_sentence_ids_do_not_form_documents(columns: Write, ids: list[str | None]) -> None:
    corpus = read(columns("a.conllu", treebank(ids)))
    assert [size for _, size in shape(corpus)] == [1] * len(ids)
    assert dict(corpus.skipped.counts) == {ALONE: len(ids)}


def test_sentence_ids_are_ignored_if_documents_are_declared(columns: Write) -> None:
    for before, documents in {"# newdoc id = x\n": [("x", 5)], treebank(["y"], "") + "\n# newdoc id = x\n": [("y", 1), ("x", 5)]}.items():
        assert shape(read(columns("a.conllu", treebank(PENN, before)))) == documents


def test_ids_after_the_examined_sentences_continue_or_begin_documents(columns: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.corpora.readers.conllu.AHEAD", 4)
    ids = ["a-1", "a-2", "b-1", "b-2", "b-3", None, "b-4", "b-1", "a-3"]
    corpus = read(columns("a.conllu", treebank(ids) + "\n# newdoc id = z\n" + treebank(["z-1", "y-1"])))
    assert shape(corpus) == [("a", 2), ("b", 3), ("a.conllu#3", 1), ("b#2", 1), ("b#3", 1), ("a#2", 1), ("z", 2)]
    assert dict(corpus.skipped.counts) == {BY_ID: 5, ALONE: 1}


def test_only_the_examined_sentences_are_read_before_the_first_document(columns: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.corpora.readers.conllu.AHEAD", 8)
    path = columns("a.conllu", treebank([f"d{number}-{sentence}" for number in range(500) for sentence in (1, 2)]))
    corpus = read(path)
    assert next(iter(corpus)).id == "d0"
    assert (corpus.share or 1) < 10 / 1000


def test_mentions_may_span_sentences_of_a_document_formed_from_ids(columns: Write) -> None:
    rows = ["Entity=(1-x", "Entity=1)", "_", "Entity=(1-x)"]
    sentences = (f"# sent_id = {id}\n1 w _ _ _ _ _ _ _ {misc}\n" for id, misc in zip(PENN, rows, strict=False))
    first, second = read(columns("a.conllu", "\n".join(sentences)))
    assert first.mentions == (Mention("1", 0, 2, "x"),)
    assert second.mentions == (Mention("1", 1, 2, "x"),)


@pytest.mark.parametrize("name", ["en_ewt-ud-dev", "en_gum-ud-dev"])
def test_sentence_ids_recover_the_declared_documents_of_a_treebank(data: Path, tmp_path: Path, name: str) -> None:
    path = data / f"ud/{name}.conllu.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        (tmp_path / "a.conllu").write_text("".join(line for line in lines if not line.startswith("# newdoc")), encoding="utf-8")
    declared = [[sentence.id for sentence in document.sentences] for document in read(path)]
    assert [[sentence.id for sentence in document.sentences] for document in read(tmp_path / "a.conllu")] == declared
