"""The names under which a line of JSON or a row of a table holds its text, the two texts of a pair, and its class."""

from __future__ import annotations

from collections.abc import Container, Mapping

from headscope.core.document import Sentence
from headscope.corpora.readers.text import plain_words, split_paragraph, text_paragraphs

PAIRS = (
    ("a", "b"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question", "sentence"),
    ("question1", "question2"),
    ("source", "target"),
)
NAMES = f"text or sentence, or for a pair of texts {', '.join(' and '.join(pair) for pair in PAIRS)}"
NO_CLASS = {"gold_label": "-"}  # what SNLI and MultiNLI write where annotators did not agree
_LABELS = ("label", "gold_label")


def text_fields(names: Container[str]) -> tuple[str, ...]:
    """The names of the text, or of the two texts of a pair, among all names; () if there is none."""
    known = (("text",), *PAIRS, ("sentence",))
    return next((fields for fields in known if all(name in names for name in fields)), ())


def label_field(names: Container[str]) -> str | None:
    """The name of the class among all names."""
    return next((name for name in _LABELS if name in names), None)


def sentences_of(texts: Mapping[str, str]) -> tuple[Sentence, ...]:
    """The sentences of a text, or of a pair's two paragraphs. What is called a sentence is one, whatever stands in
    it.
    """
    if len(texts) == 1 and "text" in texts:
        return tuple(text_paragraphs(texts["text"]))
    found: list[Sentence] = []
    for paragraph, (name, text) in enumerate(texts.items()):
        whole = name.startswith("sentence")
        found += [Sentence(plain_words(text), paragraph=paragraph)] if whole else split_paragraph(text, paragraph)
    return tuple(found)
