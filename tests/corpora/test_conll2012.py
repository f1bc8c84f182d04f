from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import check, read
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]

PARTS = """
    #begin document (nw/x=1/a); part 000
    nw/x=1/a 0 0 Ann   NNP (TOP(S(NP*)  -    - - Ann * *    (1)
    nw/x=1/a 0 1 said  VBD (VP*         say  1 1 Ann * (V*) -
    nw/x=1/a 0 2 (     -LRB- (PRN*      -    - - Ann * *    (2
    nw/x=1/a 0 3 she   PRP (NP*)))))    -    - - Ann * *    (1)|2)

    nw/x=1/a 0 0 Yes   UH  (TOP(INTJ*)) -    - - -   * -

    #end document
    #begin document (nw/x=1/a); part 001
    nw/x=1/a 1 0 It    -   -            -    - - -   * (7
    nw/x=1/a 1 1 is    -   -            -    - - -   * 7)
    #end document
"""
EXPECTED = [
    Document(
        "nw/x=1/a/000",
        (
            Sentence(
                (Word("Ann", xpos="NNP"), Word("said", "say", xpos="VBD"), Word("(", xpos="-LRB-"), Word("she", xpos="PRP")),
                speaker="Ann",
                parse="(TOP (S (NP (NNP Ann)) (VP (VBD said) (PRN (-LRB- -LRB-) (NP (PRP she))))))",
            ),
            Sentence((Word("Yes", xpos="UH"),), parse="(TOP (INTJ (UH Yes)))"),
        ),
        (Mention("1", 0, 1), Mention("2", 2, 4), Mention("1", 3, 4)),
    ),
    Document("nw/x=1/a/001", (Sentence((Word("It"), Word("is"))),), (Mention("7", 0, 2),)),
]


def test_every_field_of_a_small_file_is_read(columns: Write) -> None:
    corpus = read(columns("a.v4_gold_conll", PARTS))
    assert list(corpus) == EXPECTED
    assert not corpus.skipped


def test_columns_may_be_separated_by_spaces(write: Write) -> None:
    lines = (line.strip() for line in PARTS.split("\n"))
    assert list(read(write("a.gold_conll", "\n".join(lines)))) == EXPECTED


def test_a_word_may_contain_a_space_if_tabs_separate_the_columns(write: Write) -> None:
    row = "\t".join(["d", "0", "0", "a\u00a0b c", "NN", "*", "-", "-", "-", "-", "*", "-"])
    (document,) = read(write("a.v4_auto_conll", f"#begin document (d); part 000\n{row}\n\n#end document\n"))
    assert document.words[0].form == "a\u00a0b c"


def test_an_unbalanced_parse_is_skipped_and_counted(columns: Write) -> None:
    path = columns("a.v4_gold_conll", "#begin document (d); part 000\nd 0 0 a NN (TOP(NP*) - - - - * -\n#end document")
    problem = r"line 2 of .*: the brackets in column 6 of the sentence that begins here do not balance: '\(TOP\(NP\*\)'\. Complete the"
    with pytest.raises(CorpusError, match=problem):
        list(read(path))
    corpus = read(path, on_error="skip")
    (document,) = corpus
    assert document.sentences[0].parse is None
    assert corpus.skipped.counts == {"parses skipped: their brackets do not balance": 1}


def test_columns_without_brackets_are_skipped_and_counted(columns: Write) -> None:
    corpus = read(columns("a.v4_gold_conll", "#begin document (d); part 000\nd 0 0 a NN NP - - - - B-PER -\n#end document"))
    assert [document.sentences[0].parse for document in corpus] == [None]
    reasons = {"parses skipped: they are not written as brackets": 1, "named entities skipped: they are not written as brackets": 1}
    assert corpus.skipped.counts == reasons


ROW = "d 0 0 a NN * - - - - * -"


@pytest.mark.parametrize(
    ("text", "line", "left"),
    [
        (f"#begin document (x); part 0\n{ROW}\n\n#end document\n#begin document (y); part 0\n{ROW}\n\n{ROW}", 5, ["x/0"]),
        (f"#begin document (y); part 0\n{ROW}\n\n#begin document (x); part 0\n{ROW}\n\n#end document", 1, ["x/0"]),
        (f"#begin document (x); part 0\n{ROW}\n\n#end document\n#begin document (y); part 0", 5, ["x/0"]),
    ],
)
def test_a_document_without_an_end_line_is_refused_or_skipped(columns: Write, text: str, line: int, left: list[str]) -> None:
    path = columns("a.v4_gold_conll", text)
    with pytest.raises(CorpusError, match=rf"line {line} of .*'y/0' that begins here has no #end document line.*\. Copy or download"):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert [document.id for document in corpus] == left
    assert corpus.skipped.counts == {"documents skipped: no #end document line": 1}
    (finding,) = check([path])
    assert (finding.line, finding.rule) == (line, "conll2012")
    assert "has no #end document line" in finding.problem


def test_check_finds_every_fault_of_the_file(columns: Write) -> None:
    faults = ["d 0 0 a", "d 0 0 a NN (S* - - - - * -", "d 0 0 a NN * - - - - * (1"]
    path = columns("a.v4_gold_conll", "#begin document (d); part 0\n" + "\n\n".join([*faults, ROW]) + "\n\n#end document")
    assert [(finding.line, finding.rule) for finding in check([path])] == [(2, "conll2012"), (4, "conll2012"), (6, "conll2012")]
    assert check([columns("b.v4_gold_conll", f"#begin document (d); part 0\n{ROW}\n\n#end document")]) == []
    assert [finding.rule for finding in check([columns("c.v4_gold_conll", "")])] == ["unreadable-file"]


@pytest.mark.parametrize(
    ("begin", "id"),
    [
        ("#begin document (a b); part 2", "a b/2"),
        ("#begin document (a)", "a"),
        ("#begin document a_1", "a_1"),
        ("#begin document", "document"),
    ],
)
def test_the_begin_line_determines_the_document_id(columns: Write, begin: str, id: str) -> None:
    corpus = read(columns("a_conll", f"{begin}\n{ROW}\n#end document"))
    assert [document.id for document in corpus] == [id]


LITBANK = """
    #begin document (bleak_house); part 0
    bleak_house 0 0 London _ _ _ _ _ _ _ _ (7)
    bleak_house 0 1 and    _ _ _ _ _ _ _ _ _
    bleak_house 0 2 its    _ _ _ _ _ _ _ _ (3|(7)
    bleak_house 0 3 rain   _ _ _ _ _ _ _ _ 3)
    #end document
"""


def test_underscores_are_empty_columns_and_singletons_are_read(columns: Write) -> None:
    """LitBank has thirteen columns with only words and coreference, and marks entities that are mentioned once."""
    corpus = read(columns("bleak_house.conll", LITBANK), format="conll2012")
    assert list(corpus) == [
        Document(
            "bleak_house/0",
            (Sentence((Word("London"), Word("and"), Word("its"), Word("rain"))),),
            (Mention("7", 0, 1), Mention("7", 2, 3), Mention("3", 2, 4)),
        )
    ]
    assert not corpus.skipped


def test_a_column_of_stars_is_not_a_parse(columns: Write) -> None:
    corpus = read(columns("a_conll", "#begin document (d); part 0\nd 0 0 a NN * - - - - * -\n#end document"))
    assert [document.sentences[0].parse for document in corpus] == [None]
    assert not corpus.skipped
