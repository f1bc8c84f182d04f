"""`headscope keywords`: files, corpora and standard input; tables, JSON, CSV and pictures; its description of the
training.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.corpora import read
from headscope.errors import CorpusError, HeadscopeError, RunError
from headscope.models.load import load
from headscope.studies.execute import execute
from helpers.predicting import loaded

TEXT = "Sea turtles lay eggs on the beach. The turtles return to the beach each year.\n\nBiologists count the eggs of sea turtles <b>.\n"


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Load the model once for all calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.studies.keywords.finder.load", cache(load))
        yield


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small study of the embedded model. The keyphrases of each text are an animal and `lake`."""
    folder = tmp_path_factory.mktemp("learned")
    lines = []
    for name in ["otters", "eagles", "wild bees", "salmon", "brown bears", "gulls"]:
        text = f"The {name} are common here, and in spring {name} feed their young by the lake."
        lines.append({"id": name, "text": text, "keyphrases": [name, "lake"]})
    path = folder / "animals.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    execute("keywords", {"corpus": str(path), "folds": 2, "replicates": 20}, folder / "study", corpus=read(path))
    return str(folder / "study")


@pytest.fixture
def article(tmp_path: Path) -> str:
    path = tmp_path / "article.md"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def run(*arguments: str, input: str | bytes | None = None) -> tuple[str, str]:
    """Run `headscope keywords` and return its standard output and standard error."""
    result = CliRunner().invoke(app, ["keywords", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_the_text_the_phrases_and_the_training_are_printed(learned: str, article: str) -> None:
    out, err = run(article, "--learned", learned)
    assert "Sea turtles lay eggs on the beach. The turtles return to the beach each year.\n" in out
    assert "\x1b" not in out
    assert "article.md: the best" in out
    assert "with weights learnt from the keyphrases of 6 documents (animals.jsonl); F1 of words of keyphrases is" in out
    assert "(each in turn, in 2 folds)" in out
    assert err == ""


def test_without_a_study_the_weights_are_learnt_from_the_sampler(article: str, tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert").name
    out, err = run(article, "--model", model)
    assert "headscope: learning from the 19 documents of the sampler, which takes a few seconds" in err
    assert f"weighted by all heads of {Path(model).name}, with weights learnt from the keyphrases of 19 documents (sampler)" in out


def test_json_and_csv_contain_the_same_phrases(learned: str, article: str) -> None:
    out, err = run(article, "--learned", learned, "--format", "json", "--top", "2")
    found = json.loads(out)
    assert found["trained"]["documents"] == 6
    assert 0 <= found["trained"]["held_out"]["low"] <= found["trained"]["held_out"]["f1"] <= found["trained"]["held_out"]["high"] <= 1
    (text,) = found["texts"]
    assert text["document"] == "article.md"
    assert 1 <= len(text["phrases"]) <= 2
    words = [word["word"] for word in text["words"]]
    assert words[:4] == ["Sea", "turtles", "lay", "eggs"]
    for phrase in text["phrases"]:
        for start, end in phrase["places"]:
            assert " ".join(words[start:end]).casefold() == phrase["phrase"].casefold()
        total = sum(word["weight"] for start, end in phrase["places"] for word in text["words"][start:end])
        assert phrase["score"] == pytest.approx(total, abs=1e-4)
    assert "headscope: Words are weighted by all heads of mini" in err
    rows = list(csv.DictReader(io.StringIO(run(article, "--learned", learned, "--format", "csv", "--top", "2", "--quiet")[0])))
    assert [row["phrase"] for row in rows] == [phrase["phrase"] for phrase in text["phrases"]]
    assert [int(row["places"]) for row in rows] == [len(phrase["places"]) for phrase in text["phrases"]]


def test_standard_input_and_several_files_are_read(learned: str, article: str, tmp_path: Path) -> None:
    piped = json.loads(run("-", "--learned", learned, "--format", "json", "-q", input="\ufeff" + TEXT.replace("\n", "\r\n"))[0])
    alone = json.loads(run(article, "--learned", learned, "--format", "json", "-q")[0])
    assert piped["texts"][0]["phrases"] == alone["texts"][0]["phrases"]
    assert piped["texts"][0]["document"] == "standard input"
    lines = tmp_path / "two.jsonl"
    lines.write_text('{"text": "A whale sings."}\n{"id": "b", "text": "Two whales sing."}\n', encoding="utf-8")
    both = json.loads(run(str(lines), article, article, "--learned", learned, "--format", "json", "-q")[0])
    assert [text["document"] for text in both["texts"]] == ["two.jsonl#1", "b", "article.md", "article.md#2"]
    assert both["texts"][2]["phrases"] == alone["texts"][0]["phrases"]
    page = tmp_path / "page.html"
    assert run(str(lines), article, "--learned", learned, "-o", str(page), "-q") == (f"{page}\n", "")
    written = page.read_text(encoding="utf-8")
    assert "<h2>article.md</h2>" in written
    assert "Sea" in written
    assert "<b>" not in written


def test_a_picture_is_written(learned: str, article: str, tmp_path: Path) -> None:
    target = tmp_path / "picture.svg"
    out, err = run(article, "--learned", learned, "-o", str(target))
    assert out == f"{target}\n"
    assert "6 documents (animals.jsonl)" in err
    assert "Biologists" in target.read_text(encoding="utf-8")


def test_invalid_input_is_refused_and_undecodable_text_can_be_skipped(learned: str, article: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    bad = tmp_path / "latin.txt"
    bad.write_bytes("Größe\n\nFine text here.".encode("latin-1"))
    cases: list[tuple[list[str], type[HeadscopeError], str]] = [
        (
            [article, "--format", "xml"],
            RunError,
            "unknown format 'xml'.*of the files is set with --read-as",
        ),
        ([article, "-o", "page.docx"], RunError, "cannot be written as 'page.docx'"),
        ([str(tmp_path / "nowhere.txt")], CorpusError, "there is no such file"),
        ([str(tmp_path / "empty")], CorpusError, "no file in this folder has a name that shows its format"),
        ([str(bad)], CorpusError, "line 1 of .*is not UTF-8"),
        ([article, "--read-as", "conllu"], CorpusError, "line 1 of .*article.md"),
        ([article, article, "-o", "picture.svg"], RunError, "a picture can show one text, not 2"),
        ([article, "--learned", str(tmp_path / "none")], RunError, "none"),
    ]
    for arguments, kind, said in cases:
        with pytest.raises(kind, match=said):
            run(*arguments)
    for given, said in ((" \n", "standard input is empty"), (b"\xff\xfe", "standard input is not UTF-8")):
        with pytest.raises(RunError, match=said):
            run("-", input=given)
    out, err = run(str(bad), "--on-error", "skip", "--learned", learned)
    assert "Fine text here." in out
    assert "left out: 1 paragraphs skipped: not UTF-8 (first: line 1 of latin.txt)" in err
