"""The mentions of a text as a resolver sees them: in order, each with its head word, kind, wording and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.core.annotation import Annotation
from headscope.core.document import Word
from headscope.corpora.resolution.attributes import NO_NAMES, NameLists, attributes, kind
from headscope.corpora.resolution.head_words import SOURCES, HeadWords, Source
from headscope.corpora.resolution.lists import Attributes, listed

_DETERMINERS = listed("the a an this that these those")


@dataclass(frozen=True, slots=True)
class Expression:
    """A mention: the words [start, end) of its text, headed by word `head`; `wording` and `head_form` are in lower
    case.
    """

    entity: str
    start: int
    end: int
    head: int
    source: Source
    kind: str
    wording: str
    head_form: str
    attributes: Attributes

    def precedes(self, other: Expression) -> bool:
        """Whether it starts earlier or, from the same start, ends earlier."""
        return (self.start, self.end) < (other.start, other.end)


def expressions(
    text: Annotation,
    sources: Sequence[Source] = SOURCES,
    *,
    singletons: bool = True,
    strip_determiner: bool = False,
    names: NameLists = NO_NAMES,
) -> list[Expression]:
    """The mentions of a text from left to right; without `singletons`, only those of entities that the document
    mentions again.
    """
    heads = HeadWords(text, sources)
    found = []
    for mention in text.mentions:
        if not singletons and mention.entity in text.singletons:
            continue
        place, source, coordinated = heads.of(mention)
        span = text.words[mention.start : mention.end]
        head = text.words[place]
        what = kind(span, place - mention.start, coordinated)
        known = attributes(span, place - mention.start, what, mention.type, coordinated, names)
        wording = _wording(span, strip_determiner)
        found.append(Expression(mention.entity, mention.start, mention.end, place, source, what, wording, head.form.lower(), known))
    return sorted(found, key=lambda one: (one.start, one.end))


def _wording(span: Sequence[Word], strip_determiner: bool) -> str:
    forms = [word.form.lower() for word in span]
    return " ".join(forms[1:] if strip_determiner and len(forms) > 1 and forms[0] in _DETERMINERS else forms)
