"""JSON Lines: texts `{"text": ...}`, with `id`, `keyphrases` and `label` if known, or pairs of paragraphs `{"a":
..., "b": ...}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headscope.core.document import Document
from headscope.corpora.files import Line, lines
from headscope.corpora.readers.fields import NAMES, NO_CLASS, label_field, sentences_of, text_fields
from headscope.corpora.readers.json_values import parsed, string, whole, wrong
from headscope.corpora.readers.metadata import of_entry
from headscope.corpora.source import Flaw, Source, quoted
from headscope.errors import HeadscopeError

_KEYS = f'Write {{"text": ...}}, or {{"a": ..., "b": ...}} for a pair of paragraphs; known are {NAMES}'


def read_jsonl(source: Source) -> Iterator[Document]:
    """A document for each line: the paragraphs of a text, or the two of a pair. One file holds one kind."""
    pairs: bool | None = None
    for line in source.lines():
        if not line.text.strip():
            continue
        try:
            entry = _entry(line)
            document = _document(entry, line.number, source.name)
            pairs = _is_pair(entry) if pairs is None else pairs
            if pairs != _is_pair(entry):
                kinds = ("a text in a file of pairs", "a pair in a file of texts")
                raise Flaw(line.number, "texts and pairs in one file", kinds[not pairs], "Put texts and pairs into files of their own")
        except Flaw as flaw:
            source.report(flaw, "lines")
            continue
        yield document


def holds_pairs(path: Path) -> bool:
    """Whether the first sound line of a file is a pair; False if there is none, which reading will report."""
    try:
        for line in lines(path):
            try:
                entry = _entry(line)
                _document(entry, line.number, "")
            except Flaw:
                continue
            return _is_pair(entry)
    except HeadscopeError:
        pass
    return False


def _is_pair(entry: dict[str, object]) -> bool:
    return len(text_fields(entry)) == 2


def _entry(line: Line) -> dict[str, object]:
    entry = parsed(line, _KEYS)
    if not text_fields(entry):
        raise Flaw(line.number, "missing key", f"an object with the keys {quoted(list(entry), 120)} only", _KEYS)
    return entry


def _document(entry: dict[str, object], line: int, name: str) -> Document:
    sentences = sentences_of({field: string(entry[field], field, line) for field in text_fields(entry)})
    id = _id(entry, line) or f"{name}#{line}"
    used = (*text_fields(entry), "id" if "id" in entry else "title", "keyphrases", label_field(entry) or "label")
    metadata = of_entry(entry, used, line)
    return Document(id, sentences, keyphrases=_keyphrases(entry, line), label=_label(entry, line), metadata=metadata)


def _id(entry: dict[str, object], line: int) -> str | None:
    value = entry.get("id", entry.get("title"))
    if value is None or value == "":
        return None
    return whole(value) or string(value, "id" if "id" in entry else "title", line)


def _label(entry: dict[str, object], line: int) -> str | None:
    field = label_field(entry)
    value = entry[field] if field is not None else None
    if field is None or value is None or (field, value) in NO_CLASS.items():
        return None
    if (number := whole(value)) is not None:
        return number
    if not isinstance(value, str):
        raise wrong(field, value, "a string or a whole number", line)
    return string(value, field, line).strip() if value.strip() else None


def _keyphrases(entry: dict[str, object], line: int) -> tuple[str, ...]:
    value = entry.get("keyphrases")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong("keyphrases", value, "a list of strings", line)
    return tuple(string(phrase, "keyphrases", line) for phrase in value)
