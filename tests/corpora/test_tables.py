"""Texts with labels: tables separated by commas or tabs, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document
from headscope.corpora import Corpus, read
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
Shown = list[tuple[str, list[tuple[int, str]], str | None]]
# The columns of MNLI in GLUE, from its dev_matched.tsv.
MNLI = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse sentence1 sentence2 label1"
)


def shown(corpus: Corpus) -> Shown:
    """The id, the sentences with their paragraphs, and the label of each document."""
    return [(one.id, [(sentence.paragraph, sentence.text) for sentence in one.sentences], one.label) for one in corpus]


def test_a_table_separated_by_commas_is_read(write: Write) -> None:
    corpus = read(write("a.csv", 'id,text,label\nx,"One, two. Three\n\nfour ""five"".",good\n\n,six,\n'))
    assert not corpus.pairs
    assert shown(corpus) == [
        ("x", [(0, "One, two."), (0, "Three"), (1, 'four "five".')], "good"),
        ("a.csv#6", [(0, "six")], None),
    ]
    assert corpus.layers({"labels", "trees"}) == {"labels"}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('sentence\tlabel\nIt is "good . Not bad\t1\n', [("a.tsv#2", [(0, 'It is "good . Not bad')], "1")]),  # SST-2
        # SST-2 without a header
        ("good . Not bad\t1\nbad\t0\n", [("a.tsv#1", [(0, "good . Not bad")], "1"), ("a.tsv#2", [(0, "bad")], "0")]),
        # CoLA
        ("gj04\t0\t*\tOne. Two\ngj05\t1\t\tThree\n", [("a.tsv#1", [(0, "One. Two")], "0"), ("a.tsv#2", [(0, "Three")], "1")]),
        ("index\tsentence\n0\tOne\n", [("a.tsv#2", [(0, "One")], None)]),  # test data have no labels
    ],
)
def test_tables_of_sentences_are_read(write: Write, table: str, expected: Shown) -> None:
    corpus = read(write("a.tsv", table))
    assert shown(corpus) == expected
    assert not corpus.pairs


def test_tables_of_pairs_are_read(write: Write) -> None:
    header = "\t".join([*MNLI.split(), "gold_label"])
    rows = "\n".join(
        "\t".join([*"0123", *["( x )"] * 4, *row]) for row in (("A b. C", "D", "neutral", "neutral"), ("E", "F", "neutral", "-"))
    )
    corpus = read(write("dev_matched.tsv", f"{header}\n{rows}\n"))
    assert corpus.pairs
    assert shown(corpus) == [
        ("dev_matched.tsv#2", [(0, "A b. C"), (1, "D")], "neutral"),
        ("dev_matched.tsv#3", [(0, "E"), (1, "F")], None),
    ]
    corpus = read(write("a.csv", "premise,hypothesis,label\nA b. C,D,1\n"))
    assert corpus.pairs
    assert shown(corpus) == [("a.csv#2", [(0, "A b."), (0, "C"), (1, "D")], "1")]
    # QNLI: the columns question and sentence form a pair.
    corpus = read(write("b.tsv", "index\tquestion\tsentence\tlabel\n0\tWho?\tShe.\tentailment\n"))
    assert corpus.pairs
    assert shown(corpus) == [("b.tsv#2", [(0, "Who?"), (1, "She.")], "entailment")]


def test_the_name_of_a_gap_file_determines_its_format(write: Write) -> None:
    assert read(write("gap-development.tsv", "x")).format == "gap"


@pytest.mark.parametrize(
    ("name", "table", "line", "problem"),
    [
        (
            "a.csv",
            "text;label\nx;1",
            1,
            "the first row names no column with a text: ['text;label']. Name the columns in the first row",
        ),
        ("a.tsv", "review\tlabel\nx\t1", 1, "the first row names no column with a text: ['review', 'label']"),
        ("a.csv", "x,1\ny,0", 1, "the first row names no column with a text"),
        ("a.tsv", "text\ttext\nx\ty", 1, "the first row names 2 columns 'text'"),
        ("a.tsv", "text\tlabel\tlabel\nx\t1\t0", 1, "the first row names 2 columns 'label'"),
    ],
)
def test_a_faulty_header_is_refused_or_skipped(write: Write, name: str, table: str, line: int, problem: str) -> None:
    path = write(name, table)
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line {line} of {path}: {problem}")
    corpus = read(path, on_error="skip")
    assert list(corpus) == []
    assert corpus.skipped.lines() == [f"1 rows skipped: no header (first: line 1 of {name})"]


@pytest.mark.parametrize(
    ("name", "row", "problem", "kind"),
    [
        (
            "a.csv",
            "one, two,1",
            "3 columns where there should be 2 in 'one, two,1'. Separate the columns by commas",
            "wrong number of columns",
        ),
        ("a.csv", "one", "1 columns where there should be 2 in 'one'", "wrong number of columns"),
        ("a.csv", " ,1", "`text` is empty: ' '. Fill it in", "empty text"),
        ("a.csv", '"one"two,1', "this cannot be read as a row (',' expected after '\"'): '\"one\"two,1'. Close every quote", "not a row"),
        (
            "a.tsv",
            "one\ttwo\t1",
            "3 columns where there should be 2 in 'one\\ttwo\\t1'. Separate the columns by tabs",
            "wrong number of columns",
        ),
    ],
)
def test_a_faulty_row_is_refused_or_skipped(write: Write, name: str, row: str, problem: str, kind: str) -> None:
    separator = "," if name == "a.csv" else "\t"
    path = write(name, f"text{separator}label\n\n{row}\ngood{separator}1\n")
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line 3 of {path}: {problem}")
    assert caught.value.remedy.endswith(", or pass --on-error skip to skip such rows")
    corpus = read(path, on_error="skip")
    assert shown(corpus) == [("a" + path.suffix + "#4", [(0, "good")], "1")]
    assert corpus.skipped.lines() == [f"1 rows skipped: {kind} (first: line 3 of {name})"]


def test_an_open_quote_is_reported_with_the_line_where_its_row_begins(write: Write) -> None:
    path = write("a.csv", 'text,label\nfine,1\n"never closed,1\nmore,0\n')
    with pytest.raises(
        CorpusError, match=r"line 3 of .*a\.csv: this cannot be read as a row \(unexpected end of data\): '\"never closed,1'"
    ):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert [document.id for document in corpus] == ["a.csv#2"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list open files")
def test_a_file_is_closed_after_an_error(write: Write) -> None:
    path = write("a.csv", "text,label\none,two,three\n" + "fine,1\n" * 9)
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert caught.value.__traceback__ is not None, "the frames of the reader are still alive"
    assert path not in {link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}


def test_bytes_that_are_not_utf8_are_refused_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,label\n"one\n\xff",1\ntwo,0\n')
    with pytest.raises(CorpusError, match=r"line 3 of .*a\.csv: byte 0xff at position 1 is not UTF-8"):
        list(read(path))
    assert shown(read(path, on_error="skip")) == [("a.csv#4", [(0, "two")], "0")]


def test_labels_of_json_lines_are_read(write: Write) -> None:
    entries: list[dict[str, object]] = [
        {"text": "x", "label": "good"},
        {"text": "x", "label": 0},
        {"sentence": "One. Two", "label": None},
        {"text": "x", "label": ""},
        {"text": "x"},
    ]
    corpus = read(write("a.jsonl", "\n".join(map(json.dumps, entries))))
    assert [document.label for document in corpus] == ["good", "0", None, None, None]
    assert [len(document.sentences) for document in corpus] == [1, 1, 1, 1, 1]
    pairs: list[dict[str, object]] = [
        {"premise": "A b. C", "hypothesis": "D", "label": "neutral"},
        {"sentence1": "E", "sentence2": "F", "gold_label": "-"},
        {"a": "G", "b": "H", "label": 2},
    ]
    corpus = read(write("b.jsonl", "\n".join(map(json.dumps, pairs))))
    assert corpus.pairs
    assert [(document.label, len(document.sentences)) for document in corpus] == [("neutral", 3), (None, 2), ("2", 2)]


@pytest.mark.parametrize("label", [0.5, ["a"], True, {"a": 1}])
def test_a_label_that_is_not_a_string_or_whole_number_is_refused(write: Write, label: object) -> None:
    path = write("a.jsonl", json.dumps({"text": "x", "label": label}))
    with pytest.raises(CorpusError, match=r"line 1 of .*: `label` is \w+ .* where a string or a whole number is needed"):
        list(read(path))


def test_a_label_is_a_layer() -> None:
    assert Document("d", ()).layers == set()
    assert Document("d", (), label="0").layers == {"labels"}


LONG = "x" * 131_073  # one character more than a field may have


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.csv",
            'text,label\nfine,1\n"open,1\n' + "more,0\n" * 20_000,
            r"line 3 of .*a\.csv: a field has more than 131,072 characters: '\"open,1' up to line 18727, most often because a quote is not "
            r"closed\. Close the quote, or use JSON lines if the text really has this length",
        ),
        (
            "a.csv",
            f"text,label\n{LONG},1\n",
            r"line 2 of .*: a field has more than 131,072 characters: .*\. Check its quotes\. Use JSON lines",
        ),
        ("a.tsv", f"text\tlabel\n{LONG}\t1\n", r"line 2 of .*: a field has more than 131,072 characters: .*\. Use JSON lines for texts"),
    ],
)
def test_a_field_that_is_too_long_is_refused(write: Write, name: str, text: str, problem: str) -> None:
    with pytest.raises(CorpusError, match=problem):
        list(read(write(name, text)))
