"""Level 2, heads: the tree of HEAD and DEPREL, and the enhanced graph of DEPS."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.checks.sentence import CheckedSentence
from headscope.corpora.readers.conllu_rows import Row
from headscope.corpora.source import natural, quoted
from headscope.corpora.tags import RELATIONS
from headscope.corpora.tree import roots, tree_faults

_HEAD = rule("head-format", 2, "a head is a number, 0 for the root", "Give the number of a word, or 0")
_OUTSIDE = rule("head-outside", 2, "a head is a word of the sentence", "Give the number of a word of the sentence")
_SELF = rule("head-self", 2, "no word is its own head", "Attach the word to another one")
_CYCLE = rule("cycle", 2, "following the heads leads to the root", "Attach one of the words elsewhere")
_ROOTS = rule("one-root", 2, "a sentence has one root", "Attach the others to the first, say as parataxis or conj")
_ROOT = rule("root-relation", 2, "the relation is root where the head is 0, and nowhere else", "Correct the head or the relation")
_DEPS = rule("deps-format", 2, "DEPS holds head:relation, separated by bars", "Write DEPS as in 4:nsubj|7:nsubj")
_DEPS_HEAD = rule("deps-head", 2, "heads in DEPS are words or empty nodes of the sentence, not the word itself", "Correct the head")
_DEPS_ORDER = rule("deps-order", 2, "DEPS is sorted by head, then relation, and has each pair once", "Sort DEPS, and keep each pair once")
_DEPS_RELATION = rule(
    "deps-relation",
    2,
    "an enhanced relation is universal, or ref, with lower-case subtypes; root with head 0 and nowhere else",
    "Write the relation as in nmod:in_front_of",
)
_DEPS_REACH = rule(
    "deps-unconnected", 2, "all nodes of an enhanced graph are connected to the root", "Give the word a head that leads to the root"
)
_DEPS_ALL = rule("deps-sometimes", 2, "all sentences of a file have DEPS, or none", "Fill DEPS for all sentences, or write _ for all")
_DEPS_COPY = rule("deps-copied", 3, "DEPS differs from HEAD and DEPREL somewhere in a file", "Write _ in the whole file", note=True)
_DEPS_ORPHAN = rule(
    "deps-orphan", 3, "there are no orphans in DEPS where empty nodes represent missing words", "Attach the orphan to an empty node"
)

_ENHANCED_HEAD = re.compile(r"(0|[1-9][0-9]{0,8})(\.[1-9][0-9]{0,8})?")
_MAXIMAL_PARTS = 4  # relation, subtype, preposition, case


def head_problems(words: Sequence[Row]) -> Iterator[RuleViolation]:
    """Problems of heads and roots that do not form a tree of words numbered from 1."""
    heads = [natural(row.head) for row in words]
    for row, head in zip(words, heads, strict=True):
        if head is None or row.head != str(head):
            yield _HEAD.at(row.line, f"head {quoted(row.head)} is not the number of a word")
    for fault in tree_faults(heads):
        rule = _OUTSIDE if fault.kind != "cycle" else _SELF if heads[fault.word - 1] == fault.word else _CYCLE
        yield rule.at(words[fault.word - 1].line, fault.problem)
    if words and None not in heads and (count := roots(heads)) != 1:
        yield _ROOTS.at(words[0].line, f"{count} roots")


def root_problems(words: Sequence[Row]) -> Iterator[RuleViolation]:
    """Words with head 0 but another relation than root, and the reverse."""
    for row in words:
        if natural(row.head) is not None and (row.head == "0") != (row.relation.partition(":")[0] == "root"):
            yield _ROOT.at(row.line, f"relation {quoted(row.relation)} with head {row.head}")


@dataclass
class Enhanced:
    """The enhanced graphs of one file."""

    _first: int = 0  # the line of the first sentence with DEPS
    _without: int = 0  # the line of the first sentence without
    _differs: bool = False  # whether DEPS differs from the basic tree somewhere
    _empty_nodes: bool = False
    _orphans: tuple[int, ...] = ()

    def sentence(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        """The problems in the DEPS of a sentence."""
        enhanced = {row.id: row for row in sentence.nodes if row.deps != "_"}
        if not enhanced:
            self._without = self._without or sentence.line
            return
        self._first = self._first or sentence.line
        self._empty_nodes = self._empty_nodes or any(row.node is not None for row in sentence.nodes)
        self._differs = self._differs or any(row.deps != f"{row.head}:{row.relation}" for row in enhanced.values())
        self._orphans += tuple(row.line for row in enhanced.values() if ":orphan" in row.deps)
        ids = {row.id for row in sentence.nodes}
        heads: dict[str, list[str]] = {}
        sound = True
        for row in enhanced.values():
            pairs = [tuple(item.split(":", 1)) for item in row.deps.split("|")]
            problems = list(_item_problems(row, pairs, ids))
            yield from problems
            sound = sound and not problems
            heads[row.id] = [pair[0] for pair in pairs]
        if sound:
            yield from _unconnected(sentence, heads)

    def finish(self) -> Iterator[RuleViolation]:
        """The problems of the file as a whole."""
        if self._first and self._without:
            yield _DEPS_ALL.at(self._without, f"a sentence without DEPS, while the sentence at line {self._first} has it")
        if self._first and not self._differs:
            yield _DEPS_COPY.at(self._first, "DEPS repeats HEAD and DEPREL throughout the file")
        if self._empty_nodes:
            for line in self._orphans:
                yield _DEPS_ORPHAN.at(line, "an orphan in DEPS, in a file with empty nodes")


def _item_problems(row: Row, pairs: Sequence[tuple[str, ...]], ids: set[str]) -> Iterator[RuleViolation]:
    if not all(len(pair) == 2 and _ENHANCED_HEAD.fullmatch(pair[0]) for pair in pairs):
        yield _DEPS.at(row.line, f"DEPS {quoted(row.deps)}")
        return
    for head, relation in pairs:
        if (head not in ids and head != "0") or head == row.id:
            yield _DEPS_HEAD.at(row.line, f"head {head} in DEPS of {row.id}")
        if not _is_enhanced(relation) or (head == "0") != (relation == "root"):
            yield _DEPS_RELATION.at(row.line, f"relation {quoted(relation)} with head {head} in DEPS")
    keys = [(*map(int, head.partition(".")[::2] if "." in head else (head, "0")), relation) for head, relation in pairs]
    if keys != sorted(set(keys)):
        yield _DEPS_ORDER.at(row.line, f"DEPS {quoted(row.deps)}")


def _is_enhanced(relation: str) -> bool:
    main, *rest = relation.split(":")
    return (main in RELATIONS or main == "ref") and len(rest) < _MAXIMAL_PARTS and all(map(_is_subtype, rest))


def _is_subtype(text: str) -> bool:
    """Letters of any script, none of them capital, in words separated by underscores."""
    return all(part and all(unicodedata.category(char)[0] in "LM" and char == char.lower() for char in part) for part in text.split("_"))


def _unconnected(sentence: CheckedSentence, heads: dict[str, list[str]]) -> Iterator[RuleViolation]:
    below: dict[str, list[str]] = {}
    for id, above in heads.items():
        for head in above:
            below.setdefault(head, []).append(id)
    reached, waiting = {"0"}, ["0"]
    while waiting:
        new = [id for id in below.get(waiting.pop(), ()) if id not in reached]
        reached.update(new)
        waiting += new
    for row in sentence.nodes:
        if row.id not in reached:
            yield _DEPS_REACH.at(row.line, f"{row.id} {quoted(row.form)} cannot be reached from the root of the enhanced graph")
