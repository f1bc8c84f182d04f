from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora import read
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]


def lines(*entries: object) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_the_jiant_format_is_read(write: Write) -> None:
    text = "Ian ate strawberry ice cream"
    targets = [{"span1": [1, 2], "span2": [0, 1], "label": "A0"}, {"span1": [2, 5], "label": "NP", "info": {"height": 2}}]
    info = {"source": "PropBank", "split": "train"}
    corpus = read(write("train.json", "\n" + lines({"text": text, "targets": targets, "info": info})))
    assert corpus.format == "spans"
    assert list(corpus) == [
        Document(
            "train.json#2",
            (Sentence(tuple(map(Word, text.split()))),),
            edges=(Edge("spans", ("A0",), (1, 2), (0, 1)), Edge("spans", ("NP",), (2, 5))),
        )
    ]
    assert not corpus.skipped


def test_tasks_labels_and_ids_are_read(write: Write) -> None:
    entry = {
        "id": 12,
        "task": "mine",
        "text": "a b",
        "targets": [
            {"span1": [0, 1], "span2": None, "label": ["y", "x", "y"]},
            {"span1": [0, 2], "labels": [], "task": "other"},
            {"span1": [1, 2], "label": 3},
        ],
    }
    one, two = read(write("a.jsonl", lines(entry, {"text": "c", "info": {"sent_id": "s-1"}, "targets": []})))
    assert one.edges == (Edge("mine", ("x", "y"), (0, 1)), Edge("other", (), (0, 2)), Edge("mine", ("3",), (1, 2)))
    assert (one.id, two.id, two.edges) == ("12", "s-1", ())


def test_tokens_may_be_grouped_into_sentences_and_the_text_determines_spaces(write: Write) -> None:
    entry = {"tokens": [["Don", "'t", "."], ["New York", "!"]], "text": "Don't. New York !", "targets": [{"span1": [2, 4], "label": "x"}]}
    (document,) = read(write("a.jsonl", lines(entry)))
    assert [len(sentence) for sentence in document.sentences] == [3, 2]
    assert [word.form for word in document.words] == ["Don", "'t", ".", "New York", "!"]
    assert [word.space_after for word in document.words] == [False, False, True, True, True]
    assert document.edges == (Edge("spans", ("x",), (2, 4)),)
    (other,) = read(write("b.jsonl", lines({**entry, "text": "something else"})))
    assert all(word.space_after for word in other.words)


def test_consecutive_lines_of_one_document_are_joined(write: Write) -> None:
    def entry(text: str, **more: object) -> dict[str, object]:
        return {"text": text, "targets": [{"span1": [1, 2], "span2": [0, 1], "label": text[-1]}], **more}

    entries = [
        entry("a b", info={"document_id": "d", "sentence_id": 0}),
        {"text": "plain", "targets": [], "info": {"document_id": "d"}},
        {**entry("c d e", document="d"), "tokens": [["c", "d"], ["e"]]},
        entry("f g", document=7, id="x"),
        entry("h i", id="y"),
        entry("j k", id="z"),
        entry("l m", document="d"),
    ]
    one, two, three, four, five = read(write("a.jsonl", lines(*entries)))
    assert [document.id for document in (one, two, three, four, five)] == ["d", "7", "y", "z", "d#2"]
    assert [len(sentence) for sentence in one.sentences] == [2, 1, 2, 1]
    assert one.edges == (Edge("spans", ("b",), (1, 2), (0, 1)), Edge("spans", ("e",), (4, 5), (3, 4)))
    assert five.edges == (Edge("spans", ("m",), (1, 2), (0, 1)),)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"targets": "x"}, "`targets` is str 'x' where a list of objects is needed"),
        ({"targets": [1]}, "`targets` is int 1 where a list of objects is needed"),
        ({"targets": [{"label": "x"}]}, r"`span1` is NoneType None where a list \[start, end\] of two whole numbers is needed"),
        ({"targets": [{"span1": [0, True], "label": "x"}]}, r"`span1` is list \[0, True\] where"),
        ({"targets": [{"span1": [0, 1.0], "label": "x"}]}, r"`span1` is list \[0, 1.0\] where"),
        ({"targets": [{"span1": [0, 1], "span2": [1, 4], "label": "x"}]}, r"`span2` is \[1, 4\] in a text of 3 words. Count words from 0"),
        ({"targets": [{"span1": [1, 1], "label": "x"}]}, r"`span1` is \[1, 1\] in a text of 3 words"),
        ({"targets": [{"span1": [-1, 1], "label": "x"}]}, r"`span1` is \[-1, 1\] in a text of 3 words"),
        ({"targets": [{"span1": [0, 1]}]}, "a target without a label"),
        ({"targets": [{"span1": [0, 1], "label": ["x", None]}]}, r"`label` is missing \(null\)"),
        ({"targets": [{"span1": [0, 1], "label": " "}]}, "`label` is empty"),
        ({"targets": [{"span1": [0, 1], "label": "x", "task": 1}]}, "`task` is int 1 where a string is needed"),
        ({"tokens": []}, "`tokens` is list .* where a list of words, or of lists of words is needed"),
        ({"tokens": [["a"], []]}, "`tokens` is list"),
        ({"tokens": [["a"], "b"]}, "`tokens` is list .* where a string is needed"),
        ({"tokens": ["a", ""]}, "`tokens` is empty"),
        ({"text": " "}, "`text` is empty"),
        ({"id": ["x"]}, "`id` is list"),
        ({"document": 1.5}, "`document` is float 1.5 where a string is needed"),
    ],
)
def test_a_faulty_line_is_refused_or_skipped(write: Write, change: dict[str, Any], problem: str) -> None:
    good = {"text": "a b c", "targets": [{"span1": [0, 1], "label": "x"}]}
    path = write("a.jsonl", lines(good, {**good, **change}, good))
    with pytest.raises(CorpusError, match=f"line 2 of .*a.jsonl: {problem}"):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert len(list(corpus)) == 2
    assert corpus.skipped.counts.total() == 1


def test_a_line_without_words_is_refused(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"line 1 of .*: an object with the keys \['targets'\] only. Write {\"text\""):
        list(read(write("a.jsonl", lines({"targets": []}))))


@pytest.mark.parametrize(("part", "sentences", "edges"), [("train", 2_191, 5_669), ("dev", 291, 751)])
def test_the_proto_role_labels_match_a_count_of_the_file(data: Path, part: str, sentences: int, edges: int) -> None:
    path = data / f"probing/uds_spr-{part}.jsonl.xz"
    corpus = read(path)
    assert corpus.format == "spr"
    documents = list(corpus)
    found = [edge for document in documents for edge in document.edges]
    assert (len(documents), len(found)) == (sentences, edges)
    assert {edge.task for edge in found} == {"spr"}
    with lzma.open(path, "rt", encoding="utf-8") as text:
        written = Counter(label for line in text for target in json.loads(line)["targets"] for label in target["label"])
    assert len(written) == 18
    assert Counter(label for edge in found for label in edge.labels) == written


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.conll", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n", "conllx"),
        ("a.conll", "1\ta\t_\tX\t_\t_\t0\troot\t_\tO\n", "conllx"),
        ("a.conll", "# sent_id = 1\na\tb\n", "conllx"),
        ("a.conll", "#hash\tO\nb\tO\n", "bio"),
        ("a.conll", "-DOCSTART- -X- -X- O\n\na NN B-NP B-PER\n", "bio"),
        ("a.conll", "#begin document (x); part 0\n", "conll2012"),
        ("a.jsonl", '{"text": "a"}\n', "jsonl"),
        ("a.jsonl", '{"text": "a", "targets": 1}\n', "jsonl"),
        ("a.jsonl", '{"text": "a", "targets": []}\n', "spans"),
        ("a.json", '{"text": "a", "targets": [{"ratings": {}}]}\n', "spr"),
        ("a.jsonl", "[[[\n", "jsonl"),
        ("a.txt", "1 thing is clear\n", "text"),
        ("a.txt", '\n8001\t"The <e1>a</e1> <e2>b</e2>"\n', "semeval"),
        ("train.txt", "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\n", "bio"),
        ("train.txt", "a O\nb B-x\n\nc I-x\n", "bio"),
        ("a.txt", "He is O\nShe is A\nWe are B-all\n", "text"),
        ("a.txt", "Vitamin B-12\n", "text"),
        ("a.txt", "", "text"),
    ],
)
def test_the_first_lines_determine_the_format(write: Write, name: str, text: str, format: str) -> None:
    assert read(write(name, text)).format == format


def test_the_example_lines_in_the_documentation_are_read(write: Write) -> None:
    page = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text(encoding="utf-8")
    shown = [line.strip() for line in page.split("\n") if line.startswith('    {"t')]
    assert len(shown) == 2
    one, two = read(write("a.jsonl", "\n".join(shown)))
    assert (one.id, one.edges) == ("ann-1", (Edge("srl", ("ARG1",), (1, 2), (2, 4)),))
    assert [sentence.text for sentence in two.sentences] == ["Ann ate.", "It's gone."]
    assert two.edges == (Edge("mine", ("x", "y"), (3, 4)),)
