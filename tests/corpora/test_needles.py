"""Generated texts with a hidden fact (needle), and questions with passages in JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headscope.core.document import PASSAGE, Edge
from headscope.corpora import read
from headscope.errors import CorpusError, HeadscopeError


def test_the_question_repeats_the_beginning_of_the_needle() -> None:
    (document,) = read("needles:48x1:50")
    (edge,) = document.edges
    forms = [word.form for word in document.words]
    assert edge.second is not None
    needle, question = forms[slice(*edge.second)], forms[slice(*edge.first)]
    assert edge.task == PASSAGE
    assert edge.first[1] == len(forms)
    assert needle[:6] == question
    assert question[:4] == ["The", "secret", "words", "of"]
    assert " ".join(needle[6:9]) == document.metadata["answer"]
    assert needle[9:] == ["."]
    assert document.layers == {"edges", "passages"}
    assert document.sentences[-1].text.endswith(":")


def test_the_name_determines_length_count_and_depths() -> None:
    documents = list(read("needles:60x7:0,100"))
    assert [document.id for document in documents] == [f"needle_{number}" for number in range(1, 8)]
    assert [document.metadata["depth"] for document in documents] == [0, 100, 0, 100, 0, 100, 0]
    for document in documents:
        assert len(document.words) <= 60
        (edge,) = document.edges
        assert edge.second is not None
        first = len(document.sentences[0])
        # At depth 0 one sentence precedes the needle; at depth 100 the question follows it directly.
        assert edge.second[0] == first if document.metadata["depth"] == 0 else edge.second[1] == edge.first[0]
    assert len(list(read("needles:60"))) == 40
    assert {document.metadata["depth"] for document in read("needles:60x10")} == {0, 25, 50, 75, 100}
    assert len(next(iter(read("needles:500x1"))).words) > 400


def test_the_texts_depend_only_on_the_seed() -> None:
    assert read("needles:40x3").hash() == read("needles:40x3@0").hash() != read("needles:40x3@1").hash()
    assert list(read("needles:40x2")) == list(read("needles:40x5"))[:2]
    assert len({document.metadata["answer"] for document in read("needles:40x20")}) == 20


@pytest.mark.parametrize("name", ["needles:", "needles:5", "needles:60x0", "needles:x5", "needles:60:101", "needles:60:", "needles:60x5@"])
def test_an_incomplete_or_invalid_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(HeadscopeError, match="does not give the length of texts") as caught:
        read(name)
    assert "needles:96x100@7" in (caught.value.remedy or "")


def test_lengths_beyond_the_sampler_and_combined_corpora_are_refused() -> None:
    with pytest.raises(HeadscopeError, match="cannot be made of the sampler"):
        read("needles:99999")
    with pytest.raises(HeadscopeError, match="must be the only corpus"):
        read("needles:60", "sampler")


# Questions with passages in JSON lines

LINE = {"passages": ["Ann lives in Rome.", "Bob lives in Oslo. It snows."], "gold": 1, "question": "Bob lives in", "answer": "Oslo"}


def saved(folder: Path, *lines: object) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_passages_and_a_question_form_one_text(tmp_path: Path) -> None:
    corpus = read(saved(tmp_path, LINE, {**LINE, "id": "two", "gold": [0, 1], "year": 1999}))
    assert corpus.format == "passages"
    first, second = corpus
    assert first.id == "questions.jsonl#1"
    assert [sentence.text for sentence in first.sentences] == ["Ann lives in Rome.", "Bob lives in Oslo.", "It snows.", "Bob lives in"]
    assert [sentence.paragraph for sentence in first.sentences] == [0, 1, 1, 2]
    assert first.edges == (Edge(PASSAGE, ("gold",), (10, 13), (4, 10)),)
    assert first.metadata == {"answer": "Oslo"}
    assert second.id == "two"
    assert [edge.second for edge in second.edges] == [(0, 4), (4, 10)]
    assert second.metadata == {"answer": "Oslo", "year": 1999}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gold": 2}, "`gold` is 2, and there are 2 passages"),
        ({"gold": "first"}, "`gold` is str"),
        ({"gold": []}, "`gold` is list"),
        ({"gold": True}, "`gold` is bool"),
        ({"passages": []}, "`passages` is list"),
        ({"passages": ["a", ""]}, "`passages` is empty"),
        ({"question": None}, "`question` is missing"),
    ],
)
def test_a_faulty_line_is_refused_or_skipped(change: dict[str, object], says: str, tmp_path: Path) -> None:
    path = saved(tmp_path, LINE, {**LINE, **change})
    with pytest.raises(CorpusError, match=says) as caught:
        list(read(path))
    assert "line 2" in str(caught.value)
    assert len(list(read(path, on_error="skip"))) == 1


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, LINE, {"passages": ["a"], "question": "b"})
    with pytest.raises(CorpusError, match="no `gold` in an object"):
        list(read(path))
