"""Level 3, single words: which parts of speech a relation takes, and which dependents a function word may have.

The tables follow https://universaldependencies.org/u/overview/syntax.html and the tests that UD's own validator makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.corpora.checks.rules import Rule, RuleViolation, rule
from headscope.corpora.checks.sentence import CheckedNode, gap
from headscope.corpora.labels import UPOS

_NO_CASE = {"PROPN", "ADJ", "PRON", "DET", "NUM", "AUX"}
_TAKES: dict[str, tuple[Rule, frozenset[str]]] = {
    relation: (rule(f"{relation}-upos", 3, asks, f"Tag it {tag}, add ExtPos={tag}, or choose another relation"), frozenset(tags))
    for relation, tag, asks, tags in (
        ("det", "DET", "a det is DET or PRON", {"DET", "PRON"}),
        ("nummod", "NUM", "a nummod is NUM, or a NOUN or SYM that counts", {"NUM", "NOUN", "SYM"}),
        ("advmod", "ADV", "an advmod is ADV, ADJ, CCONJ, DET, PART or SYM", {"ADV", "ADJ", "CCONJ", "DET", "PART", "SYM"}),
        ("expl", "PRON", "an expl is PRON, DET or PART", {"PRON", "DET", "PART"}),
        ("aux", "AUX", "an aux is AUX", {"AUX"}),
        ("cop", "AUX", "a cop is AUX, or PRON, DET or SYM in its place", {"AUX", "PRON", "DET", "SYM"}),
        ("case", "ADP", "a case is ADP or has become one; never PROPN, ADJ, PRON, DET, NUM or AUX", UPOS - _NO_CASE),
        (
            "mark",
            "SCONJ",
            "a mark is SCONJ or has become one; never a nominal, ADJ, DET, NUM, AUX or INTJ",
            UPOS - _NO_CASE - {"NOUN", "INTJ"},
        ),
        (
            "cc",
            "CCONJ",
            "a cc is CCONJ or has become one; never a nominal, verb, ADJ, DET, NUM or INTJ",
            UPOS - _NO_CASE - {"NOUN", "VERB", "INTJ"},
        ),
        ("punct", "PUNCT", "a punct is PUNCT", {"PUNCT"}),
    )
}
_PUNCTUATION = rule("punct-relation", 3, "PUNCT has the relation punct, or is the root", "Take punct, or tag it SYM if it is read aloud")
_FIXED = rule("fixed-upos", 3, "fixed expressions hold no proper nouns", "Take flat or compound for names")

_HIGHER = "Attach the dependent to the content word, or choose another relation for the function word"
_OWN = "goeswith fixed reparandum"  # what makes a word one with others
_LEAVES: dict[str, tuple[Rule, frozenset[str]]] = {
    relation: (found, frozenset(children.split()))
    for relations, found, children in (
        (
            "case mark",
            rule("case-children", 3, "case and mark have modifiers, coordination and punctuation below them at most", _HIGHER),
            f"{_OWN} advmod obl conj cc punct",
        ),
        (
            "aux cop",
            rule("aux-children", 3, "aux and cop have coordination and punctuation below them at most", _HIGHER),
            f"{_OWN} conj cc punct",
        ),
        ("cc", rule("cc-children", 3, "cc has conj and punctuation below it at most", _HIGHER), f"{_OWN} conj punct"),
        (
            "det",
            rule("det-children", 3, "det has no clauses below it, and no nominals unless it is possessive", _HIGHER),
            f"{_OWN} flat compound det case clf advmod obl discourse parataxis conj cc punct",
        ),
        (
            "clf",
            rule("clf-children", 3, "clf has modifiers, coordination and punctuation below it at most", _HIGHER),
            f"{_OWN} advmod obl conj cc punct",
        ),
        (
            "fixed",
            rule("fixed-children", 3, "later words of a fixed expression have nothing below them", "Attach all words to the first one"),
            "goeswith reparandum conj punct",
        ),
        ("goeswith", rule("goeswith-children", 3, "later parts of a word have nothing below them", "Attach it to the first part"), ""),
        (
            "punct",
            rule("punct-children", 3, "punctuation has punctuation below it at most", "Attach it to the word it belongs to"),
            "punct",
        ),
    )
    for relation in relations.split()
}
_POSSESSIVE = frozenset({"appos", "acl", "nmod"})


def word_problems(node: CheckedNode, nodes: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    """What is wrong with the part of speech of a word, and with its dependents."""
    if (takes := _TAKES.get(node.relation)) and node.upos not in takes[1] and not _heads_expression(node):
        yield takes[0].at(node.line, f"{node.relation} takes no {node.upos}: {node}")
    if node.upos == "PUNCT" and node.relation not in ("punct", "root"):
        yield _PUNCTUATION.at(node.line, f"punctuation {node}")
    if node.upos == "PROPN" and (node.relation == "fixed" or node.dependents("fixed")):
        yield _FIXED.at(node.line, f"{node} in a fixed expression")
    if leaf := _LEAVES.get(node.relation):
        for child in node.children:
            if child.relation not in leaf[1] and not _is_exempt(node, child, nodes):
                yield leaf[0].at(child.line, f"{child} below {node}")


def _heads_expression(node: CheckedNode) -> bool:
    """Whether a word stands for others whose part of speech as a whole is not known: its own tag says little then."""
    return "ExtPos" not in node.features and any(child.relation in ("fixed", "goeswith") for child in node.children)


def _is_exempt(node: CheckedNode, child: CheckedNode, nodes: Sequence[CheckedNode]) -> bool:
    """Whether a dependent is fine although its relation is not: negation, possessors, and punctuation that can go
    nowhere else.
    """
    if child.relation == "advmod":
        negates = child.row.upos in ("PART", "ADV") and child.features.get("Polarity") == "Neg"
        return negates and node.relation != "punct"
    if node.relation == "det":
        return node.features.get("Poss") == "Yes" and child.relation in _POSSESSIVE
    return child.relation == "punct" and bool(gap(node, nodes))
