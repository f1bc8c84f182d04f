"""Which words are nouns and pronouns, and which mention each of them belongs to; by universal tags or by those of the Penn Treebank."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.core.annotation import Annotated
from headscope.core.document import Document, Mention, Word
from headscope.corpora.resolution.head_words import HeadWords

_PERSONAL = frozenset({"PRP", "PRP$"})
_COMMON = frozenset({"NN", "NNS"})
_NAMES = frozenset({"NNP", "NNPS"})
# Penn tags of what is a PRON in Universal Dependencies, and no personal pronoun: who, which, this, there, someone, one.
_OTHER_PRONOUNS = frozenset({"WP", "WP$", "WDT", "WRB", "DT", "PDT", "EX", "NN", "NNS", "IN", "CD", "JJ"})


def is_noun(word: Word) -> bool:
    """Whether a word is a common noun (NN, NNS; NOUN)."""
    if word.upos is None:
        return word.xpos in _COMMON
    return word.upos == "NOUN" and word.xpos not in _NAMES


def is_pronoun(word: Word) -> bool:
    """Whether a word is a personal or possessive pronoun (PRP, PRP$; PRON, where no finer tag says that it is another kind)."""
    if word.upos is None or word.xpos in _PERSONAL:
        return word.xpos in _PERSONAL
    return word.upos == "PRON" and word.xpos not in _OTHER_PRONOUNS


def lowest(document: Document) -> list[Mention | None]:
    """For each word the mention it belongs to: the shortest one over it, of equals the later one listed."""
    found: list[Mention | None] = [None] * sum(map(len, document.sentences))
    for mention in document.mentions:
        for place in range(mention.start, mention.end):
            old = found[place]
            if old is None or mention.end - mention.start <= old.end - old.start:
                found[place] = mention
    return found


def headed(document: Document) -> list[Mention | None]:
    """For each word the mention whose head it is, the shortest one of several; None for all other words.

    A word in the middle of a mention says little about what the mention refers to: `kitchen` in "the door of the kitchen" is not the door.
    """
    whole = Annotated(document).select(range(sum(map(len, document.sentences))))
    heads = HeadWords(whole)
    found: list[Mention | None] = [None] * len(whole.words)
    for mention in sorted(whole.mentions, key=lambda mention: mention.start - mention.end):
        found[heads.of(mention).head] = mention
    return found


def covered(mentions: Sequence[Mention]) -> dict[str, set[int]]:
    """The places of all words of each entity's mentions."""
    found: dict[str, set[int]] = {}
    for mention in mentions:
        found.setdefault(mention.entity, set()).update(range(mention.start, mention.end))
    return found
