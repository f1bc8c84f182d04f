"""Each rule of levels 1 and 2, broken in an otherwise valid file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.corpora import check
from headscope.corpora.checks import RULES

VALID = """\
# newdoc id = d
# global.Entity = GRP-etype-minspan
# keyphrases = im Haus; HUNDE
# sent_id = s1
# text = Im Haus schlafen Hunde.
1-2	Im	_	_	_	_	_	_	_	_
1	In	in	ADP	APPR	_	3	case	3:case	_
2	dem	der	DET	ART	Case=Dat|PronType=Art	3	det	3:det	Entity=(1-place-2
3	Haus	Haus	NOUN	NN	Number=Sing	4	obl	4:obl:in	Entity=1)
4	schlafen	schlafen	VERB	VVFIN	_	0	root	0:root	_
4.1	ruhen	ruhen	VERB	VVFIN	_	_	_	4:conj	_
5	Hunde	Hund	NOUN	NN	Number=Plur	4	nsubj	4:nsubj|4.1:nsubj	SpaceAfter=No|Entity=(2-animal-1)
6	.	.	PUNCT	$.	_	4	punct	4:punct	_

# newpar
# sent_id = s2
# text = Sie bellen.
1	Sie	sie	PRON	PPER	Case=Acc,Nom|PronType=Prs	2	nsubj	2:nsubj	Entity=(2-animal-1)
2	bellen	bellen	VERB	VVFIN	_	0	root	0:root	SpaceAfter=No
3	.	.	PUNCT	$.	_	2	punct	2:punct	_

"""


def edit(*replacements: str) -> str:
    """The valid file after replacements: in each pair, the second string replaces the first occurrence of the first."""
    text = VALID
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


# A lone surrogate stands for a single byte.
BROKEN: dict[str, list[str]] = {
    "unreadable-file": ["\n"],
    "not-conllu": ["A text.\n\nOf two paragraphs.\n", "\udcff\x00\n1\t2\n"],
    "byte-order-mark": [edit("# newdoc id = d", "\ufeff# newdoc id = d")],
    "line-end": [edit("# newpar\n", "# newpar\r\n")],
    "utf8": [edit("VVFIN\t_\t_\t_\t4:conj", "\udcff\t_\t_\t_\t4:conj")],
    "unicode-nfc": [edit("# newpar\n", "# newpar\n# author = Bu\u0308chner\n")],
    "stray-blank-line": [
        edit("\n# newpar", "\n\n# newpar"),
        edit("# newdoc", "\n# newdoc"),
        edit("# sent_id = s1", "\n# sent_id = s1"),
        edit("2:punct\t_\n\n", "2:punct\t_\n\n\n"),
    ],
    "blank-line-spaces": [edit("\n\n# newpar", "\n \n# newpar")],
    "final-blank-line": [edit("2:punct\t_\n\n", "2:punct\t_\n"), edit("2:punct\t_\n\n", "2:punct\t_")],
    "comment-place": [edit("2\tdem", "# remark\n2\tdem"), edit("2:punct\t_\n\n", "2:punct\t_\n\n# the end\n")],
    "columns": [edit("\tSpaceAfter=No\n3", "\n3"), edit("0:root\t_\n4.1", "0:root\t_\t_\n4.1"), edit("1\tSie\tsie", "1\tSie sie")],
    "empty-column": [edit("VVFIN\t_\t_\t_\t4:conj", "\t_\t_\t_\t4:conj")],
    "column-space": [
        edit("\tAPPR", "\tAPPR DAT"),
        edit("\tSpaceAfter=No\n3", "\tSpaceAfter=No|Gloss=a  b\n3"),
        edit("sie\tPRON", " sie\tPRON"),
        edit("sie\tPRON", "sie \tPRON"),
        edit("1-2\tIm", "1-2\tI m", "= Im", "= I m", "im Haus", "i m Haus"),
    ],
    "id-format": [edit("3\t.\t.", "03\t.\t."), edit("4.1\truhen", "4.01\truhen")],
    "id-order": [edit("3\t.\t.", "4\t.\t.")],
    "id-range": [edit("1-2\tIm", "2-3\tIm"), edit("1-2\tIm", "1-9\tIm"), edit("3\tHaus", "2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\tHaus")],
    "id-empty-node": [
        edit("4.1\truhen", "4.2\truhen"),
        edit("4.1\truhen", "5.1\truhen"),
        edit("1-2\tIm", "1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_\n0.1\tx"),
    ],
    "no-words": [edit("# newpar\n", "# sent_id = s3\n# text = x\n1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n# newpar\n")],
    "sent-id-missing": [edit("# sent_id = s1\n", ""), edit("# sent_id = s1", "# sent_id =")],
    "sent-id-format": [edit("id = s1", "id = s 1"), edit("id = s1", "id = s/1"), edit("# sent_id = s1", "# sent_id = s1\n# sent_id = s0")],
    "sent-id-unique": [edit("id = s2", "id = s1")],
    "text-missing": [edit("# text = Sie bellen.\n", "")],
    "text-repeated": [edit("# text = Sie bellen.", "# text = Sie bellen.\n# text = Sie bellen.")],
    "text-end": [edit("# text = Sie bellen.", "# text = Sie bellen. ")],
    "text-words": [edit("= Sie bellen.", "= Sie belen."), edit("= Sie bellen.", "= Sie bellen. Laut."), edit("= Sie bellen.", "= Sie")],
    "space-after": [edit("= Sie bellen.", "= Sie bellen ."), edit("= Sie bellen.", "= Siebellen.")],
    "space-after-place": [edit("3:case\t_", "3:case\tSpaceAfter=No"), edit("4:conj\t_", "4:conj\tSpaceAfter=No")],
    "space-after-value": [edit("0:root\t_", "0:root\tSpaceAfter=Yes"), edit("0:root\t_", "0:root\tNoSpaceAfter=Yes")],
    "space-after-break": [edit("4:punct\t_", "4:punct\tSpaceAfter=No")],
    "newdoc-newpar": [edit("# newpar", "# newpar\n# newpar id = p"), edit("# newdoc id = d", "# newdoc id = d\n# newdoc id = e")],
    "newdoc-missing": [edit("# newdoc id = d\n", "")],
    "newdoc-unique": [edit("# newpar", "# newdoc id = d")],
    "keyphrase": [edit("HUNDE", "Katzen"), edit("HUNDE", "Hund schläft")],
    "upos": [edit("\tPRON\t", "\tPRN\t"), edit("\tPRON\t", "\t_\t"), edit("ruhen\tVERB", "ruhen\tV")],
    "relation": [edit("2\tnsubj\t", "2\tsubj\t"), edit("2\tnsubj\t", "2\t_\t"), edit("2\tnsubj\t", "2\tNSUBJ\t")],
    "relation-subtype": [edit("2\tnsubj\t", "2\tnsubj:\t"), edit("2\tnsubj\t", "2\tnsubj:Pass\t"), edit("2\tnsubj\t", "2\tnsubj:a:b\t")],
    "feature-format": [
        edit("Number=Sing", "Number"),
        edit("Number=Sing", "Number=sing"),
        edit("Number=Sing", "number=Sing"),
        edit("Number=Sing", "Number=Sing|"),
    ],
    "feature-order": [edit("Case=Dat|PronType=Art", "PronType=Art|Case=Dat")],
    "feature-repeated": [edit("Number=Sing", "Number=Plur|Number=Sing")],
    "feature-values": [edit("Case=Acc,Nom", "Case=Nom,Acc"), edit("Case=Acc,Nom", "Case=Acc,Acc")],
    "range-columns": [edit("1-2\tIm\t_\t_", "1-2\tIm\tim\t_"), edit("1-2\tIm\t_\t_\t_\t_", "1-2\tIm\t_\t_\t_\tCase=Dat")],
    "empty-node-columns": [edit("_\t_\t4:conj", "4\tconj\t4:conj")],
    "misc-format": [edit("0:root\t_", "0:root\tGloss=x|"), edit("0:root\t_", "0:root\t=x"), edit("0:root\t_", "0:root\tGloss= x|Lang=de")],
    "misc-repeated": [edit("0:root\t_", "0:root\tGloss=x|Gloss=y"), edit("(2-animal-1)\n2", "(2-animal-1)|Entity=(3-x-1)\n2")],
    "misc-case": [edit("0:root\t_", "0:root\tgloss=x")],
    "head-format": [edit("2\tnsubj\t", "_\tnsubj\t"), edit("2\tnsubj\t", "02\tnsubj\t"), edit("2\tnsubj\t", "1.1\tnsubj\t")],
    "head-outside": [edit("2\tnsubj\t", "9\tnsubj\t")],
    "head-self": [edit("2\tnsubj\t", "1\tnsubj\t")],
    "cycle": [edit("3\tcase\t", "2\tcase\t", "3\tdet\t", "1\tdet\t")],
    "one-root": [edit("2\tnsubj\t", "0\troot\t")],
    "root-relation": [edit("2\tnsubj\t", "2\troot\t"), edit("0\troot\t0:root\tSpaceAfter=No", "0\tparataxis\t0:root\tSpaceAfter=No")],
    "deps-format": [edit("2:nsubj", "2"), edit("2:nsubj", "x:nsubj"), edit("2:nsubj", "2:nsubj|"), edit("2:nsubj", "02:nsubj")],
    "deps-head": [edit("2:nsubj", "7:nsubj"), edit("2:nsubj", "1:nsubj"), edit("4.1:nsubj", "4.2:nsubj")],
    "deps-order": [edit("4:nsubj|4.1:nsubj", "4.1:nsubj|4:nsubj"), edit("2:nsubj", "2:nsubj|2:nsubj"), edit("2:nsubj", "2:nsubj|2:dep")],
    "deps-relation": [
        edit("2:nsubj", "2:subj"),
        edit("2:nsubj", "2:nsubj:X"),
        edit("2:nsubj", "2:nsubj:a_"),
        edit("2:nsubj", "2:root"),
        edit("2:nsubj", "0:nsubj"),
    ],
    "deps-unconnected": [edit("2:nsubj", "_"), edit("4:conj", "5:conj", "4:nsubj|4.1:nsubj", "4.1:nsubj")],
    "deps-sometimes": [edit("2:nsubj", "_", "0:root\tSpaceAfter", "_\tSpaceAfter", "2:punct", "_")],
    "entity-format": [edit("(2-animal-1)\n2", "2-animal-1\n2"), edit("(2-animal-1)\n2", "((2-animal-1)\n2")],
    "entity-declared": [edit("# global.Entity = GRP-etype-minspan\n", "")],
    "entity-place": [edit("1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_", "1-2\tIm\t_\t_\t_\t_\t_\t_\t_\tEntity=(9-x-1)")],
    "entity-balance": [edit("Entity=1)", "_"), edit("Entity=(1-place-2", "_")],
    "entity-crossing": [edit("Entity=1)", "Entity=(3-x-1", "0:root\t_", "0:root\tEntity=1)3)")],
    "entity-depth": [edit("(2-animal-1)\n2", "(9-x-1" * 101 + "\n2"), edit("(2-animal-1)\n2", "(9-x-1" * 20_000 + "\n2")],
    "entity-type": [edit("(2-animal-1)\n2", "(2-person-1)\n2"), edit("(2-animal-1)\n2", "(2)\n2")],
    "mention-minspan": [edit("(1-place-2", "(1-place-3"), edit("(1-place-2", "(1-place-0"), edit("(1-place-2", "(1-place-1,x")],
}
VARIANTS = [
    edit("1-2\tIm\t_\t_\t_\t_", "1-2\tIm\t_\t_\t_\tTypo=Yes"),
    edit("Sie bellen.\n1\tSie\tsie", "Sie da bellen.\n1\tSie da\tsie da"),
    edit("= Im Haus schlafen", "= Im  Haus schlafen"),
    edit("4:punct\t_\n\n# newpar\n", "4:punct\tSpaceAfter=No\n\n"),
    edit("# newpar", "# newdoc id = e"),
    edit("# newdoc id = d", "# newdoc"),
    edit("# newpar\n", "# newpar\n# a remark\n"),
    edit("\tPRON\t", "\tX\t"),
    edit("2\tnsubj\t", "2\tnsubj:pass\t"),
    edit("Number=Sing", "Gender[psor]=Fem|Number=Sing"),
    edit("4:obl:in", "4:obl:in_front_of:dat"),
    edit("0:root\t_", "0:root\tRemark|Ref=a|Ref=b"),
    edit("4:conj\t_", "4:conj\tEntity=(7-x-1)"),
    edit("(1-place-2", "(1-place-1,2"),
    edit("(1-place-2", "(1-place"),
    edit("Entity=(1-place-2", "Entity=(1[1/2]-place-1)(1-place-2"),
    edit("# newpar", "# newdoc id = e\n# global.Entity = eid-etype-head"),
]


@pytest.fixture
def found(tmp_path: Path) -> Callable[[str], list[str]]:
    """A function that returns the rules that a text breaks."""

    def found(text: str) -> list[str]:
        path = tmp_path / "a.conllu"
        path.write_bytes(text.encode(errors="surrogateescape"))
        return [finding.rule for finding in check([path], level=2)]

    return found


def test_every_rule_of_levels_1_and_2_has_an_example() -> None:
    # The rule conll2012 is tested in test_conll2012.py.
    assert {*BROKEN, "conll2012"} == {rule.name for rule in RULES.values() if rule.level < 3}


def test_the_valid_file_and_its_valid_variants_have_no_findings(found: Callable[[str], list[str]]) -> None:
    assert found(VALID) == []
    for text in VARIANTS:
        assert found(text) == [], text


@pytest.mark.parametrize("rule", BROKEN)
def test_a_faulty_file_breaks_exactly_one_rule(found: Callable[[str], list[str]], rule: str) -> None:
    for text in BROKEN[rule]:
        assert set(found(text)) == {rule}, text
