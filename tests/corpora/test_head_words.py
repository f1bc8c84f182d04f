"""Head words of mentions, found by constituents, by dependencies or by cue."""

from __future__ import annotations

import pytest

from headscope.core.annotation import Annotated
from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora.resolution.head_words import HeadWords, by_cue
from headscope.corpora.resolution.trees import coordinated_in_tree, head_in_tree, parse_tree
from helpers.marked import document


def forms(tree: str) -> list[str]:
    """The words of a bracketed tree."""
    return [piece.rstrip(")") for piece in tree.split() if not piece.startswith("(")]


# A tree, the words of a span in it, and the head of the span.
HEADS = [
    ("(NP (DT the) (JJ big) (NN dog))", "the big dog", "dog"),
    ("(NP (NP (DT the) (NN dog)) (PP (IN of) (NP (DT the) (NN man))))", "the dog of the man", "dog"),
    ("(NP (NP (NNP Ann) (POS 's)) (JJ old) (NN house))", "Ann 's old house", "house"),
    ("(NP (NP (NNP Ann) (POS 's)) (JJ old) (NN house))", "Ann 's", "Ann"),  # the clitic is never the head
    # This span is not a constituent: its part of the constituent around it is used.
    ("(NP (NP (NNP Ann) (POS 's)) (JJ old) (NN house))", "old house", "house"),
    ("(NP (NP (NNP Ann)) (, ,) (NP (DT the) (NN boss)) (, ,))", "Ann , the boss ,", "Ann"),
    ("(NP (NP (DT the) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ sings)))))", "the man who sings", "man"),
    ("(NP (NNP George) (NNP W.) (NNP Bush))", "George W. Bush", "Bush"),
    ("(NP (PRP he))", "he", "he"),
    ("(NP (PRP$ his))", "his", "his"),
    ("(NP (DT the) (JJ rich))", "the rich", "rich"),
    ("(NP (DT this))", "this", "this"),
    ("(NP (NP (DT all)) (PP (IN of) (NP (PRP them))))", "all of them", "all"),
    ("(NP (QP (IN about) (CD six)))", "about six", "six"),
    ("(NP (NP (NNP Ann)) (CC and) (NP (NNP Bob)))", "Ann and Bob", "Ann"),
    ("(NP-SBJ-1 (DT a) (NX=2 (NN b)))", "a b", "b"),  # function labels are ignored
    ("(S (NP (PRP it)) (VP (VBD grew)))", "it grew", "grew"),
    ("(VP (MD will) (VP (VB be) (VP (VBN seen))))", "will be seen", "seen"),  # not the auxiliary
    ("(SBAR (IN that) (S (NP (PRP it)) (VP (VBD fell))))", "that it fell", "fell"),
    ("(PP (IN in) (NP (NNP Rome)))", "in Rome", "in"),
    # In a constituent of unknown category, the head is the last child that is not punctuation.
    ("(TOP (FOO (-LRB- -LRB-) (BAR x) (-RRB- -RRB-)))", "-LRB- x -RRB-", "x"),
]


@pytest.mark.parametrize(("tree", "span", "head"), HEADS)
def test_the_head_of_a_span_is_found_in_a_constituent_tree(tree: str, span: str, head: str) -> None:
    words, wanted = forms(tree), span.split()
    start = next(i for i in range(len(words)) if words[i : i + len(wanted)] == wanted)
    parsed = parse_tree(tree, len(words))
    assert parsed is not None
    assert words[head_in_tree(parsed, start, start + len(wanted))] == head


@pytest.mark.parametrize(
    ("tree", "coordinated"),
    [
        ("(NP (NP (NNP Ann)) (CC and) (NP (NNP Bob)))", True),
        ("(NP (NP (NNP Ann)) (, ,) (NP (NNP Bob)) (, ,) (CC and) (NP (NNP Eve)))", True),
        ("(NP (DT the) (NNS men) (CC and) (NNS women))", True),
        ("(NP (NP (NP (NNS men)) (CC and) (NP (NNS women))) (PP (IN of) (NP (NNP Rome))))", True),
        ("(NP (DT the) (JJ big) (CC and) (JJ ugly) (NN dog))", False),
        ("(NP (NP (DT the) (NN king)) (PP (IN of) (NP (NP (NNP Spain)) (CC and) (NP (NNP France)))))", False),
        ("(NP (NP (NP (NNP Ann)) (CC and) (NP (NNP Bob) (POS 's))) (NN house))", False),
        ("(S (NP (PRP he)) (VP (VP (VBD came)) (CC and) (VP (VBD went))))", False),
    ],
)
def test_coordinated_nouns_are_recognised_in_a_constituent_tree(tree: str, coordinated: bool) -> None:
    size = len(forms(tree))
    parsed = parse_tree(tree, size)
    assert parsed is not None
    assert coordinated_in_tree(parsed, 0, size) == coordinated


@pytest.mark.parametrize("tree", ["", "(NP", "NP)", "(NP (NN a)))", "(NP (NN a)", "(NP (NN a) b)", "(NP (NN a))", "word"])
def test_a_tree_that_does_not_fit_the_sentence_is_not_parsed(tree: str) -> None:
    assert parse_tree(tree, 2) is None


def test_a_leaf_with_a_space_is_one_word() -> None:
    assert parse_tree("(NP (NN a b) (NN c))", 2) is not None


@pytest.mark.parametrize(
    ("words", "head"),
    [
        ("the/DT dog/NN", "dog"),
        ("the/DT dog/NN of/IN war/NN", "dog"),
        ("the/DT dog/NN ,/, a/DT poodle/NN", "dog"),
        ("the/DT dog/NN that/WDT barks/VBZ", "dog"),
        ("the/DT dog/NN barking/VBG", "dog"),
        ("Ann/NNP 's/POS", "Ann"),
        ("Ann/NNP 's/POS dog/NN", "dog"),
        ("'s", "'s"),
        ("language/NN (/-LRB- L2/NN )/-RRB-", "language"),
        ("in/IN London/NNP", "London"),  # a cue at the start is ignored
        ("the/DT end/NN ./.", "end"),
        ("./.", "."),
        ("Cheryl Cassidy", "Cassidy"),
        ("Catherine of Aragon", "Catherine"),
        ("the developer who slept", "developer"),
        ("her/PRP$", "her"),
    ],
)
def test_the_head_word_is_found_by_cue(words: str, head: str) -> None:
    given = document(words).words
    assert given[by_cue(given)[0]].form == head


def test_coordinated_nouns_are_recognised_by_cue() -> None:
    for words, expected in (
        ("Ann/NNP and/CC Bob/NNP", True),
        ("big/JJ and/CC ugly/JJ dog/NN", False),
        ("Ann and Bob", True),
        ("Ann", False),
    ):
        assert by_cue(document(words).words)[1] == expected


TREE = (
    Word("old", xpos="JJ", upos="ADJ", head=2, relation="amod"),
    Word("men", xpos="NNS", upos="NOUN", head=5, relation="nsubj"),
    Word("and", xpos="CC", upos="CCONJ", head=4, relation="cc"),
    Word("women", xpos="NNS", upos="NOUN", head=2, relation="conj"),
    Word("sleep", xpos="VBP", upos="VERB", head=0, relation="root"),
)


def test_heads_and_coordination_are_found_in_dependencies() -> None:
    one = Document("d", (Sentence(TREE),), (Mention("1", 0, 4), Mention("2", 3, 4), Mention("3", 0, 2)))
    heads = HeadWords(Annotated(one).select(range(5)))
    assert [heads.of(mention) for mention in one.mentions] == [
        (1, "dependencies", True),
        (3, "dependencies", False),
        (1, "dependencies", False),
    ]


def test_a_governor_outside_the_window_is_outside_the_mention() -> None:
    one = Document("d", (Sentence(TREE),), (Mention("1", 0, 2),))
    text = Annotated(one).select(range(2))
    assert HeadWords(text).of(text.mentions[0]) == (1, "dependencies", False)


def test_constituents_precede_dependencies_and_a_window_may_begin_mid_sentence() -> None:
    parse = "(S (NP (NP (JJ old) (NNS men)) (CC and) (NP (NNS women))) (VP (VBP sleep)))"
    first = Sentence((Word("Yes"),))
    one = Document("d", (first, Sentence(TREE, parse=parse)), (Mention("1", 2, 5), Mention("2", 0, 1), Mention("3", 0, 3)))
    text = Annotated(one).select(range(2, 6))  # `men and women sleep`
    (mention,) = text.mentions
    assert (mention.start, mention.end) == (0, 3)
    assert HeadWords(text).of(mention) == (0, "constituents", True)
    assert HeadWords(text, ("dependencies",)).of(mention) == (0, "dependencies", True)
    assert HeadWords(text, ("cue",)).of(mention) == (2, "cue", True)
    whole = Annotated(one).select(range(6))
    assert [HeadWords(whole).of(mention).source for mention in whole.mentions] == ["cue", "dependencies", "constituents"]


def test_a_tree_with_another_number_of_words_is_not_used() -> None:
    one = Document("d", (Sentence((Word("a"), Word("b")), parse="(NP (NN a))"),), (Mention("1", 0, 2),))
    assert HeadWords(Annotated(one).select(range(2))).of(one.mentions[0]).source == "cue"
