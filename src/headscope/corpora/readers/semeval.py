"""SemEval-2010 task 8, relations between nominals: https://aclanthology.org/S10-1006.

An item is a numbered sentence between quotes with <e1> and <e2> around two nominals, the relation on the next line, and
sometimes a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from headscope.core.document import Document, Edge
from headscope.corpora.files import Line
from headscope.corpora.readers.tokenise import Span, sentence, word_spans
from headscope.corpora.source import Flaw, Source, quoted, sound

_ITEM = re.compile(r'([0-9]+)(?:\t|\s+(?="))')
_TAG = re.compile(r"<(/?)e([12])>")
_LAYOUT = 'Write a number, a tab and "a sentence with an <e1>nominal</e1> and <e2>another</e2>"'


def read_semeval(source: Source) -> Iterator[Document]:
    """A document for each item: its one sentence, split into words by a few rules, and its relation from e1 (first)
    to e2 (second).
    """
    for lines in _items(source):
        try:
            document = _document(lines)
        except Flaw as flaw:
            source.report(flaw, "items")
            continue
        yield document


def looks_like_item(line: str) -> bool:
    """Whether a line is a numbered sentence with a marked nominal."""
    return _ITEM.match(line) is not None and "<e1>" in line


def _items(source: Source) -> Iterator[list[Line]]:
    """The items of a file: the non-blank lines from one numbered sentence to the next."""
    found: list[Line] = []
    for line in source.lines():
        if line.text.strip():
            if found and _ITEM.match(line.text):
                yield found
                found = []
            found.append(line)
    if found:
        yield found


def _document(lines: list[Line]) -> Document:
    line = lines[0].number
    match = _ITEM.match(sound(lines[0]))
    if match is None:
        raise Flaw(line, "no numbered sentence", f"{quoted(lines[0].text)} where an item should begin", _LAYOUT)
    text, places = _without_tags(_unquoted(lines[0].text[match.end() :].strip()), line)
    if len(lines) < 2 or lines[1].text.startswith("Comment:"):
        remedy = "Write the relation on the line after the sentence, Other if there is none"
        raise Flaw(line, "no relation", f"item {match[1]} has no relation", remedy)
    spans = word_spans(text, {edge for place in places.values() for edge in place})
    first, second = (_words(spans, places[name], name, line) for name in "12")
    return Document(match[1], (sentence(text, spans),), edges=(Edge("relations", (sound(lines[1]).strip(),), first, second),))


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _without_tags(marked: str, line: int) -> tuple[str, dict[str, Span]]:
    """The text without its tags, and for each nominal the place of its characters."""
    text, end = "", 0
    places: dict[str, list[int]] = {}
    for tag in _TAG.finditer(marked):
        text += marked[end : tag.start()]
        end = tag.end()
        place = places.setdefault(tag[2], [])
        if len(place) != bool(tag[1]):
            raise Flaw(line, "tags out of order", f"{tag[0]} out of order in {quoted(marked, 120)}", _LAYOUT)
        place.append(len(text))
    if sorted(map(len, places.values())) != [2, 2]:
        raise Flaw(line, "tags missing", f"not both nominals are marked in {quoted(marked, 120)}", _LAYOUT)
    return text + marked[end:], {name: Span(*place) for name, place in places.items()}


def _words(spans: list[Span], place: Span, name: str, line: int) -> tuple[int, int]:
    """The words [start, end) between the tags of a nominal; words are split at the tags."""
    inside = [number for number, span in enumerate(spans) if place.start <= span.start and span.end <= place.end]
    if not inside:
        raise Flaw(line, "empty nominal", f"there is no word between <e{name}> and </e{name}>", _LAYOUT)
    return inside[0], inside[-1] + 1
