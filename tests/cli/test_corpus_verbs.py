"""`headscope corpus stats` and `headscope corpus compare` from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.errors import HeadscopeError

GOOD = """# newdoc id = d
# sent_id = d-1
1	Ann	Ann	PROPN	NNP	_	2	nsubj	_	Entity=(1-person)
2	saw	see	VERB	VBD	_	0	root	_	_
3	the	the	DET	DT	_	4	det	_	Entity=(2-animal
4	dog	dog	NOUN	NN	_	2	obj	_	Entity=2)
5	she	she	PRON	PRP	_	6	nsubj	_	Entity=(1-person)
6	has	have	VERB	VBZ	_	4	acl:relcl	_	_

"""
OTHER = (
    GOOD.replace("VERB	VBZ", "AUX	VBZ")
    .replace("4	acl:relcl", "2	acl")
    .replace("Entity=(2-animal\n", "_\n")
    .replace("Entity=2)", "_")
)


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "first.conllu", tmp_path / "second.conllu"
    first.write_text(GOOD)
    second.write_text(OTHER)
    return first, second


def test_stats_prints_the_counts_of_one_corpus(files: tuple[Path, Path]) -> None:
    text = call("corpus", "stats", files[0], "--model", "none")
    for line in [
        r"sentences +1\n",
        r"words per sentence +6\.0 \[6 6 6 6 6\]\n",
        r"dependencies +5\n",
        r"head to the right +60\.0%\n",
        r"words to the head +1\.4 \[1 1 1 2 2\]\n",
        r"pronouns +1 \(33\.3%\)\n",
        r"mentions in chains +2 \(66\.7%\)\n",
        r"antecedent, words back +4\.0 \[4 4 4 4 4\]\n",
        r"in the same sentence +1 \(100\.0%\)\n",
        r"nsubj +2 +33\.3 +100\.0% +1\.0 +\+1 \(100\.0%\)",
        r"root +1 +16\.7 +– +– +–",
        r"VERB +2 +33\.3",
        r"NNP +1 +16\.7",
        r"person +2 +66\.7",
    ]:
        assert re.search(line, text), line
    assert "keyphrases" not in text
    assert "tokens" not in text


def test_stats_counts_labelled_spans(files: tuple[Path, Path], tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    target = '{"span1": [1, 2], "span2": [2, 4], "label": ["ARG1", "x"], "task": "srl"}'
    spans.write_text(f'{{"text": "Ann ate ice cream", "targets": [{target}, {{"span1": [0, 1], "label": "PER", "task": "ner"}}]}}\n')
    text = call("corpus", "stats", spans, "--model", "none")
    assert re.search(r"labelled spans +1 ner, 1 srl\n", text)
    assert re.search(r"words per labelled span +1\.3 \[1 1 1 1\.5 2\]\n", text)
    assert re.search(r"labels of srl.*ARG1 +1 +50\.0", text, re.DOTALL)
    beside = call("corpus", "stats", files[0], "--beside", spans, "--model", "none")
    assert re.search(r"labelled spans +– +1 ner, 1 srl", beside)
    assert re.search(r"labels of ner: how many.*PER +– +1 \(250\.0\)", beside, re.DOTALL)


def test_stats_prints_several_corpora_side_by_side(files: tuple[Path, Path], tmp_path: Path) -> None:
    arguments = ["corpus", "stats", str(files[0]), "--beside", str(files[1]), "--beside", "sampler"]
    text = call(*arguments)
    assert re.search(r"quantity +first +second +sampler", text)
    assert re.search(r"words +6 +6 +[\d,]+ \n", text)
    assert re.search(r"mentions per chain +2\.0 \[2 2 2 2 2\] +2\.0 \[2 2 2 2 2\] +\d", text)
    assert re.search(r"keyphrases +– +– +\d", text)
    assert re.search(r"nsubj +2 \(333\.3\) +2 \(333\.3\) +\d", text)
    assert re.search(r"obj +0\.0% \(2\.0\) +0\.0% \(2\.0\) +\d", text)
    assert re.search(r"animal +1 \(166\.7\) +– +", text)
    assert re.search(r"\d+ others +– +– +\d", text)
    assert text.count("a run of mini over each sentence, up to 128 tokens") == 1
    markdown = call(*arguments, "--markdown", "--all", "--model", "none")
    assert "| quantity | first | second | sampler |\n| :-- | --: | --: | --: |\n| documents | 1 | 1 |" in markdown
    assert "| acl:relcl | 1 (166.7) | – |" in markdown
    assert "others" not in markdown
    (tmp_path / "more").mkdir()
    same = tmp_path / "more" / "first.conllu"
    same.write_text(GOOD)
    assert f"| quantity | first | {same} |" in call("corpus", "stats", files[0], "--beside", same, "--markdown", "--model", "none")
    with pytest.raises(HeadscopeError, match=r"first\.conllu is named twice"):
        call("corpus", "stats", files[0], "--beside", files[0], "--beside", files[0])


def test_compare_prints_scores_and_differences(files: tuple[Path, Path], tmp_path: Path) -> None:
    text = call("corpus", "compare", *files, "--json", tmp_path / "a.json")
    assert "1 document, 1 sentence, 6 words" in text
    assert re.search(r"upos +0\.8333 +– +– +6", text)
    assert re.search(r"mentions +0\.8000 +– +– +1\.0000 +0\.6667 +3 +2", text)
    assert re.search(r"acl:relcl +0\.0000 +– +– +– +0\.0000 +1 +0", text)
    assert "1 word and 1 mention differ: see --differences" in text
    assert call("corpus", "compare", *files, "--differences").splitlines() == [
        "file\tsentence\twords\ttext\tfirst\tsecond",
        "first.conllu\td-1\t6\thas\tupos=VERB head=4 relation=acl:relcl to=dog\tupos=AUX head=2 relation=acl to=saw",
        "first.conllu\td-1\t3-4\tthe dog\tentity=2 type=animal\tno mention",
    ]
    written = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    scores = {score["name"]: score for score in written["scores"]}
    assert scores["uas"] == {
        **dict.fromkeys(("low", "high", "precision", "recall")),
        "name": "uas",
        "documents": 1,
        "value": pytest.approx(5 / 6),
        "first": 6,
        "second": 6,
    }
    assert {score["name"] for score in written["relations"]} == {"nsubj", "root", "det", "obj", "acl", "acl:relcl"}
    assert [difference["word"] for difference in written["differences"]] == [6, 3]
    assert "| las | 0.8333 | – | – | 6 |" in call("corpus", "compare", *files, "--markdown")
    assert "0 words and 0 mentions differ\n" in call("corpus", "compare", "sampler", "sampler")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("dog\tdog", "cat\tcat", "document d, sentence d-1: word 4 is 'dog' in the first annotation and 'cat' in the second"),
        ("id = d\n", "id = e\n", "only the first annotation has document d; only the second annotation has document e"),
        ("4\tacl", "9\tacl", "second.conllu: head 9 in a sentence of 6 words"),
    ],
)
def test_annotations_that_cannot_be_compared_are_refused_in_one_line(
    headscope: Callable[..., tuple[int, str, str]], files: tuple[Path, Path], old: str, new: str, says: str
) -> None:
    files[1].write_text(GOOD.replace(old, new))
    code, _, error = headscope("corpus", "compare", *files)
    assert (code, len(error.strip().splitlines())) == (2, 1)
    assert says in error


def test_a_json_file_that_cannot_be_written_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match=r"nowhere/a\.json cannot be written"):
        call("corpus", "compare", *files, "--json", tmp_path / "nowhere" / "a.json")
