"""Labelled spans and pairs of spans as JSON Lines, the format of jiant's edge probing with a few additions.

{"text": "Ann ate ice cream", "targets": [{"span1": [1, 2], "span2": [2, 4], "label": "ARG1"}]}: words are separated by
white space, or given as `tokens` instead of or in addition to the text, a list of words or of sentences; spans of words
[start, end), counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora.readers.brackets import Schema
from headscope.corpora.readers.draft import Draft
from headscope.corpora.readers.json_values import parsed, string, token_sentences, whole, wrong
from headscope.corpora.source import Flaw, Source, quoted

TASK = "spans"  # the task of targets that name none
_NONE = Schema()  # of coreference brackets, which these files do not have
_KEYS = 'Write {"text": ..., "targets": [{"span1": [start, end], "span2": [start, end], "label": ...}, ...]}; span2 may be missing'


def read_spans(source: Source, task: str = TASK) -> Iterator[Document]:
    """A document for each line, or for consecutive lines with the same `document`.

    Targets belong to the task named in the target or in its line, or else to `task`.
    """
    draft: Draft | None = None
    current: str | None = None
    for line in source.lines():
        if not line.text.strip():
            continue
        try:
            entry = parsed(line, _KEYS)
            name, sentences = _name(entry, ("document", "document_id"), line.number), _sentences(entry, line.number)
            edges = _edges(entry, task, sum(map(len, sentences)), line.number)
            id = name or _name(entry, ("id", "sent_id"), line.number) or f"{source.name}#{line.number}"
        except Flaw as flaw:
            source.report(flaw, "lines")
            continue
        if draft is None or name is None or name != current:
            if draft and (document := draft.finish()):
                yield document
            draft, current = Draft(source, id), name
        for number, sentence in enumerate(sentences):
            draft.add(sentence, (), _NONE, () if number else edges)
    if draft and (document := draft.finish()):
        yield document


def _name(entry: dict[str, object], keys: tuple[str, ...], line: int) -> str | None:
    """The value under one of these keys, in the entry itself or in its `info`."""
    info = entry.get("info")
    for holder in (entry, info if isinstance(info, dict) else {}):
        for key in keys:
            if holder.get(key) not in (None, ""):
                return whole(holder[key]) or string(holder[key], key, line)
    return None


def _edges(entry: dict[str, object], task: str, size: int, line: int) -> list[Edge]:
    given = entry.get("targets")
    if not isinstance(given, list):
        raise wrong("targets", given, "a list of objects", line)
    task = string(entry["task"], "task", line) if "task" in entry else task
    return [_edge(target, task, size, line) for target in given]


def _sentences(entry: dict[str, object], line: int) -> tuple[Sentence, ...]:
    text = string(entry["text"], "text", line) if "text" in entry else None
    tokens = entry.get("tokens")
    if tokens is None:
        if text is None:
            raise Flaw(line, "missing key", f"an object with the keys {quoted(list(entry), 120)} only", _KEYS)
        return (Sentence(tuple(map(Word, text.split()))),)
    return token_sentences(tokens, "tokens", text, line)


def _edge(target: object, task: str, size: int, line: int) -> Edge:
    if not isinstance(target, dict):
        raise wrong("targets", target, "a list of objects", line)
    if "task" in target:
        task = string(target["task"], "task", line)
    first = _span(target.get("span1"), "span1", size, line)
    second = None if target.get("span2") is None else _span(target["span2"], "span2", size, line)
    key = next((key for key in ("label", "labels") if key in target), None)
    if key is None:
        raise Flaw(line, "no label", f"a target without a label: {quoted(target, 120)}", "Give it a `label`: a string, or a list of them")
    given = target[key] if isinstance(target[key], list) else [target[key]]
    return Edge(task, tuple(sorted({whole(label) or string(label, key, line) for label in given})), first, second)


def _span(value: object, key: str, size: int, line: int) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2 or any(whole(place) is None for place in value):
        raise wrong(key, value, "a list [start, end] of two whole numbers", line)
    start, end = value
    if not 0 <= start < end <= size:
        problem = f"`{key}` is {quoted(value)} in a text of {size} words"
        raise Flaw(line, "span outside the text", problem, "Count words from 0, and end after the last word of the span")
    return start, end
