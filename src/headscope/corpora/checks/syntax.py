"""Level 3: the parts of speech and dependents that relations allow, and the shapes of trees.

The tables follow https://universaldependencies.org/u/overview/syntax.html and the tests that UD's own validator makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.corpora.checks.rules import Rule, RuleViolation, rule
from headscope.corpora.checks.sentence import CheckedNode, gap
from headscope.corpora.tags import UPOS

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
_PUNCTUATION = rule("punct-relation", 3, "PUNCT has the relation punct, or is the root", "Use punct, or tag it SYM if it is read aloud")
_FIXED = rule("fixed-upos", 3, "fixed expressions hold no proper nouns", "Use flat or compound for names")

_HIGHER = "Attach the dependent to the content word, or choose another relation for the function word"
_OWN = "goeswith fixed reparandum"  # what makes a word one with others
_LEAVES: dict[str, tuple[Rule, frozenset[str]]] = {
    relation: (broken, frozenset(children.split()))
    for relations, broken, children in (
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
    """The problems with the part of speech of a word, and with its dependents."""
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
    """Whether a word heads an expression whose part of speech is unknown: its own tag is then not informative."""
    return "ExtPos" not in node.features and any(child.relation in ("fixed", "goeswith") for child in node.children)


def _is_exempt(node: CheckedNode, child: CheckedNode, nodes: Sequence[CheckedNode]) -> bool:
    """Whether a dependent is allowed although its relation is not: negation, possessors, unavoidable punctuation."""
    if child.relation == "advmod":
        negates = child.row.upos in ("PART", "ADV") and child.features.get("Polarity") == "Neg"
        return negates and node.relation != "punct"
    if node.relation == "det":
        return node.features.get("Poss") == "Yes" and child.relation in _POSSESSIVE
    return child.relation == "punct" and bool(gap(node, nodes))


_RIGHTWARD = {
    relation: rule(f"{relation}-order", 3, f"{relation} points from left to right", f"Attach the later {part} to the first one")
    for relation, part in {"conj": "conjunct", "fixed": "word", "flat": "word", "goeswith": "part", "appos": "nominal"}.items()
}
_SUBJECTS = rule(
    "subjects", 3, "a predicate has one subject, except :outer ones", "Correct one, or add :outer if it is the subject around a clause"
)
_OBJECTS = rule("objects", 3, "a predicate has one obj", "Use iobj, xcomp or obl for the other one")
_ORPHAN = rule("orphan-parent", 3, "an orphan is attached to the head of an elliptic clause", "Attach it to the promoted word", note=True)
_OBLIQUE = rule("obl-nominal", 3, "a modifier of a nominal is nmod, not obl", "Use nmod, or attach it to the predicate", note=True)
_FIXED_GAP = rule("fixed-gap", 3, "the words of a fixed expression are adjacent", "Use another relation, or other words", note=True)
_EXTPOS = rule("fixed-extpos", 3, "fixed expressions have their part of speech in ExtPos", "Add ExtPos to the first word", note=True)
_GAP = rule("goeswith-gap", 3, "the parts of a word are adjacent", "Attach all parts to the first one")
_NO_SPACE = rule("goeswith-space", 3, "the parts of a word are separated by a space", "Write one word, or remove SpaceAfter=No")
_TYPO = rule("goeswith-typo", 3, "a word written in parts has Typo=Yes at its first part, if features are given", "Add Typo=Yes to FEATS")
_PART = rule("goeswith-columns", 3, "later parts of a word are X, with no lemma, features or further DEPS", "Annotate the first part alone")
_CHAIN = rule("flat-chain", 3, "the words of a flat name are attached to the first one", "Attach all words to the first one", note=True)
_FOREIGN = rule("flat-foreign", 3, "flat:foreign joins words that are X with Foreign=Yes", "Tag both so, or analyse them", note=True)
_IS_NONPROJECTIVE = rule("punct-nonprojective", 3, "all words between punctuation and its head are below the head", "Attach it higher")
_CAUSES = rule("punct-crossing", 3, "punctuation does not separate a word from its head", "Attach it to the word around it, or lower")

_CLAUSES = frozenset({"conj", "parataxis", "root", "csubj", "ccomp", "advcl", "acl", "reparandum"})
_NOMINALS = frozenset({"NOUN", "PROPN", "PRON"})
_ARGUMENTS = frozenset({"nsubj", "obj", "iobj", "obl", "vocative", "dislocated", "expl", "nmod"})


def shape_problems(nodes: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    """The problems of a tree that involve several words."""
    for node in nodes:
        if (order := _RIGHTWARD.get(node.relation)) and node.number < node.head:
            yield order.at(node.line, f"{node} before its head {node.parent}")
        if len(node.children) > 1:
            yield from _arguments(node)
        if node.parent is not None:
            yield from _attachment(node, node.parent)
        if node.children:
            yield from _fixed(node, nodes)
            yield from _parts(node, nodes)
        if node.relation == "goeswith":
            yield from _later_part(node)
        if node.relation == "punct":
            yield from _projectivity(node, nodes)


def _arguments(node: CheckedNode) -> Iterator[RuleViolation]:
    subjects = [child for child in node.children if child.relation in ("nsubj", "csubj") and not _is_outer(child)]
    if len(subjects) > 1:
        yield _SUBJECTS.at(node.line, f"{node} has {len(subjects)} subjects: {_list(subjects)}")
    if len(objects := node.dependents("obj")) > 1:
        yield _OBJECTS.at(node.line, f"{node} has {len(objects)} objects: {_list(objects)}")


def _is_outer(node: CheckedNode) -> bool:
    return node.row.relation.endswith(":outer") or "Subject=Outer" in node.row.misc.split("|")


def _attachment(node: CheckedNode, parent: CheckedNode) -> Iterator[RuleViolation]:
    if node.relation == "orphan" and parent.relation not in _CLAUSES:
        yield _ORPHAN.at(node.line, f"{node} is an orphan of {parent}")
    if node.relation == "obl" and parent.row.upos in _NOMINALS and parent.relation in _ARGUMENTS:
        yield _OBLIQUE.at(node.line, f"{node} depends on the nominal {parent}")
    if node.relation == parent.relation == "flat":
        yield _CHAIN.at(node.line, f"{node} is attached to {parent}, which is not the first word")
    if node.row.relation == "flat:foreign":
        for word in (parent, node):
            if word.row.upos != "X" or word.row.feats != "Foreign=Yes":
                yield _FOREIGN.at(word.line, f"{word} has features {word.row.feats}")


def _fixed(node: CheckedNode, nodes: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    if not (words := node.dependents("fixed")):
        return
    if "ExtPos" not in node.features:
        yield _EXTPOS.at(node.line, f"{_list([node, *words])} has no ExtPos")
    if others := [word for word in _between(node, words, nodes) if word.relation != "punct"]:
        yield _FIXED_GAP.at(node.line, f"{_list([node, *words])} is interrupted by {_list(others)}")


def _parts(node: CheckedNode, nodes: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    if not (parts := node.dependents("goeswith")):
        return
    if others := _between(node, parts, nodes):
        yield _GAP.at(node.line, f"{_list([node, *parts])} is interrupted by {_list(others)}")
    if node.features.get("Typo") != "Yes" and any(word.features for word in nodes):
        yield _TYPO.at(node.line, f"{_list([node, *parts])} has no Typo=Yes")
    for part in [node, *parts][:-1]:
        if not part.row.space_after:
            yield _NO_SPACE.at(part.line, f"{part} has SpaceAfter=No within {_list([node, *parts])}")


def _between(node: CheckedNode, later: Sequence[CheckedNode], nodes: Sequence[CheckedNode]) -> list[CheckedNode]:
    return [word for word in nodes[node.number : max(node.number, later[-1].number)] if word not in later]


def _later_part(node: CheckedNode) -> Iterator[RuleViolation]:
    row = node.row
    expected = {"LEMMA": (row.lemma, "_"), "UPOS": (row.upos, "X"), "FEATS": (row.feats, "_")}
    wrong = [f"{name} {value}" for name, (value, right) in expected.items() if value != right]
    if row.deps not in ("_", f"{row.head}:{row.relation}"):
        wrong.append(f"DEPS {row.deps}")
    if wrong:
        yield _PART.at(node.line, f"{node} has {', '.join(wrong)}")


def _projectivity(node: CheckedNode, nodes: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    if over := gap(node, nodes):
        yield _IS_NONPROJECTIVE.at(node.line, f"{node} is attached to {node.parent} over {_list(over)}")
    above = set(node.ancestors())
    crossed = [
        word for word in nodes if word.head and word.parent not in above and _covers(word, node.number) and not _covers(word, node.head)
    ]
    if crossed:
        yield _CAUSES.at(node.line, f"{node} separates {_list(crossed)} from the head")


def _covers(word: CheckedNode, number: int) -> bool:
    return min(word.number, word.head) < number < max(word.number, word.head)


def _list(nodes: Sequence[CheckedNode]) -> str:
    shown = ", ".join(repr(node.row.form) for node in nodes[:5])
    return f"{shown} and {len(nodes) - 5} more" if len(nodes) > 5 else shown
