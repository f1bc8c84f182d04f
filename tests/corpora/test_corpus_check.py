from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.corpora import Finding, check
from headscope.corpora.checks import RULES
from headscope.corpora.tags import RELATIONS, UPOS
from headscope.errors import CorpusError, HeadscopeError

Write = Callable[[str, str], Path]
ROOT = Path(__file__).parents[2]
VALID = """
# newdoc id = d
# sent_id = s1
# text = the dog
1 the the DET  _ _ 2 det  _ _
2 dog dog NOUN _ _ 0 root _ _
"""


def test_there_are_17_tags_and_37_relations() -> None:
    assert len(UPOS) == 17
    assert len(RELATIONS) == 37


def test_a_finding_has_place_rule_problem_and_remedy(columns: Write) -> None:
    path = columns("a.conllu", VALID.replace("DET ", "ADV ").replace("id = d", "id = e").rstrip() + "\n" + VALID.replace("2 det", "9 det"))
    assert check([path]) == [
        Finding(path, 4, "s1", "det-upos", "det takes no ADV: 'the' (ADV, det)", "Tag it DET, add ExtPos=DET, or choose another relation"),
        Finding(path, 8, "s1", "sent-id-unique", "sent_id 's1' was used before, at line 2 of a.conllu", RULES["sent-id-unique"].remedy),
        Finding(path, 10, "s1", "head-outside", "head 9 in a sentence of 2 words", "Give the number of a word of the sentence"),
    ]
    assert str(check([path])[2]) == (
        f"line 10 of {path} (s1): head-outside: head 9 in a sentence of 2 words. Give the number of a word of the sentence"
    )


def test_a_note_is_reported_as_a_note(columns: Write) -> None:
    (finding,) = check([columns("a.conllu", VALID.replace("# newdoc id = d\n", ""))])
    assert finding.note
    assert ": newdoc-missing, a note: no # newdoc before the first sentence. Add" in str(finding)


def test_findings_can_be_limited_by_level_and_by_rule(columns: Write) -> None:
    text = VALID.replace("DET ", "ADV ").replace("2 dog", "02 dog").rstrip() + "\n" + VALID.replace("DET ", "ADV ")
    path = columns("a.conllu", text)
    found = {level: [finding.rule for finding in check([path], level)] for level in (1, 2, 3)}
    assert found == {
        1: ["id-format"],
        2: ["id-format", "newdoc-unique", "sent-id-unique"],
        3: ["id-format", "newdoc-unique", "sent-id-unique", "det-upos"],
    }
    assert [finding.rule for finding in check([path], ignore=["id-format", "newdoc-unique", "sent-id-unique"])] == ["det-upos"]
    with pytest.raises(HeadscopeError, match=r"no rule 'det-pos'\. Did you mean det-upos"):
        check([path], ignore=["det-pos"])
    with pytest.raises(HeadscopeError, match=r"no rule 'qqq'\. docs/checking\.md lists the rules"):
        check([path], ignore=["qqq"])
    with pytest.raises(HeadscopeError, match="no level 4"):
        check([path], level=4)


def test_a_repeated_sent_id_is_found_across_files(columns: Write) -> None:
    first, second = columns("a.conllu", VALID), columns("b.conllu", VALID)
    assert [(finding.path, finding.problem) for finding in check([first, second])] == [
        (second, "sent_id 's1' was used before, at line 2 of a.conllu")
    ]


def test_a_tree_with_a_cycle_gets_no_findings_of_level_3(columns: Write) -> None:
    path = columns("a.conllu", VALID.replace("DET ", "ADV ").replace("0 root", "1 nsubj"))
    assert [finding.rule for finding in check([path])] == ["cycle", "one-root"]


def test_an_unreadable_row_causes_no_findings_on_brackets(columns: Write) -> None:
    rows = VALID.replace("2 det  _ _", "2 det  _ Entity=(1-x").replace("0 root _ _", "0 root _ Entity=1)")
    text = rows.replace("id = d", "id = d\n# global.Entity = GRP-etype").strip() + "\n3 x\n"
    assert [(finding.line, finding.rule) for finding in check([columns("a.conllu", text)])] == [(7, "columns")]


def test_files_that_cannot_be_read_are_reported(write: Write, tmp_path: Path) -> None:
    path = write("a.conllu", "\n")
    remedy = "Check that it was written or downloaded completely"
    assert check([path]) == [Finding(path, None, None, "unreadable-file", "the file is empty", remedy)]
    assert str(check([path])[0]) == f"{path}: unreadable-file: the file is empty. {remedy}"
    with pytest.raises(CorpusError, match="there is no such file"):
        check([tmp_path / "b.conllu"])
    assert [finding.problem for finding in check([write("c.conllu.xz", "1\t2\n")])] == ["the .xz data ends too early"]


def test_a_file_that_is_not_conllu_is_one_finding(write: Write) -> None:
    text = write("a.txt", "A line.\n\nAnother one.\n" * 1000)
    assert [(finding.line, finding.rule) for finding in check([text])] == [(None, "not-conllu")]


def test_the_documentation_lists_every_rule() -> None:
    lines = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8").splitlines()
    assert sorted(line for line in lines if line.startswith("| `")) == sorted(map(row, RULES))


def row(name: str) -> str:
    """The row of a rule in the table of docs/checking.md."""
    rule = RULES[name]
    cells = [f"`{name}`{' (note)' if rule.note else ''}", str(rule.level), rule.asks, rule.remedy]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
