"""The validator never raises, and agrees with the reader on what is sound."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.corpora import check, read
from headscope.corpora.checks import RULES

SEED = """\
# newdoc id = d
# global.Entity = GRP-etype-minspan
# keyphrases = im Haus
# sent_id = s1
# text = Im Haus, with out Hunde.
1-2	Im	_	_	_	_	_	_	_	_
1	In	in	ADP	_	_	3	case	3:case	_
2	dem	der	DET	_	Case=Dat|PronType=Art	3	det	3:det	Entity=(1-place-2
3	Haus	Haus	NOUN	_	Number=Sing	0	root	0:root	Entity=1)|SpaceAfter=No
3.1	x	_	_	_	_	_	_	3:conj	_
4	,	,	PUNCT	_	_	7	punct	7:punct	_
5	with	without	ADP	_	Typo=Yes	7	case	7:case	_
6	out	_	X	_	_	5	goeswith	5:goeswith	_
7	Hunde	Hund	NOUN	_	Number=Plur	3	conj	3.1:obj|3:conj	Entity=(2-animal-1)|SpaceAfter=No
8	.	.	PUNCT	_	_	3	punct	3:punct	_

# newpar
# sent_id = s2
# text = Sie
1	Sie	sie	PRON	_	Case=Acc,Nom	0	root	0:root	Entity=(2-animal-1)

"""
PIECES = [
    "",
    "\n",
    "\t",
    " ",
    "#",
    "(",
    ")",
    "|",
    "-",
    ".",
    ":",
    "0",
    "1",
    "3",
    "9",
    "_",
    "=",
    "\r",
    "\x00",
    "\udcff",
    "\u0308",
    "1-2",
    "Entity=",
]
WORDS = ["punct", "case", "fixed", "goeswith", "flat", "orphan", "PUNCT", "obj", "# newdoc", "SpaceAfter=No", "ExtPos=ADV", "e1[1/2]"]
mutation = st.tuples(st.integers(0, 10_000), st.integers(0, 8), st.sampled_from(PIECES + WORDS))
OVERWRITE = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@OVERWRITE
@given(mutations=st.lists(mutation, min_size=1, max_size=5))
def test_any_file_is_judged(tmp_path: Path, mutations: list[tuple[int, int, str]]) -> None:
    text = SEED
    for place, length, piece in mutations:
        start = place % (len(text) + 1)
        text = text[:start] + piece + text[start + length :]
    path = tmp_path / "fuzz.conllu"
    path.write_bytes(text.encode(errors="surrogateescape"))
    findings = check([path])
    lines = text.count("\n") + 1
    assert all(finding.rule in RULES and (finding.line is None or 1 <= finding.line <= lines) for finding in findings)
    assert [finding.line or 0 for finding in findings] == sorted(finding.line or 0 for finding in findings)
    for level in (1, 2):
        assert check([path], level) == [finding for finding in findings if finding.level <= level]
    # What has nothing wrong up to level 2 can be read without an error.
    if all(finding.level == 3 or finding.note for finding in findings):
        assert all(sentence.words for document in read(path) for sentence in document.sentences)


def cells(number: int) -> st.SearchStrategy[str]:
    """A row whose head and relation are likely to make a tree, of labels that have rules."""
    upos = st.sampled_from(["DET", "NOUN", "PROPN", "PUNCT", "ADP", "X", "AUX"])
    relation = st.sampled_from(["det", "case", "punct", "fixed", "goeswith", "flat:foreign", "conj", "nsubj", "obj", "orphan", "obl"])
    features = st.sampled_from(["_", "ExtPos=ADV", "Polarity=Neg", "Typo=Yes"])
    brackets = st.sampled_from(["_", "Entity=(1-a", "Entity=1)", "Entity=(2-a)", "Entity=2)(1-b", "SpaceAfter=No"])
    return st.builds(
        lambda upos, features, head, relation, misc: f"{number}\tw\tw\t{upos}\t_\t{features}\t{head}\t{relation}\t_\t{misc}",
        upos,
        features,
        st.integers(0, 6),
        relation,
        brackets,
    )


@OVERWRITE
@given(rows=st.tuples(*map(cells, range(1, 7))))
def test_any_tree_is_judged(tmp_path: Path, rows: tuple[str, ...]) -> None:
    path = tmp_path / "fuzz.conllu"
    path.write_text("# newdoc id = d\n# sent_id = s\n# text = w\n" + "\n".join(rows) + "\n\n", encoding="utf-8")
    assert check([path]) == check([path])
