"""Annotation that a parser made and nobody corrected: how a file says so, and how results do.

A document, a file or a result that says nothing about it is taken to be annotated by people, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable

KEY = "annotation"  # of the comment in CoNLL-U files: # annotation = automatic; spaCy 3.8.18; en_core_web_sm 3.8.0
_WORD = "automatic"
_PARTLY = f"partly {_WORD}"
_UNNAMED = "a parser without a name"


def mark(parser: str) -> str:
    """The value of the comment that marks what `parser` made."""
    return f"{_WORD}; {parser}"


def parser_of(value: str) -> str | None:
    """The parser that such a value names; None for any other value."""
    word, _, parser = value.partition(";")
    return parser.strip() or _UNNAMED if word.strip().casefold() == _WORD else None


def summed_up(parsers: Iterable[str | None]) -> str | None:
    """What to say of documents of which each has its parser, or None: `automatic; spaCy 3.8.18; …`, `partly
    automatic; …`, or None.
    """
    found = dict.fromkeys(parsers)
    named = sorted(parser for parser in found if parser is not None)
    return f"{_PARTLY if None in found else _WORD}; {' / '.join(named)}" if named else None


def joined(summaries: Iterable[str | None]) -> str | None:
    """The same of several corpora of which this is said."""
    parsers: list[str | None] = []
    for summary in summaries:
        word, _, names = (summary or "").partition("; ")
        parsers += names.split(" / ") if names else []
        parsers += [None] if word != _WORD else []
    return summed_up(parsers)


def short(summary: str) -> str:
    """As a signature has it: `automatic(spaCy-3.8.18)`."""
    word, _, names = summary.partition("; ")
    parsers = dict.fromkeys(name.partition(";")[0].strip().replace(" ", "-").replace("|", "-") for name in names.split(" / "))
    return f"{word.replace(' ', '-')}({'+'.join(parsers)})"


def sentence(summary: str) -> str:
    """In plain words, as findings begin with it."""
    word, _, names = summary.partition("; ")
    some = "Some of the annotation" if word == _PARTLY else "The annotation"
    return (
        f"{some} is automatic: sentences, words, tags and trees are what a parser found ({names.replace('; ', ', ')}), its mistakes "
        "included, and not what people annotated."
    )
