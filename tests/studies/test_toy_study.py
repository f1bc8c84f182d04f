"""A study of somebody's own: it says what it is and computes, and everything else comes with it. All laws hold of
it, too.
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
    """The folder of the model and the corpus, which names in it are looked up in."""
    monkeypatch.chdir(small.material)
    return small.material


def lengths(least: int, without: set[str]) -> list[int]:
    """Tokens of sentences, as the tokenizer itself counts them."""
    tokenizer = AutoTokenizer.from_pretrained("model")
    sentences = [sentence for document in read("excerpt.conllu") for sentence in document.sentences]
    kept = [sentence for sentence in sentences if len(sentence) >= least and not without & {word.form for word in sentence.words}]
    return [len(tokenizer([word.form for word in sentence.words], is_split_into_words=True)["input_ids"]) for sentence in kept]


def test_it_is_short() -> None:
    assert len(Path(module.__file__).read_text().splitlines()) <= 80


def test_in_python(toy: Study, material: Path, tmp_path: Path) -> None:
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


def test_on_the_command_line(toy: Study, material: Path, tmp_path: Path, headscope: Headscope) -> None:
    """From a file of settings and flags to tables, a figure and pages."""
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


def test_beside_a_run(toy: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    """On the page of a run."""
    path = tmp_path / "page.html"
    code, _, error = headscope("report", small.run(), small.folder("toy"), "-o", path)
    assert (code, error) == (0, "")
    page = unescape(path.read_text())
    assert all(text in page for text in (toy.title, toy.about, toy.published, *toy.findings(Results.open(small.folder("toy")))))


def test_compared(toy: Study, small: SmallStudies) -> None:
    """The longer sentences are longer."""
    first, second = small.folder("toy"), small.folder("toy", least=9)
    found = hs.compare(first, second)
    (row,) = found.differences["summary"]
    means = [np.mean(Results.open(folder)["toy"]["tokens"]) for folder in (first, second)]
    assert row["difference"] == pytest.approx(means[1] - means[0])
    assert row["difference"] > 1
    assert found.names == ("least 3", "least 9")


def test_a_file_counts_by_its_content(toy: Study, material: Path, small: SmallStudies, tmp_path: Path) -> None:
    """In the signature, and where a study is resumed."""
    signature = Results.open(small.folder("toy")).signature
    assert f"without:words.txt@{read('words.txt').hash()[:8]}" in signature.split("|")
    (tmp_path / "words.txt").write_text("Heron\n")
    out = tmp_path / "out"
    small.execute("toy", out, {"without": str(tmp_path / "words.txt")})
    assert Results.open(out)["toy"]["tokens"] == lengths(3, {"Heron"})
    (tmp_path / "words.txt").write_text("ferry\n")
    with pytest.raises(RunError, match=r"started with other settings: without was '[0-9a-f]+' and is '[0-9a-f]+'"):
        small.execute("toy", out, {"without": str(tmp_path / "words.txt")}, resume=True)


def test_unknown_once_it_is_removed(toy: Study, small: SmallStudies, headscope: Headscope) -> None:
    """Its command is gone. Tables of its folders can be shown; what needs the study is refused in one line."""
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
