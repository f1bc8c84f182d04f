"""Mentions in their document: the head word, the kind of expression, the antecedent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.core.document import Document, Mention, Word

KINDS = ("pronoun", "name", "nominal")
_NOMINAL = ("NOUN", "PROPN", "PRON", "NUM")
_PRONOUNS = ("PRP", "PRP$")
_NAMES = ("NNP", "NNPS")


def governors(document: Document) -> list[int | None]:
    """For each word of the document, the position of its head in the document: -1 for a root, None if not annotated."""
    found: list[int | None] = []
    for sentence in document.sentences:
        start = len(found)
        found += (word.head if word.head is None else start + word.head - 1 if word.head else -1 for word in sentence.words)
    return found


def head_word(mention: Mention, words: Sequence[Word], governors: Sequence[int | None]) -> int | None:
    """The position of the word that heads a mention: the first one, nominal if possible, whose own head lies outside.

    None without a tree.
    """
    span = range(mention.start, mention.end)
    outward = [i for i in span if (governor := governors[i]) is not None and governor not in span]
    return next((i for i in outward if words[i].upos in _NOMINAL), outward[0] if outward else None)


def kind_of(head: Word) -> str | None:
    """Whether a mention with this head word is a pronoun, a name or another nominal; None if the word has no tag."""
    if head.upos is None and head.xpos is None:
        return None
    if head.upos == "PRON" or (head.upos is None and head.xpos in _PRONOUNS):
        return "pronoun"
    if head.upos == "PROPN" or (head.upos is None and head.xpos in _NAMES):
        return "name"
    return "nominal"


def antecedents(mentions: Sequence[Mention]) -> Iterator[tuple[Mention, Mention | None]]:
    """Each mention with the nearest one before it of the same entity, None for the first; from left to right,
    shorter ones first.
    """
    last: dict[str, Mention] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.start, mention.end)):
        yield mention, last.get(mention.entity)
        last[mention.entity] = mention
