from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora import read
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]

ITEMS = (
    '1\t"The <e1>lawsonite</e1> was in a <e2>platinum crucible</e2>. It broke."\nContent-Container(e1,e2)\nComment: prototypical\n\n'
    '2\t"<e2>Semi</e2>-dry <e1>wine</e1>"\nOther\nComment:\n\n'
    "7\t<e1>A</e1> <e2>B</e2>\nMine\n"
)


def test_each_item_is_a_document_with_one_relation(write: Write) -> None:
    corpus = read(write("train.txt", ITEMS))
    assert corpus.format == "semeval"
    first, second, third = corpus
    assert first.sentences[0].text == "The lawsonite was in a platinum crucible. It broke."
    assert len(first.sentences) == 1
    assert first.edges == (Edge("relations", ("Content-Container(e1,e2)",), (1, 2), (5, 7)),)
    # The second nominal ends inside a word: the word is cut there.
    forms = (Word("Semi", space_after=False), Word("-dry"), Word("wine"))
    assert second == Document("2", (Sentence(forms),), edges=(Edge("relations", ("Other",), (2, 3), (0, 1)),))
    assert (third.id, third.edges) == ("7", (Edge("relations", ("Mine",), (0, 1), (1, 2)),))
    assert not corpus.skipped


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ('1\t"<e1>a</e1> b"\nOther', "line 1 of .*: not both nominals are marked in .*Write a number"),
        ('1\t"a b"\nOther', "not both nominals are marked"),
        ('1\t"<e1>a <e1>b</e1> <e2>c</e2>"\nOther', "<e1> out of order in"),
        ('1\t"</e1>a<e1> <e2>c</e2>"\nOther', "</e1> out of order in"),
        ('1\t"<e1>a</e1> <e2>c</e2> <e2>d</e2>"\nOther', "<e2> out of order in"),
        ('1\t"<e1> </e1> <e2>c</e2>"\nOther', "there is no word between <e1> and </e1>"),
        ('1\t"<e1>a</e1> <e2>c</e2>"', "item 1 has no relation. Write the relation on the line after the sentence"),
        ('1\t"<e1>a</e1> <e2>c</e2>"\nComment: x', "item 1 has no relation"),
        ("Other", "'Other' where an item should begin"),
    ],
)
def test_a_faulty_item_is_refused_or_skipped(write: Write, item: str, problem: str) -> None:
    path = write("train.txt", f'{item}\n\n2\t"<e1>x</e1> <e2>y</e2>"\nOther\n')
    with pytest.raises(CorpusError, match=problem):
        list(read(path, format="semeval"))
    corpus = read(path, format="semeval", on_error="skip")
    assert [document.id for document in corpus] == ["2"]
    assert corpus.skipped.counts.total() == 1


def test_the_training_data_of_the_task_are_read_completely(data: Path) -> None:
    path = data / "probing/semeval2010_task8-train.txt.xz"
    documents = list(read(path))
    assert len(documents) == 8_000
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        relations = Counter(line.strip() for line in islice(lines, 1, None, 4))
    assert len(relations) == 19
    assert Counter(document.edges[0].labels[0] for document in documents) == relations
    # The words of an edge are the text between its tags.
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for document, line in zip(documents, islice(lines, 0, None, 4), strict=True):
            (edge,) = document.edges
            assert edge.second is not None
            for number, (start, end) in enumerate((edge.first, edge.second), start=1):
                between = line.partition(f"<e{number}>")[2].partition(f"</e{number}>")[0]
                assert Sentence(document.words[start:end]).text == between.strip()
