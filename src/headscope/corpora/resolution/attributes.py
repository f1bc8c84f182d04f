"""Number, gender and person of a mention, as far as its words tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headscope.core.document import Word
from headscope.corpora.mentions import kind_of
from headscope.corpora.resolution.lists import (
    ANIMATE,
    FEMALE_NOUNS,
    FEMALE_TITLES,
    FEMININE,
    MALE_NOUNS,
    MALE_TITLES,
    MASCULINE,
    ORGANISATION_TYPES,
    PERSON_TYPES,
    PLURAL,
    PRONOUNS,
    SINGULAR,
    THIRD,
    Attributes,
)

PLURAL_TAGS = frozenset({"NNS", "NNPS"})


class NameLists(NamedTuple):
    """First names in lower case that tell gender; none are built in, since what they tell depends on time and place."""

    masculine: frozenset[str] = frozenset()
    feminine: frozenset[str] = frozenset()


NO_NAMES = NameLists()


def kind(span: Sequence[Word], head: int, coordinated: bool) -> str:
    """`pronoun`, `proper` or `nominal`, by the tag of the head word, which is the one at `head`.

    Without a tag its form decides, and only a single word can be a pronoun: `Edward I` is a name.
    """
    if coordinated:
        return "nominal"
    tagged = kind_of(span[head])
    if tagged is not None:
        return "proper" if tagged == "name" else tagged
    if len(span) == 1 and pronoun(span[head].form) is not None:
        return "pronoun"
    return "proper" if span[head].form[:1].isupper() else "nominal"


def pronoun(form: str) -> Attributes | None:
    """What a personal pronoun says; None for any other word, and for `US` and `IT`, which may be names."""
    return None if form in ("US", "IT") else PRONOUNS.get(form.lower())


def attributes(span: Sequence[Word], head: int, kind: str, type: str | None, coordinated: bool, names: NameLists = NO_NAMES) -> Attributes:
    """What is known of a mention of these words, headed by the one at `head`, with an entity type if one is
    annotated.
    """
    if coordinated:
        return Attributes(PLURAL, None, None if any(pronoun(word.form) for word in span) else THIRD)
    if kind == "pronoun":
        return PRONOUNS.get(span[head].form.lower(), Attributes())
    return Attributes(_number(span[head], type), _gender(span, head, kind, type, names), THIRD)


def compatible(one: Attributes, other: Attributes) -> bool:
    """Whether number, gender and person can each be the same; what is not known fits everything."""
    return all(mine is None or theirs is None or mine & theirs for mine, theirs in zip(one, other, strict=True))


def _number(head: Word, type: str | None) -> frozenset[str] | None:
    if head.xpos is None or (type or "").lower() in ORGANISATION_TYPES:  # "the company ... it", "the company ... they"
        return None
    return PLURAL if head.xpos in PLURAL_TAGS else SINGULAR


def _gender(span: Sequence[Word], head: int, kind: str, type: str | None, names: NameLists) -> frozenset[str] | None:
    forms = [word.form.lower().rstrip(".") for word in span[: head + 1]]
    before = set(forms) if kind == "proper" else set()
    found: frozenset[str] = frozenset()
    if forms[head] in MALE_NOUNS or before & (MALE_TITLES | names.masculine):
        found |= MASCULINE
    if forms[head] in FEMALE_NOUNS or before & (FEMALE_TITLES | names.feminine):
        found |= FEMININE
    return found or (ANIMATE if (type or "").lower() in PERSON_TYPES else None)
