"""Mentions: the head word, the kind of expression, the antecedent, and number, gender and person, as far as its words
show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headscope.core.document import Document, Mention, Word

KINDS = ("pronoun", "name", "nominal")
_NOMINAL = ("NOUN", "PROPN", "PRON", "NUM")
_PRONOUNS = ("PRP", "PRP$")
_NAMES = ("NNP", "NNPS")


def governors(document: Document) -> list[int | None]:
    """For each word of the document, the position of its head in the document: -1 for a root, None if not annotated."""
    heads: list[int | None] = []
    for sentence in document.sentences:
        start = len(heads)
        heads += (word.head if word.head is None else start + word.head - 1 if word.head else -1 for word in sentence.words)
    return heads


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
    """Each mention, from left to right, with the nearest one before it of the same entity, None for the first."""
    last: dict[str, Mention] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.start, mention.end)):
        yield mention, last.get(mention.entity)
        last[mention.entity] = mention


def listed(words: str) -> frozenset[str]:
    """Words written with spaces between them, as a set."""
    return frozenset(words.split())


class Attributes(NamedTuple):
    """The possible values of a mention's attributes; None if nothing is known."""

    number: frozenset[str] | None = None
    gender: frozenset[str] | None = None
    person: frozenset[str] | None = None


SINGULAR, PLURAL = frozenset({"singular"}), frozenset({"plural"})
MASCULINE, FEMININE, NEUTER = frozenset({"masculine"}), frozenset({"feminine"}), frozenset({"neuter"})
FIRST, SECOND, THIRD = frozenset({"1"}), frozenset({"2"}), frozenset({"3"})
ANIMATE = MASCULINE | FEMININE


def _words(words: str, attributes: Attributes) -> dict[str, Attributes]:
    return dict.fromkeys(words.split(), attributes)


PRONOUNS: dict[str, Attributes] = {
    **_words("i me my mine myself", Attributes(SINGULAR, None, FIRST)),
    **_words("we us our ours ourselves", Attributes(PLURAL, None, FIRST)),
    **_words("you your yours", Attributes(None, None, SECOND)),
    **_words("yourself", Attributes(SINGULAR, None, SECOND)),
    **_words("yourselves", Attributes(PLURAL, None, SECOND)),
    **_words("he him his himself", Attributes(SINGULAR, MASCULINE, THIRD)),
    **_words("she her hers herself", Attributes(SINGULAR, FEMININE, THIRD)),
    **_words("it its itself", Attributes(SINGULAR, NEUTER, THIRD)),
    **_words("they them their theirs themselves", Attributes(PLURAL, None, THIRD)),
}

# Titles show the gender of the name that follows, kinship terms that of the mention they head.
MALE_TITLES = listed("mr mister sir lord king prince duke baron emperor")
FEMALE_TITLES = listed("mrs ms miss madam madame lady queen princess duchess baroness empress dame")
MALE_NOUNS = MALE_TITLES | listed(
    "man men boy boys guy guys gentleman gentlemen father fathers dad daddy son sons brother brothers husband husbands uncle uncles nephew "
    "nephews grandfather grandpa grandson stepfather stepson boyfriend widower groom businessman businessmen"
)
FEMALE_NOUNS = FEMALE_TITLES | listed(
    "woman women girl girls lady ladies mother mothers mom mum mommy daughter daughters sister sisters wife wives aunt aunts niece nieces "
    "grandmother grandma granddaughter stepmother stepdaughter girlfriend widow bride businesswoman businesswomen"
)

PERSON_TYPES = frozenset({"person", "per"})
ORGANISATION_TYPES = frozenset({"organization", "organisation", "org"})


PLURAL_TAGS = frozenset({"NNS", "NNPS"})


class NameLists(NamedTuple):
    """First names in lower case that indicate gender. None are built in, since their gender depends on time and
    place.
    """

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
    """The attributes of a personal pronoun; None for any other word, and for `US` and `IT`, which may be names."""
    return None if form in ("US", "IT") else PRONOUNS.get(form.lower())


def attributes(span: Sequence[Word], head: int, kind: str, type: str | None, coordinated: bool, names: NameLists = NO_NAMES) -> Attributes:
    """The known attributes of a mention of these words, headed by the one at `head`, with its entity type if
    annotated.
    """
    if coordinated:
        return Attributes(PLURAL, None, None if any(pronoun(word.form) for word in span) else THIRD)
    if kind == "pronoun":
        return PRONOUNS.get(span[head].form.lower(), Attributes())
    return Attributes(_number(span[head], type), _gender(span, head, kind, type, names), THIRD)


def compatible(first: Attributes, second: Attributes) -> bool:
    """Whether number, gender and person can each be the same; unknown values are compatible with all."""
    return all(mine is None or theirs is None or mine & theirs for mine, theirs in zip(first, second, strict=True))


def _number(head: Word, type: str | None) -> frozenset[str] | None:
    if head.xpos is None or (type or "").lower() in ORGANISATION_TYPES:  # "the company ... it", "the company ... they"
        return None
    return PLURAL if head.xpos in PLURAL_TAGS else SINGULAR


def _gender(span: Sequence[Word], head: int, kind: str, type: str | None, names: NameLists) -> frozenset[str] | None:
    forms = [word.form.lower().rstrip(".") for word in span[: head + 1]]
    before = set(forms) if kind == "proper" else set()
    genders: frozenset[str] = frozenset()
    if forms[head] in MALE_NOUNS or before & (MALE_TITLES | names.masculine):
        genders |= MASCULINE
    if forms[head] in FEMALE_NOUNS or before & (FEMALE_TITLES | names.feminine):
        genders |= FEMININE
    return genders or (ANIMATE if (type or "").lower() in PERSON_TYPES else None)
