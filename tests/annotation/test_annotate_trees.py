"""Trees with one root, and their CoNLL-U lines."""

from __future__ import annotations

import random

from headscope.annotation.trees import ParsedTree, Token, Written, scheme
from headscope.corpora.tree import roots, tree_faults


def tokens(*heads: int) -> list[Token]:
    return [Token(f"w{place}", head=head, relation=f"r{place}") for place, head in enumerate(heads, 1)]


def heads(tree: ParsedTree) -> list[int]:
    return [token.head for token in tree.tokens]


def test_a_valid_tree_keeps_everything_but_the_relation_of_its_root() -> None:
    tree = ParsedTree.of(tokens(2, 0, 2))
    assert heads(tree) == [2, 0, 2]
    assert [token.relation for token in tree.tokens] == ["r1", "root", "r3"]
    assert tree.moved == ()


def test_further_roots_are_attached_to_the_first() -> None:
    tree = ParsedTree.of(tokens(0, 1, 0, 3, 5, 99))  # a second root, a word that governs itself, a head out of range
    assert heads(tree) == [0, 1, 1, 3, 1, 1]
    assert tree.moved == (3, 5, 6)
    assert [token.relation for token in tree.tokens] == ["root", "r2", "dep", "r4", "dep", "dep"]


def test_a_cycle_is_cut_in_one_place() -> None:
    tree = ParsedTree.of(tokens(2, 3, 1, 0, 4))
    assert tree.tokens[3].relation == "dep" or heads(tree)[3] == 0
    assert not list(tree_faults(heads(tree)))
    assert roots(heads(tree)) == 1
    assert len(tree.moved) == 1


def test_any_output_of_a_parser_becomes_a_tree() -> None:
    draw = random.Random(0)
    for _ in range(500):
        size = draw.randint(1, 9)
        tree = ParsedTree.of(tokens(*(draw.randint(-1, size + 1) for _ in range(size))))
        assert roots(heads(tree)) == 1
        assert not list(tree_faults(heads(tree)))
        assert all(1 <= token.head <= size or token.relation == "root" for token in tree.tokens)


def test_a_multi_word_token_has_its_line_and_its_text() -> None:
    words = [
        Token("Vamos", "ir", "VERB", "V", "Mood=Ind", 0, "ROOT"),
        Token("de", "de", "ADP", "", "", 3, "case", space_after=False),
        Token("el", "el", "DET", "", "", 1, "obl", space_after=False),
        Token(".", ".", "PUNCT", "", "", 1, "punct"),
    ]
    tree = ParsedTree.of(words, [Written(2, 3, "del", space_after=False)])
    assert tree.text == "Vamos del."
    assert list(tree.rows()) == [
        "1\tVamos\tir\tVERB\tV\tMood=Ind\t0\troot\t_\t_",
        "2-3\tdel\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No",
        "2\tde\tde\tADP\t_\t_\t3\tcase\t_\t_",
        "3\tel\tel\tDET\t_\t_\t1\tobl\t_\t_",
        "4\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_",
    ]


def test_a_scheme_is_recognised_by_its_labels() -> None:
    assert scheme(["ROOT", "nsubj", "obl:tmod", "acl:relcl", "dep"]) == "UD labels"
    assert scheme(["ROOT", "nsubj", "dobj", "pobj", "nsubjpass", "prep", "relcl"]) == "ClearNLP labels"
    assert scheme(["ROOT", "sb", "oa", "mo", "nk"]) == "TIGER labels"
    assert scheme(["ROOT", "subject"]) == "other labels"
    assert scheme(["ROOT"]) == ""
