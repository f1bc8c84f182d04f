"""Documents of Stanza, built without its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headscope.annotation import annotate, load_parser
from headscope.annotation.stanza_parser import trees
from headscope.corpora import Corpus, check, read
from headscope.errors import HeadscopeError

stanza_doc = pytest.importorskip("stanza.models.common.doc")

TEXT = "Vamos del mar. Sí!"
SENTENCES: list[list[dict[str, Any]]] = [
    [
        {"id": 1, "text": "Vamos", "lemma": "ir", "upos": "VERB", "feats": "A=B", "head": 0, "deprel": "root", "start_char": 0, "end_char": 5},  # noqa: E501
        {"id": [2, 3], "text": "del", "start_char": 6, "end_char": 9},
        {"id": 2, "text": "de", "lemma": "de", "upos": "ADP", "head": 4, "deprel": "case"},
        {"id": 3, "text": "el", "lemma": "el", "upos": "DET", "head": 4, "deprel": "det"},
        {"id": 4, "text": "mar", "lemma": "mar", "upos": "NOUN", "head": 1, "deprel": "obl", "start_char": 10, "end_char": 13},
        {"id": 5, "text": ".", "lemma": ".", "upos": "PUNCT", "head": 1, "deprel": "punct", "start_char": 13, "end_char": 14},
    ],
    [
        {"id": 1, "text": "Sí", "upos": "INTJ", "head": 0, "deprel": "root", "start_char": 15, "end_char": 17},
        {"id": 2, "text": "!", "upos": "PUNCT", "head": 1, "deprel": "punct", "start_char": 17, "end_char": 18},
    ],
]  # fmt: skip


class Pipeline:
    """A replacement for Stanza's pipeline, with `bulk_process` and the language."""

    lang = "es"

    def bulk_process(self, texts: list[str]) -> list[Any]:
        assert texts == [TEXT]
        return [stanza_doc.Document(SENTENCES, text=TEXT)]


def test_words_spaces_and_multi_word_tokens_are_converted() -> None:
    first, second = trees(stanza_doc.Document(SENTENCES, text=TEXT))
    assert (first.text, second.text) == ("Vamos del mar.", "Sí!")
    assert list(first.rows())[:3] == [
        "1\tVamos\tir\tVERB\t_\tA=B\t0\troot\t_\t_",
        "2-3\tdel\t_\t_\t_\t_\t_\t_\t_\t_",
        "2\tde\tde\tADP\t_\t_\t4\tcase\t_\t_",
    ]
    assert list(first.rows())[4] == "4\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No"


def test_the_annotated_file_is_valid_and_complete(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    parser = load_parser(pipeline=Pipeline(), parser="stanza")
    done = annotate(read(tmp_path / "a.txt"), parser, tmp_path / "a.conllu")
    assert (done.documents, done.sentences, done.words) == (1, 2, 7)
    assert [finding for finding in check([tmp_path / "a.conllu"], 2) if not finding.note] == []
    (document,) = read(tmp_path / "a.conllu")
    assert [word.form for word in document.words] == ["Vamos", "de", "el", "mar", ".", "Sí", "!"]
    assert document.automatic is not None
    assert document.automatic.startswith("Stanza ")
    assert document.automatic.endswith("; es")


def test_missing_models_are_refused_with_the_command_to_download_them(tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match=r"no models of 'fi'.*stanza\.download\('fi'\).*none"):
        load_parser("stanza", str(tmp_path), "fi")


def test_a_corpus_in_memory_is_annotated(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    memory = Corpus.of(read(tmp_path / "a.txt"))
    assert annotate(memory, load_parser("stanza", Pipeline()), tmp_path / "b.conllu").words == 7
