"""Questions with passages as JSON Lines, one or more of which hold the answer.

{"passages": ["Ann lives in Rome.", "Bob lives in Oslo."], "gold": 1, "question": "Bob lives in", "answer": "Oslo."}:
the text is the passages in order, each a paragraph, and the question at the end. `gold` is the number of the passage
that answers it, counted from 0, or a list of numbers. The answer is needed only by studies in which a model answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from headscope.core.document import PASSAGE, Document, Edge, Sentence
from headscope.corpora.readers.json_values import parsed, string, whole, wrong
from headscope.corpora.readers.metadata import of_entry
from headscope.corpora.readers.text import split_paragraph
from headscope.corpora.source import Flaw, Source, quoted

_KEYS = 'Write {"passages": ["...", "..."], "gold": 0, "question": "...", "answer": "..."}; gold counts passages from 0'


def holds_passages(texts: Sequence[str]) -> bool:
    """Whether the first line of a file is a question with passages."""
    try:
        entry = json.loads(texts[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and isinstance(entry.get("passages"), list) and "question" in entry


def read_passages(source: Source) -> Iterator[Document]:
    """A document for each line."""
    for line in source.lines():
        if line.text.strip():
            try:
                document = _document(parsed(line, _KEYS), line.number, source.name)
            except Flaw as flaw:
                source.report(flaw, "lines")
                continue
            yield document


def _document(entry: Mapping[str, object], line: int, name: str) -> Document:
    if missing := [key for key in ("passages", "gold", "question") if key not in entry]:
        raise Flaw(line, "missing key", f"no `{missing[0]}` in an object with the keys {quoted(list(entry), 120)}", _KEYS)
    given = entry["passages"]
    if not isinstance(given, list) or not given:
        raise wrong("passages", given, "a list of strings", line)
    texts = [*(string(text, "passages", line) for text in given), string(entry["question"], "question", line)]
    paragraphs = [tuple(split_paragraph(text, number)) for number, text in enumerate(texts)]
    ends = [0]
    for paragraph in paragraphs:
        ends.append(ends[-1] + sum(map(len, paragraph)))
    question = ends[-2], ends[-1]
    edges = tuple(Edge(PASSAGE, ("gold",), question, (ends[number], ends[number + 1])) for number in _gold(entry["gold"], len(given), line))
    id = entry.get("id")
    named = None if id is None else whole(id) or string(id, "id", line)
    sentences: tuple[Sentence, ...] = tuple(sentence for paragraph in paragraphs for sentence in paragraph)
    return Document(named or f"{name}#{line}", sentences, edges=edges, metadata=of_entry(entry, ("id", "question", "gold"), line))


def _gold(value: object, count: int, line: int) -> list[int]:
    """The numbers of the passages that answer the question, each once."""
    numbers = value if isinstance(value, list) else [value]
    found = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    if not found or len(found) < len(numbers):
        raise wrong("gold", value, "the number of a passage, or a list of numbers", line)
    if outside := [number for number in found if not 0 <= number < count]:
        raise Flaw(line, "no such passage", f"`gold` is {outside[0]}, and there are {count} passages", "Count passages from 0")
    return sorted({*found})
