"""The mentions of a text in the form that resolvers use, and the rules of Clark et al.'s Table 2 for antecedents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headscope.core.annotation import Annotation
from headscope.core.document import Word
from headscope.corpora.resolution.head_words import SOURCES, HeadWords, Source
from headscope.corpora.resolution.mentions import NO_NAMES, Attributes, NameLists, attributes, compatible, kind, listed

_DETERMINERS = listed("the a an this that these those")


@dataclass(frozen=True, slots=True)
class Expression:
    """A mention: the words [start, end) of its text, headed by word `head`; its texts are in lower case."""

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
    """The mentions of a text from left to right; without `singletons`, only those of entities mentioned again."""
    heads = HeadWords(text, sources)
    mentions = []
    for mention in text.mentions:
        if not singletons and mention.entity in text.singletons:
            continue
        place, source, coordinated = heads.of(mention)
        span = text.words[mention.start : mention.end]
        head = text.words[place]
        what = kind(span, place - mention.start, coordinated)
        known = attributes(span, place - mention.start, what, mention.type, coordinated, names)
        wording = _wording(span, strip_determiner)
        mentions.append(Expression(mention.entity, mention.start, mention.end, place, source, what, wording, head.form.lower(), known))
    return sorted(mentions, key=lambda expression: (expression.start, expression.end))


def _wording(span: Sequence[Word], strip_determiner: bool) -> str:
    forms = [word.form.lower() for word in span]
    return " ".join(forms[1:] if strip_determiner and len(forms) > 1 and forms[0] in _DETERMINERS else forms)


Sieve = Callable[[Expression, Expression], bool]


def same_wording(mention: Expression, candidate: Expression) -> bool:
    """Whether the wordings are the same, in any case."""
    return mention.wording == candidate.wording


def same_head(mention: Expression, candidate: Expression) -> bool:
    """Whether the head words are the same, in any case."""
    return mention.head_form == candidate.head_form


def agrees(mention: Expression, candidate: Expression) -> bool:
    """Whether number, gender and person do not contradict each other."""
    return compatible(mention.attributes, candidate.attributes)


def anything(mention: Expression, candidate: Expression) -> bool:
    """True: any candidate passes."""
    return True


SIEVES: tuple[Sieve, ...] = (same_wording, same_head, agrees, anything)


def nearest(mention: Expression, candidates: Iterable[Expression]) -> Expression | None:
    """The candidate whose head word is nearest; of two equally near, the one that starts later."""
    return min(candidates, key=lambda candidate: (abs(candidate.head - mention.head), -candidate.start, -candidate.end), default=None)


def head_match(mention: Expression, candidates: Sequence[Expression], fallback: bool = False) -> Expression | None:
    """The nearest candidate with the same head word. If there is none: None, or with `fallback` the nearest of all."""
    match = nearest(mention, (candidate for candidate in candidates if same_head(mention, candidate)))
    return nearest(mention, candidates) if match is None and fallback else match


def sieve(mention: Expression, candidates: Sequence[Expression], sieves: Iterable[Sieve] = SIEVES) -> Expression | None:
    """The nearest candidate that passes the first sieve that any candidate passes."""
    for passes in sieves:
        match = nearest(mention, (candidate for candidate in candidates if passes(mention, candidate)))
        if match is not None:
            return match
    return None
