"""Closed lists of English words that tell number, gender and person."""

from __future__ import annotations

from typing import NamedTuple


def listed(words: str) -> frozenset[str]:
    """Words written with spaces between them, as a set."""
    return frozenset(words.split())


class Attributes(NamedTuple):
    """What is known of a mention: the values that each can have; None if nothing is known."""

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

# Titles tell the gender of the name they stand before, kinship terms that of the mention they head.
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
