from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Edge, Sentence
from headscope.corpora import read
from headscope.corpora.readers.chunks import TaggedSpan, bracketed_chunks

Write = Callable[[str, str], Path]

# Bob gave Ann Lee a book . / She , who left , reads , it seems .
FRAMES = """
    #begin document (d); part 000
    d 0 0 Bob   NNP  * -    -       - - (PERSON*) (ARG0*)  -
    d 0 1 gave  VBD  * give give.01 - - *         (V*)     -
    d 0 2 Ann   NNP  * -    -       - - (PERSON*  (ARG2*   -
    d 0 3 Lee   NNP  * -    -       - - *)        *)       -
    d 0 4 a     DT   * -    -       - - *         (ARG1*   -
    d 0 5 book  NN   * -    -       - - *         *)       -
    d 0 6 .     .    * -    -       - - *         *        -

    d 0 0 She   PRP  * -    -       - - *         (ARG0*)   (ARG0*)  *     -
    d 0 1 ,     ,    * -    -       - - *         *         *        *     -
    d 0 2 who   WP   * -    -       - - *         (R-ARG0*) *        *     -
    d 0 3 left  VBD  * leave leave.01 - - *       (V*)      *        *     -
    d 0 4 ,     ,    * -    -       - - *         *         *        *     -
    d 0 5 reads VBZ  * read read.01 - - *         *         (V*)     (ARG1*) -
    d 0 6 ,     ,    * -    -       - - *         *         *        *     -
    d 0 7 it    PRP  * -    -       - - *         *         *        *     -
    d 0 8 seems VBZ  * seem seem.01 - - *         *         *        *     -
    d 0 9 .     .    * -    -       - - *         *         *        *     -
    #end document
"""


def test_entities_and_arguments_are_read_as_edges(columns: Write) -> None:
    corpus = read(columns("a.gold_conll", FRAMES))
    (document,) = corpus
    assert document.edges == (
        Edge("entities", ("PERSON",), (0, 1)),
        Edge("entities", ("PERSON",), (2, 4)),
        Edge("srl", ("ARG0",), (1, 2), (0, 1)),
        Edge("srl", ("ARG2",), (1, 2), (2, 4)),
        Edge("srl", ("ARG1",), (1, 2), (4, 6)),
        Edge("srl", ("ARG0",), (10, 11), (7, 8)),
        Edge("srl", ("R-ARG0",), (10, 11), (9, 10)),
        Edge("srl", ("ARG0",), (12, 13), (7, 8)),
        # The third column of arguments has no V: the predicate is the third word with a frameset.
        Edge("srl", ("ARG1",), (15, 16), (12, 13)),
    )
    assert document.layers == {"edges"}
    assert not corpus.skipped


@pytest.mark.parametrize(
    ("cells", "chunks"),
    [
        (["*", "-", "_", ""], []),
        (["(A*)", "*", "(B*", "*", "*)"], [TaggedSpan("A", 0, 1), TaggedSpan("B", 2, 5)]),
        (["(A(B*", "*)", "*)"], [TaggedSpan("A", 0, 3), TaggedSpan("B", 0, 2)]),
        (["(A*", "(B*))"], [TaggedSpan("A", 0, 2), TaggedSpan("B", 1, 2)]),
        (["(A*"], None),
        (["*)"], None),
        (["(A*)", "A)"], None),
        (["(*)"], None),
        (["(\u00a0*)"], None),
        (["B-PER"], None),
    ],
)
def test_cells_of_brackets_and_stars_are_parsed_into_spans(cells: list[str], chunks: list[TaggedSpan] | None) -> None:
    assert bracketed_chunks(cells) == chunks


@pytest.mark.parametrize(
    ("entity", "first", "second", "note"),
    [
        ("(X*", "(V*)", "*", "named entities skipped: their brackets do not balance"),
        ("*", "(V*", "(ARG0*)", "predicates skipped: their brackets do not balance"),
        ("*", "(ARG1*) (V*)", "(ARG0*) *", "predicates skipped: none of their words is marked V"),
        ("*", "(V*)", "(ARG0*) *", "arguments of sentences skipped: rows differ in length"),
    ],
)
def test_skipped_edges_are_counted(columns: Write, entity: str, first: str, second: str, note: str) -> None:
    text = f"#begin document (d); part 0\nd 0 0 a - - - - - - {entity} {first} -\nd 0 1 b - - - - - - * {second} -\n#end document"
    corpus = read(columns("a_conll", text), on_error="skip")
    (document,) = corpus
    assert document.edges == ()
    assert corpus.skipped.counts == {note: 1}


def test_columns_of_arguments_without_predicates_are_ignored(columns: Write) -> None:
    """WinoBias has such a file: a column of arguments with a stray label."""
    corpus = read(columns("a_conll", "#begin document (d); part 0\nd 0 0 a - - - - - - * * (MISC) -\n#end document"))
    assert [document.edges for document in corpus] == [()]
    assert not corpus.skipped


def test_edges_of_a_skipped_sentence_are_dropped(columns: Write) -> None:
    lines = FRAMES.split("\n")
    broken = "\n".join([*lines[:4], "    d 0 9 Ann", *lines[4:]])
    (document,) = read(columns("a.gold_conll", broken), on_error="skip")
    assert {edge.task for edge in document.edges} == {"srl"}
    assert document.edges[0] == Edge("srl", ("ARG0",), (3, 4), (0, 1))


def test_the_propbank_edges_of_ewt_match_a_count_of_its_labels(data: Path) -> None:
    path = data / "probing/ewt_srl-dev.gold_conll.xz"
    corpus = read(path)
    documents = list(corpus)
    edges = [edge for document in documents for edge in document.edges]
    assert sum(len(document.sentences) for document in documents) == 1_965
    assert len(edges) == 9_583
    assert not corpus.skipped
    # The labels in the file are the text after an opening bracket in the columns between entities and coreference.
    written: Counter[str] = Counter()
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            written.update(cell[1:].rstrip("*)") for cell in line.rstrip("\n").split("\t")[11:-1] if cell.startswith("("))
    del written["V"]
    assert Counter(edge.labels for edge in edges) == {(label,): n for label, n in written.items()}
    words, first = documents[0].words, documents[0].edges[0]
    assert first.second is not None
    assert [Sentence(words[start:end]).text for start, end in (first.first, first.second)] == ["comes", "From the AP"]
