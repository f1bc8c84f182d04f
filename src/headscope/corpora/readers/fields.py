"""The names of the fields, in a line of JSON or a row of a table, for the text, the two texts of a pair, and the
class.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from headscope.core.document import Sentence
from headscope.core.suggest import choose_from
from headscope.corpora.readers.text import plain_words, split_paragraph, text_paragraphs
from headscope.corpora.source import Flaw, quoted
from headscope.errors import HeadscopeError

PAIRS = (
    ("a", "b"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question", "sentence"),
    ("question1", "question2"),
    ("source", "target"),
)
NAMES = f"text or sentence, or for a pair of texts {', '.join(' and '.join(pair) for pair in PAIRS)}"
NO_CLASS = {"gold_label": "-"}  # the label in SNLI and MultiNLI if annotators did not agree
_LABELS = ("label", "gold_label")
_TOKENS = ("tokens", "words")


def text_fields(names: Container[str]) -> tuple[str, ...]:
    """The names of the text field, or of the two fields of a pair, among all names; () if there is none."""
    known = (("text",), *PAIRS, ("sentence",))
    return next((fields for fields in known if all(name in names for name in fields)), ())


def token_field(entry: Mapping[str, object]) -> str | None:
    """The name of the field with a list of words, if it replaces the text."""
    return next((name for name in _TOKENS if isinstance(entry.get(name), list)), None)


def require_known(columns: Mapping[str, str]) -> None:
    """Raise an error for an empty column name, or for a field that is not read."""
    known = ("text", "id", "label", "keyphrases", "sentence", "title", "gold_label", *_TOKENS, *(name for pair in PAIRS for name in pair))
    for name, column in columns.items():
        if name not in known or not isinstance(column, str):
            raise HeadscopeError(f"{name}={column!r} does not name a column", choose_from(column, dict.fromkeys(known), "Name columns for"))


def renamed(entry: Mapping[str, object], columns: Mapping[str, str], line: int) -> Mapping[str, object]:
    """The entry with its columns renamed to the names of fields; `columns` has the table's name for each field."""
    if not columns:
        return entry
    if missing := [name for name in columns.values() if name not in entry]:
        raise Flaw(line, "missing column", f"there is no column {missing[0]!r}: {quoted(list(entry), 200)}", "Name one of these")
    others = {name: value for name, value in entry.items() if name not in columns.values() and name not in columns}
    return {name: entry[column] for name, column in columns.items()} | others


def label_field(names: Container[str]) -> str | None:
    """The name of the class field among all names."""
    return next((name for name in _LABELS if name in names), None)


def sentences_of(texts: Mapping[str, str]) -> tuple[Sentence, ...]:
    """The sentences of a text, or of a pair's two paragraphs. A field named as a sentence is always one sentence."""
    if len(texts) == 1 and "text" in texts:
        return tuple(text_paragraphs(texts["text"]))
    found: list[Sentence] = []
    for paragraph, (name, text) in enumerate(texts.items()):
        whole = name.startswith("sentence")
        found += [Sentence(plain_words(text), paragraph=paragraph)] if whole else split_paragraph(text, paragraph)
    return tuple(found)
