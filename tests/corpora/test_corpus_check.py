from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.corpora import Finding, check
from headscope.corpora.labels import RELATIONS, UPOS, is_relation

Write = Callable[[str, str], Path]
HEADER = "# newdoc id = d\n# global.Entity = GRP-etype\n# keyphrases = im Haus; DOGS\n# sent_id = s1\n# text = im Haus. Dogs"
ROWS = """
1-2 im   _ _     _ _ _ _            _ _
1   in   _ ADP   _ _ 3 case         _ _
2   dem  _ DET   _ _ 3 det          _ _
2.1 zero _ _     _ _ _ _            _ _
3   Haus _ NOUN  _ _ 0 root         _ SpaceAfter=No|Entity=(1-p)(2-p
4   .    _ PUNCT _ _ 3 punct        _ _
5   Dogs _ NOUN  _ _ 3 nmod:example _ Entity=2)
""".strip()
VALID = f"{HEADER}\n{ROWS}"


def test_inventories() -> None:
    assert len(UPOS) == 17
    assert len(RELATIONS) == 37
    assert [is_relation(label) for label in ("nsubj", "nsubj:pass", "nsubj:", "subj", ":pass", "_")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_valid_file_has_no_findings(columns: Write) -> None:
    assert check([columns("a.conllu", VALID)]) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("3 case", "9 case", 7, "head 9 in a sentence of 5 words"),
        ("3 case", "1 case", 7, "word 1 -> 1: the heads form a cycle"),
        ("3 case", "_ case", 7, "head '_' is not the number of a word"),
        ("3 case", "3 prep", 7, "'prep' is no universal relation"),
        ("3 case", "3 root", 7, "relation 'root' with head 3"),
        ("ADP ", "PREP ", 7, "'PREP' is no UPOS tag"),
        ("2.1", "3.1", 9, "empty node 3.1 after word 2"),
        ("1-2", "1-9", 12, "a range up to word 9 in a sentence of 5 words"),
        ("4   .", "6 .", 11, "id '6' where word 4 is expected"),
        ("SpaceAfter=No|", "", 1, "# text has 'im Haus. Dogs' where the words give 'im Haus . Dogs'"),
        ("# sent_id = s1", "# note = x", 1, "no # sent_id"),
        ("# text = im Haus. Dogs", "# note = x", 1, "no # text"),
        ("# newdoc id = d", "# note = x", 1, "no # newdoc before the first sentence"),
        ("DOGS", "cats", 3, "keyphrase 'cats' does not occur in the document"),
        ("Entity=2)", "_", 10, "entity '2' is still open"),
        ("(2-p", "_", 10, "bracket '(1-p)_' cannot be read"),
        ("(1-p)(2-p", "(1-p)3)(2-p", 10, "entity '3' is closed but was not opened"),
        ("2   dem", "# remark\n2   dem", 8, "comment 'remark' inside a sentence"),
        ("2   dem  _", "2 dem", 8, "9 columns where 10 are needed"),
    ],
)
def test_each_problem_is_found_with_its_place(columns: Write, old: str, new: str, line: int, problem: str) -> None:
    assert old in VALID
    path = columns("a.conllu", VALID.replace(old, new))
    found = [finding for finding in check([path]) if problem in finding.problem]
    assert [(finding.path, finding.line) for finding in found] == [(path, line)]
    assert found[0].sentence_id == (None if "sent_id" in problem or "newdoc" in problem else "s1")


def test_roots(columns: Write) -> None:
    path = columns("a.conllu", VALID.replace("3 case", "0 root"))
    assert [finding.problem for finding in check([path])] == ["2 roots"]


def test_all_problems_in_one_go_and_ids_across_files(columns: Write) -> None:
    first = columns("a.conllu", VALID)
    second = columns("b.conllu", VALID.replace("ADP ", "PREP ").replace("det ", "dit ") + "\n\n" + VALID.replace("id = s1", "id = s2"))
    assert check([first, second]) == [
        Finding(second, 1, "s1", "sent_id 's1' was used before, at line 1 of a.conllu"),
        Finding(second, 7, "s1", "'PREP' is no UPOS tag"),
        Finding(second, 8, "s1", "'dit' is no universal relation"),
    ]
    assert str(check([first, second])[1]) == f"line 7 of {second} (s1): 'PREP' is no UPOS tag"


def test_files_that_cannot_be_read(write: Write) -> None:
    path = write("a.conllu", "\n")
    assert check([path]) == [Finding(path, None, None, "the file is empty")]
