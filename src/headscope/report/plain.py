"""Plain names of relations, kinds of mention and rules, for readers who do not know the annotation."""

from __future__ import annotations

import re

# For each relation of Universal Dependencies and of Stanford Dependencies: the dependents, and what their governor is.
_RELATIONS = {
    "acl": ("clauses that modify a noun", "noun"),
    "acl:relcl": ("relative clauses", "noun"),
    "advcl": ("adverbial clauses", "verb"),
    "advmod": ("adverbs", "word they modify"),
    "amod": ("adjectives", "noun"),
    "appos": ("appositions", "noun they explain"),
    "aux": ("auxiliary verbs", "main verb"),
    "aux:pass": ("auxiliaries of the passive", "main verb"),
    "auxpass": ("auxiliaries of the passive", "main verb"),
    "case": ("prepositions and other case markers", "noun"),
    "cc": ("coordinating conjunctions", "word they introduce"),
    "ccomp": ("clausal complements", "verb"),
    "compound": ("first parts of compounds", "noun"),
    "compound:prt": ("verb particles", "verb"),
    "conj": ("later parts of a coordination", "first part"),
    "cop": ("copulas (forms of “be”)", "predicate"),
    "csubj": ("clausal subjects", "predicate"),
    "det": ("articles and other determiners", "noun"),
    "dobj": ("direct objects", "verb"),
    "expl": ("expletives", "predicate"),
    "flat": ("later parts of names", "first part"),
    "iobj": ("indirect objects", "verb"),
    "mark": ("words that introduce a clause", "predicate of the clause"),
    "nmod": ("nouns that modify a noun", "noun they modify"),
    "nmod:poss": ("possessors", "noun they possess"),
    "nn": ("first parts of compounds", "noun"),
    "nsubj": ("subjects", "predicate"),
    "nsubj:pass": ("subjects of passives", "verb"),
    "nsubjpass": ("subjects of passives", "verb"),
    "nummod": ("numerals", "noun"),
    "num": ("numerals", "noun"),
    "obj": ("direct objects", "verb"),
    "obl": ("oblique nouns", "predicate"),
    "parataxis": ("loosely attached clauses", "main clause"),
    "pobj": ("objects of prepositions", "preposition"),
    "poss": ("possessors", "noun they possess"),
    "prep": ("prepositions", "word they modify"),
    "prt": ("verb particles", "verb"),
    "punct": ("punctuation marks", "word they belong to"),
    "xcomp": ("clausal complements without a subject", "verb"),
}
_MENTIONS = {"all": "mentions", "pronoun": "pronouns", "proper": "names", "nominal": "nouns"}
_RULES = {
    "nearest": "the nearest mention",
    "head_match": "the nearest mention with the same head word",
    "sieves": "four sieves",
    "first": "the first mention",
    "nearest_before": "the nearest mention before it",
}
_PLACES = {1: "the word", 2: "the second word", 3: "the third word"}
_OFFSET = re.compile(r"[+-][1-9][0-9]*")


def relation(label: str) -> tuple[str, str]:
    """The names of the dependents and of the governor of a relation; an unknown label stays as it is."""
    return _RELATIONS.get(label, (f"words with the relation {label}", "governor"))


def mentions(label: str) -> str:
    """The name of a kind of mention."""
    return _MENTIONS.get(label, f"{label} mentions")


def rule(name: str) -> str:
    """A rule that heads are compared with, as a phrase; a number is an offset between words."""
    if _OFFSET.fullmatch(name):
        places = int(name)
        return f"{_PLACES.get(abs(places), f'the {abs(places)}th word')} {'before' if places < 0 else 'after'}"
    return _RULES.get(name, name)


def percent(share: float) -> str:
    """A share in percent: `82 %`."""
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"


def percents(low: float, high: float) -> str:
    """An interval of shares: `95 % interval 78 to 85`; "" if there is none."""
    return "" if low != low or high != high else f"95\N{NO-BREAK SPACE}% interval {low * 100:.0f} to {high * 100:.0f}"
