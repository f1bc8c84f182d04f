"""Corpora from objects in memory: lists of texts, tables, datasets, parsed documents.

Objects without trees are copied to JSON lines, which are read like any file: one entry per document, with sorted keys,
so that the hash depends neither on the order of columns nor on the type of table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from headscope.core.document import Document
from headscope.corpora.corpus import Corpus, OnError
from headscope.corpora.formats import sniffed
from headscope.corpora.readers.arrow import rows
from headscope.corpora.readers.fields import NAMES, renamed, text_fields, token_field
from headscope.corpora.readers.json_values import plain
from headscope.corpora.readers.spacy_docs import document_of
from headscope.corpora.source import Flaw, quoted
from headscope.corpora.spool import Spool
from headscope.errors import HeadscopeError

_KINDS = "a list of strings or of dicts, a table, a dataset, spaCy Docs, or conllu token lists"
_Entries = Iterator[Mapping[str, object]]


def corpus_of(texts: Any, columns: Mapping[str, str], on_error: OnError = "raise") -> Corpus:
    """The corpus of texts in memory. `columns` are the names that a table or dicts have for `text`, `id` and others."""
    if texts is None or isinstance(texts, Mapping | bytes | set | frozenset | int | float):
        splits = f"; it has {', '.join(map(str, texts))}" if isinstance(texts, Mapping) else ""
        remedy = "Give one of its values" if _package(texts) == "datasets" else f"Give {_KINDS}"
        raise HeadscopeError(f"{_kind(texts)} is not a corpus{splits}", remedy)
    if _package(texts) == "datasets" and hasattr(texts, "with_format"):
        return _dataset(texts, columns, on_error)
    if hasattr(texts, "__arrow_c_stream__") and hasattr(texts, "columns" if hasattr(texts, "columns") else "schema"):
        return _entries_corpus(_table(texts), "the table", "row", columns, on_error, _once(texts))
    if type(texts).__name__ == "DocBin" and _package(texts) == "spacy":
        from spacy.vocab import Vocab

        texts = list(texts.get_docs(Vocab()))
    if hasattr(texts, "to_pylist"):  # an array of Arrow
        texts = texts.to_pylist()
    if _is_doc(texts) or _is_token_list(texts) or isinstance(texts, Document):
        texts = [texts]
    if not isinstance(texts, Iterable):
        raise HeadscopeError(f"{_kind(texts)} is not a corpus", f"Give {_KINDS}")
    return _listed(texts, columns, on_error)


def _listed(texts: Iterable[Any], columns: Mapping[str, str], on_error: OnError) -> Corpus:
    """The corpus of a list or another iterable; the type of its first item decides how it is read."""
    once = _once(texts)
    items = iter(texts)
    whole = f"the {'stream' if once else 'list'}"
    try:
        first = next(items)
    except StopIteration:
        raise HeadscopeError(f"{whole} of texts is empty", "Give at least one text") from None
    numbered = enumerate(chain([first], items), 1)
    kind = next((name for name, suits in _ITEMS.items() if suits(first)), "a string")
    every = (_checked(item, kind, number, whole) for number, item in numbered)
    if kind in ("a string", "a dict"):
        entries: _Entries = ({"text": item} if isinstance(item, str) else item for item in every)
        return _entries_corpus(entries, whole, "item", columns, on_error, once)
    if columns:
        raise HeadscopeError(f"columns are named ({', '.join(columns)}) for items that are {_kind(first)}", "Omit them")
    if kind == "a conllu TokenList":
        spool = Spool("memory.conllu", "the token lists", once=once).write(item.serialize().encode() for item in every)
        return Corpus((spool.path,), "conllu", on_error)
    if kind == "a headscope Document":
        return Corpus.of(every)
    return Corpus.of(_spacy(every))


def _spacy(docs: Iterable[Any]) -> Iterator[Document]:
    for number, doc in enumerate(docs, 1):
        try:
            yield document_of(doc, number, "doc")
        except Flaw as flaw:
            raise HeadscopeError(f"Doc {number}: {flaw.problem}", flaw.remedy) from None


def _dataset(dataset: Any, columns: Mapping[str, str], on_error: OnError) -> Corpus:
    """The corpus of a Hugging Face dataset: its Arrow table, or the rows of a streamed one."""
    if hasattr(dataset, "num_rows"):
        batches = (batch for table in dataset.with_format("arrow").iter(1000) for batch in table.to_batches())
        return _entries_corpus(rows(batches), "the dataset", "row", columns, on_error, once=False)
    streamed = ({str(name): plain(value) for name, value in row.items()} for row in dataset.with_format(None))
    return _entries_corpus(streamed, "the dataset", "row", columns, on_error, once=True)


def _table(table: Any) -> _Entries:
    import pyarrow as pa

    return rows(table if isinstance(table, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(table))


def _entries_corpus(entries: _Entries, whole: str, unit: str, columns: Mapping[str, str], on_error: OnError, once: bool) -> Corpus:
    """The corpus of entries like those of JSON lines, copied to a file."""
    first = next(entries, None)
    if first is None:
        raise HeadscopeError(f"{whole} is empty", "Give at least one text")
    if not columns and not text_fields(first) and token_field(first) is None:
        problem = f"{whole} has no column with a text: {quoted(list(first), 400)}"
        raise HeadscopeError(problem, f'Name it, as in headscope.read(table, text="body"), or call it {NAMES}')
    lines = (_line(entry, columns, number, whole, unit) for number, entry in enumerate(chain([first], entries), 1))
    spool = Spool("text", whole, unit, once=once).write(lines)
    return Corpus((spool.path,), sniffed(spool.path, "jsonl"), on_error)


def _line(entry: Mapping[str, object], columns: Mapping[str, str], number: int, whole: str, unit: str) -> bytes:
    """An entry as a line of JSON. Keys without a value are omitted, except for the text."""
    values = {str(name): plain(value) for name, value in entry.items()}
    try:
        values = dict(renamed(values, columns, number))
    except Flaw as flaw:
        raise HeadscopeError(f"{unit} {number} of {whole}: {flaw.problem}", flaw.remedy) from None
    kept = {name: value for name, value in values.items() if value is not None or name in text_fields(values)}
    return json.dumps(kept, sort_keys=True).encode() + b"\n"


def _checked(item: Any, kind: str, number: int, whole: str) -> Any:
    if not _ITEMS[kind](item):
        remedy = "Give strings, or dicts with a `text`" if kind in ("a string", "a dict") else f"Give {_KINDS}"
        raise HeadscopeError(f"item {number} of {whole} is {_kind(item)} where {kind} is needed: {quoted(item)}", remedy)
    return item


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__}"


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _once(texts: object) -> bool:
    """Whether an iterable can be read only once."""
    return isinstance(texts, Iterator) or type(texts).__name__ == "RecordBatchReader"


def _is_doc(value: object) -> bool:
    return type(value).__name__ == "Doc" and _package(value) == "spacy"


def _is_token_list(value: object) -> bool:
    return type(value).__name__ == "TokenList" and _package(value) == "conllu"


_ITEMS = {
    "a string": lambda item: isinstance(item, str),
    "a dict": lambda item: isinstance(item, Mapping),
    "a headscope Document": lambda item: isinstance(item, Document),
    "a spaCy Doc": _is_doc,
    "a conllu TokenList": _is_token_list,
}
