"""A user-defined study: it declares itself and computes its tables, and all commands work with it. The laws of studies
are tested on it as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

import headscope as hs
from headscope.corpora import read
from headscope.errors import RunError
from headscope.models.load import load
from headscope.results.results import Results
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from helpers import toy as module
from helpers.small import SmallStudies

Headscope = Callable[..., tuple[int, str, str]]


@pytest.fixture
def material(small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the model and the corpus, as the working directory."""
    monkeypatch.chdir(small.material)
    return small.material


def lengths(least: int, without: set[str]) -> list[int]:
    """The numbers of tokens of sentences, as the tokenizer counts them."""
    tokenizer = AutoTokenizer.from_pretrained("model")
    sentences = [sentence for document in read("excerpt.conllu") for sentence in document.sentences]
    kept = [sentence for sentence in sentences if len(sentence) >= least and not without & {word.form for word in sentence.words}]
    return [len(tokenizer([word.form for word in sentence.words], is_split_into_words=True)["input_ids"]) for sentence in kept]


def test_the_toy_study_has_at_most_80_lines() -> None:
    assert len(Path(module.__file__).read_text().splitlines()) <= 80


def test_the_toy_study_is_executed_in_python(toy: Study, material: Path, tmp_path: Path) -> None:
    study = hs.study("toy", "model", tmp_path / "out", corpus="excerpt.conllu", least=5, without="words.txt", replicates=0)
    expected = lengths(5, {"voted", "purchase"})
    assert study["toy"]["tokens"] == expected
    assert study["summary"]["value"] == [pytest.approx(np.mean(expected))]
    assert study["summary"]["n"] == [len(expected)]
    assert str(study).splitlines()[0] == f"A sentence has {np.mean(expected):.1f} tokens on average."
    assert study.tables == ["summary", "toy"]
    assert len(study.plot("toy_lengths").axes) == 1
    assert study.report() == tmp_path / "out" / "report.html"
    again = hs.study("toy", load("model"), corpus=read("excerpt.conllu"), least=5, without="words.txt", replicates=0)
    assert again["toy"]["tokens"] == expected


def test_the_toy_study_is_executed_on_the_command_line(toy: Study, material: Path, tmp_path: Path, headscope: Headscope) -> None:
    """From a settings file and flags to tables, a figure and a rerun."""
    assert "Count the tokens of sentences." in headscope("--help")[1]
    out, file = tmp_path / "TOY", tmp_path / "toy.toml"
    file.write_text('model = "model"\ncorpus = "excerpt.conllu"\nleast = 4\nreplicates = 10\n')
    code, printed, error = headscope("toy", file, "--least", "6", "--author", "me", "--out", out)
    assert (code, error) == (0, "")
    results = Results.open(out)
    (finding,) = toy.findings(results)
    assert finding in printed
    assert (results.manifest["settings"]["least"], results.manifest["settings"]["author"]) == (6, "me")
    assert results.manifest["measures"] == {"toy": {"least": 6}}
    shown = results.signature.split("|")
    assert "least:6" in shown
    assert "replicates:10" in shown
    assert not any("author" in part or "without" in part for part in shown)
    rows = json.loads(headscope("show", out, "toy", "--format", "json")[1])
    assert [row["tokens"] for row in rows] == results["toy"]["tokens"] == lengths(6, set())
    assert headscope("plot", out, "toy_lengths", "-o", tmp_path / "toy.svg")[0] == 0
    assert headscope("rerun", out)[1].startswith("identical to the last bit: 2 tables")


def test_the_toy_study_is_reported_together_with_a_run(toy: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    """The page of a run contains the texts and findings of the study."""
    path = tmp_path / "page.html"
    code, _, error = headscope("report", small.run(), small.folder("toy"), "-o", path)
    assert (code, error) == (0, "")
    page = unescape(path.read_text())
    assert all(text in page for text in (toy.title, toy.about, toy.published, *toy.findings(Results.open(small.folder("toy")))))


def test_two_toy_studies_are_compared(toy: Study, small: SmallStudies) -> None:
    """The study of longer sentences has more tokens per sentence."""
    first, second = small.folder("toy"), small.folder("toy", least=9)
    found = hs.compare(first, second)
    (row,) = found.differences["summary"]
    means = [np.mean(Results.open(folder)["toy"]["tokens"]) for folder in (first, second)]
    assert row["difference"] == pytest.approx(means[1] - means[0])
    assert row["difference"] > 1
    assert found.names == ("least 3", "least 9")


def test_a_file_is_identified_by_its_content(toy: Study, material: Path, small: SmallStudies, tmp_path: Path) -> None:
    """In the signature, and when a study is resumed."""
    signature = Results.open(small.folder("toy")).signature
    assert f"without:words.txt@{read('words.txt').hash()[:8]}" in signature.split("|")
    (tmp_path / "words.txt").write_text("Heron\n")
    out = tmp_path / "out"
    small.execute("toy", out, {"without": str(tmp_path / "words.txt")})
    assert Results.open(out)["toy"]["tokens"] == lengths(3, {"Heron"})
    (tmp_path / "words.txt").write_text("ferry\n")
    with pytest.raises(RunError, match=r"started with other settings: without was '[0-9a-f]+' and is '[0-9a-f]+'"):
        small.execute("toy", out, {"without": str(tmp_path / "words.txt")}, resume=True)


def test_a_study_is_unknown_after_it_is_removed(toy: Study, small: SmallStudies, headscope: Headscope) -> None:
    """Its command does not exist any more. Tables of its folders are shown; commands that need the study are refused in
    one line.
    """
    folder = small.folder("toy")
    REGISTRY.remove("toy")
    try:
        assert "toy" not in REGISTRY
        assert headscope("toy", "--help")[0] == 2
        assert headscope("show", folder, "summary")[0] == 0
        for arguments in (("report", folder), ("compare", folder, folder), ("rerun", folder)):
            code, _, error = headscope(*arguments)
            assert (code, error.count("\n")) == (2, 1), arguments
            assert "unknown study toy" in error, arguments
        with pytest.raises(RunError, match=r"unknown study toy.*another version"):
            hs.study("toy")
    finally:
        REGISTRY.add(toy)
