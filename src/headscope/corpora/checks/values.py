"""Level 2, columns: tags, relations, features and MISC have the right form, and known values where there is a list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from headscope.corpora.checks.layout import NAMES
from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.readers.conllu_rows import Row
from headscope.corpora.source import quoted
from headscope.corpora.tags import RELATIONS, UPOS

_TAG = rule("upos", 2, "UPOS is one of the 17 universal tags", f"Use one of {', '.join(sorted(UPOS))}")
_RELATION = rule("relation", 2, "a relation is one of the 37 universal relations", "Use a relation from universaldependencies.org/u/dep")
_SUBTYPE = rule("relation-subtype", 2, "a subtype is lower-case letters after one colon", "Write the relation as in nsubj:pass")
_FEATURE = rule("feature-format", 2, "features are Name=Value, with capitals or digits first", "Write the feature as in Number=Sing")
_FEATURE_ORDER = rule("feature-order", 2, "features are sorted by name, whatever the case", "Sort the features")
_FEATURE_TWICE = rule("feature-repeated", 2, "a word has a feature once", "Keep one, or join the values by a comma")
_FEATURE_VALUES = rule("feature-values", 2, "several values of a feature are sorted and different", "Sort the values, and keep each once")
_RANGE = rule("range-columns", 2, "a multi-word token has its form and MISC only, and Typo=Yes at most", "Write _, and annotate the words")
_NODE = rule("empty-node-columns", 2, "an empty node has no HEAD and no DEPREL", "Write _; its relations are in DEPS")
_MISC = rule("misc-format", 2, "each entry of MISC has a name, and no space around it", "Remove the bar or the space")
_MISC_TWICE = rule("misc-repeated", 2, "MISC has the attributes that UD knows once", "Keep one of them")
_MISC_CASE = rule("misc-case", 2, "MISC writes the attributes that UD knows with their capitals", "Write the name as UD does")

_FEATURE_FORM = re.compile(r"([A-Z][A-Za-z0-9]*(?:\[[a-z0-9]+\])?)=([A-Z0-9][A-Za-z0-9]*(?:,[A-Z0-9][A-Za-z0-9]*)*)")
_SUBTYPE_FORM = re.compile(r"[a-z]+(:[a-z]+)?")
_KNOWN = {
    name.lower(): name
    for name in ("SpaceAfter", "Lang", "Translit", "LTranslit", "Gloss", "LId", "LDeriv", "Entity", "Bridge", "SplitAnte")
}


def value_problems(row: Row) -> Iterator[RuleViolation]:
    """The problems of single values in a row."""
    if row.range:
        yield from _range(row)
    else:
        node = row.node is not None
        if row.upos not in UPOS and not (node and row.upos == "_"):
            yield _TAG.at(row.line, f"{quoted(row.upos)} is not a UPOS tag")
        if not node:
            yield from _relation(row)
        elif row.head != "_" or row.relation != "_":
            yield _NODE.at(row.line, f"empty node {row.id} has head {quoted(row.head)} and relation {quoted(row.relation)}")
        if row.feats != "_":
            yield from _features(row)
    if row.misc != "_":
        yield from _misc(row)


def _range(row: Row) -> Iterator[RuleViolation]:
    for name, value in zip(NAMES[2:9], row[3:10], strict=True):
        if value != "_" and (name, value) != ("FEATS", "Typo=Yes"):
            yield _RANGE.at(row.line, f"{name} of the multi-word token {row.id} is {quoted(value)}")


def _relation(row: Row) -> Iterator[RuleViolation]:
    if row.relation.partition(":")[0] not in RELATIONS:
        yield _RELATION.at(row.line, f"{quoted(row.relation)} is not a universal relation")
    elif not _SUBTYPE_FORM.fullmatch(row.relation):
        yield _SUBTYPE.at(row.line, f"relation {quoted(row.relation)}")


def _features(row: Row) -> Iterator[RuleViolation]:
    names = []
    for item in row.feats.split("|"):
        if not (match := _FEATURE_FORM.fullmatch(item)):
            yield _FEATURE.at(row.line, f"feature {quoted(item)}")
            return
        names.append(match[1])
        values = match[2].split(",")
        if len(values) > 1 and values != sorted(set(values), key=str.lower):
            yield _FEATURE_VALUES.at(row.line, f"values of {quoted(item)}")
    if len(set(names)) < len(names):
        yield _FEATURE_TWICE.at(row.line, f"a feature twice in {quoted(row.feats)}")
    elif [name.lower() for name in names] != sorted(name.lower() for name in names):
        yield _FEATURE_ORDER.at(row.line, f"features {quoted(row.feats)}")


def _misc(row: Row) -> Iterator[RuleViolation]:
    names = []
    for item in row.misc.split("|"):
        name, _, value = item.partition("=")
        if not name.strip() or name != name.strip() or value != value.strip():
            yield _MISC.at(row.line, f"attribute {quoted(item)} in MISC")
        if (known := _KNOWN.get(name.strip().lower())) and known != name.strip():
            yield _MISC_CASE.at(row.line, f"{quoted(name)} in MISC is known as {known}")
        names.append(name)
    for name, times in Counter(names).items():
        if times > 1 and name in _KNOWN.values():
            yield _MISC_TWICE.at(row.line, f"{name} occurs {times} times in MISC")
