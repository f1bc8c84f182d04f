"""JSON Lines: texts `{"text": ...}`, with `id`, `keyphrases` and `label` if known, their words `{"tokens": [...]}`, or
pairs of paragraphs `{"a": ..., "b": ...}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

from headscope.core.document import Document, Scalar
from headscope.corpora.files import lines
from headscope.corpora.readers.fields import NAMES, NO_CLASS, label_field, renamed, sentences_of, text_fields, token_field
from headscope.corpora.readers.json_values import parsed, string, token_sentences, whole, wrong
from headscope.corpora.readers.metadata import of_entry
from headscope.corpora.source import Flaw, Source, quoted
from headscope.errors import HeadscopeError

_KEYS = f'Write {{"text": ...}}, or {{"a": ..., "b": ...}} for a pair of paragraphs; known are {NAMES}; or tokens, a list of words'


def read_jsonl(source: Source) -> Iterator[Document]:
    """A document for each line: the paragraphs of a text, or the two of a pair. One file holds one kind."""
    return documents_of(source, ((line.number, partial(parsed, line, _KEYS)) for line in source.lines() if line.text.strip()), "lines")


def documents_of(source: Source, entries: Iterable[tuple[int, Callable[[], Mapping[str, object]]]], unit: str) -> Iterator[Document]:
    """The documents of numbered entries, some of which may be invalid."""
    pairs: bool | None = None
    for number, make in entries:
        try:
            entry = _checked(renamed(make(), source.columns, number), number)
            document = _document(entry, number, source.name)
            pairs = _is_pair(entry) if pairs is None else pairs
            if pairs != _is_pair(entry):
                kinds = ("a text in a file of pairs", "a pair in a file of texts")
                raise Flaw(number, "texts and pairs in one file", kinds[not pairs], "Put texts and pairs into separate files")
        except Flaw as flaw:
            source.report(flaw, unit)
            continue
        yield document


def holds_pairs(path: Path, columns: Mapping[str, str]) -> bool:
    """Whether the first valid line of a file is a pair; False if there is none, which reading will report."""
    try:
        for line in lines(path):
            try:
                entry = _checked(renamed(parsed(line, _KEYS), columns, line.number), line.number)
                _document(entry, line.number, "")
            except Flaw:
                continue
            return _is_pair(entry)
    except HeadscopeError:
        pass
    return False


def _is_pair(entry: Mapping[str, object]) -> bool:
    return len(text_fields(entry)) == 2


def _checked(entry: Mapping[str, object], line: int) -> Mapping[str, object]:
    """The entry, which must contain a text."""
    if not text_fields(entry) and token_field(entry) is None:
        raise Flaw(line, "missing key", f"an object with the keys {quoted(list(entry), 120)} only", _KEYS)
    return entry


def _document(entry: Mapping[str, object], line: int, name: str) -> Document:
    fields = text_fields(entry)
    tokens = None if fields else token_field(entry)
    if tokens is None:
        sentences = sentences_of({field: string(entry[field], field, line) for field in fields})
    else:
        sentences = token_sentences(entry[tokens], tokens, None, line)
    return Document(sentences=sentences, **described(entry, (*fields, *([tokens] if tokens else [])), line, name))


class Described(TypedDict):
    """The parts of a document other than its sentences."""

    id: str
    keyphrases: tuple[str, ...]
    label: str | None
    metadata: dict[str, Scalar]


def described(entry: Mapping[str, object], texts: Sequence[str], line: int, name: str) -> Described:
    """The parts of a document that an entry gives in addition to its `texts`."""
    used = (*texts, "id" if "id" in entry else "title", "keyphrases", label_field(entry) or "label")
    return {
        "id": _id(entry, line) or f"{name}#{line}",
        "keyphrases": _keyphrases(entry, line),
        "label": _label(entry, line),
        "metadata": of_entry(entry, used, line),
    }


def _id(entry: Mapping[str, object], line: int) -> str | None:
    value = entry.get("id", entry.get("title"))
    if value is None or value == "":
        return None
    return whole(value) or string(value, "id" if "id" in entry else "title", line)


def _label(entry: Mapping[str, object], line: int) -> str | None:
    field = label_field(entry)
    value = entry[field] if field is not None else None
    if field is None or value is None or (field, value) in NO_CLASS.items():
        return None
    if (number := whole(value)) is not None:
        return number
    if not isinstance(value, str):
        raise wrong(field, value, "a string or a whole number", line)
    return string(value, field, line).strip() if value.strip() else None


def _keyphrases(entry: Mapping[str, object], line: int) -> tuple[str, ...]:
    value = entry.get("keyphrases")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong("keyphrases", value, "a list of strings", line)
    return tuple(string(phrase, "keyphrases", line) for phrase in value)
