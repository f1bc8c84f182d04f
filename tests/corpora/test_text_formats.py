from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document
from headscope.corpora import read
from headscope.corpora.readers.text import split_paragraph

Write = Callable[[str, str], Path]


def texts(document: Document) -> list[tuple[int, str]]:
    return [(sentence.paragraph, sentence.text) for sentence in document.sentences]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One two. Three", ["One two.", "Three"]),
        ("It cost 3.5 dollars. not more", ["It cost 3.5 dollars. not more"]),
        ("He said “Go!” Then (she left.) Why? Ähm", ["He said “Go!”", "Then (she left.)", "Why?", "Ähm"]),
        ('Is it? "Yes."', ["Is it?", '"Yes."']),
        ("Mr. Smith", ["Mr.", "Smith"]),
        ("\u00a0", []),
    ],
)
def test_a_paragraph_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in split_paragraph(text, 0)] == sentences


def test_a_text_file_is_one_document_of_paragraphs(write: Write) -> None:
    (document,) = read(write("a.txt", "\n\nA line\r\nand more. End\n  \n\nSecond   paragraph."))
    assert document.id == "a.txt"
    assert texts(document) == [(0, "A line and more."), (0, "End"), (1, "Second paragraph.")]


def test_lines_are_sentences_and_the_last_document_needs_no_blank_line(write: Write) -> None:
    corpus = read(write("a.txt", "One. Two\nthree\n\n\nfour"), format="lines")
    assert [(document.id, texts(document)) for document in corpus] == [
        ("a.txt#1", [(0, "One. Two"), (0, "three")]),
        ("a.txt#2", [(0, "four")]),
    ]


def test_texts_in_json_lines_are_read(write: Write) -> None:
    entries = [{"id": 7, "text": "A b. C\n\nD", "keyphrases": ["b", "D"]}, {"text": "x"}, {"id": "7", "text": "y"}]
    corpus = read(write("a.jsonl", "\n\n".join(map(json.dumps, entries))))
    assert not corpus.pairs
    assert [(document.id, texts(document), document.keyphrases) for document in corpus] == [
        ("7", [(0, "A b."), (0, "C"), (1, "D")], ("b", "D")),
        ("a.jsonl#3", [(0, "x")], ()),
        ("7#2", [(0, "y")], ()),
    ]


def test_pairs_in_json_lines_are_read(write: Write) -> None:
    entries = [{"title": "T", "a": "A b. C\n\nD", "b": "E"}, {"title": "T", "a": "F", "b": "G. H"}]
    corpus = read(write("a.jsonl", "\n".join(map(json.dumps, entries))))
    assert corpus.pairs
    assert [(document.id, texts(document)) for document in corpus] == [
        ("T", [(0, "A b."), (0, "C D"), (1, "E")]),
        ("T#2", [(0, "F"), (1, "G."), (1, "H")]),
    ]
