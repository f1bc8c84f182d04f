from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora import read
from headscope.corpora.readers.chunks import TaggedSpan, is_tag, tagged_chunks
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
ALONE = "sentences read as separate documents: the file has no -DOCSTART- lines"


@pytest.mark.parametrize(
    ("tags", "chunks"),
    [
        ("O O", []),
        # In this order: IOB2, IOB1, IOBES, BILOU with an I that has no B.
        ("B-x I-x O B-x B-x", [TaggedSpan("x", 0, 2), TaggedSpan("x", 3, 4), TaggedSpan("x", 4, 5)]),
        ("I-x I-x B-x I-y O I-y", [TaggedSpan("x", 0, 2), TaggedSpan("x", 2, 3), TaggedSpan("y", 3, 4), TaggedSpan("y", 5, 6)]),
        ("B-x I-x E-x S-x B-y E-y", [TaggedSpan("x", 0, 3), TaggedSpan("x", 3, 4), TaggedSpan("y", 4, 6)]),
        ("B-x L-x U-x I-x", [TaggedSpan("x", 0, 2), TaggedSpan("x", 2, 3), TaggedSpan("x", 3, 4)]),
        ("B-creative-work I-creative-work I-work", [TaggedSpan("creative-work", 0, 2), TaggedSpan("work", 2, 3)]),
    ],
)
def test_chunks_are_found_in_every_tagging_scheme(tags: str, chunks: list[TaggedSpan]) -> None:
    assert tagged_chunks(tags.split()) == chunks


def test_only_well_formed_tags_are_recognised() -> None:
    assert all(map(is_tag, ["O", "B-x", "I-a-b", "S-x"]))
    assert not any(map(is_tag, ["", "o", "B-", "B-\u00a0", "B", "X-x", "NN", "-x"]))


def test_a_file_of_two_columns_is_read(write: Write) -> None:
    corpus = read(write("a.bio", "#Rome\tB-place\nis\tO\n\t\n# \tO\nnice\u00a0one\tO\n\n\nYork\tB-place\n"))
    assert list(corpus) == [
        Document("a.bio#1", (Sentence((Word("#Rome"), Word("is"))),), edges=(Edge("entities", ("place",), (0, 1)),)),
        Document("a.bio#2", (Sentence((Word("# "), Word("nice\u00a0one"))),)),
        Document("a.bio#3", (Sentence((Word("York"),)),), edges=(Edge("entities", ("place",), (0, 1)),)),
    ]
    assert corpus.skipped.counts == {ALONE: 3}


CONLL2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC
calls NNS I-NP O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- O O
# id 7\tdomain=en
Rain _ B-NP O
"""


def test_the_columns_of_conll_2003_are_read(write: Write) -> None:
    corpus = read(write("eng.testa.conll", CONLL2003))
    assert corpus.format == "bio"
    one, two = corpus
    assert (one.id, two.id) == ("eng.testa.conll#1", "eng.testa.conll#2")
    assert [word.xpos for word in (*one.words, *two.words)] == ["NNP", "VBZ", "JJ", "NNS", "NNP", "NNP", None]
    assert one.edges == (
        Edge("entities", ("ORG",), (0, 1)),
        Edge("entities", ("MISC",), (2, 3)),
        Edge("chunks", ("NP",), (0, 1)),
        Edge("chunks", ("VP",), (1, 2)),
        Edge("chunks", ("NP",), (2, 4)),
        Edge("entities", ("PER",), (4, 6)),
        Edge("chunks", ("NP",), (4, 6)),
    )
    assert two.edges == (Edge("chunks", ("NP",), (0, 1)),)
    assert not corpus.skipped


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("Rome B-place is", "line 2 of .*a.bio: tag 'is' in the last column of 'Rome B-place is'. Write O, B-person"),
        ("#Rome\tplace", "line 2 of .*a.bio: tag 'place' in the last column"),
        ("Rome", "line 2 of .*a.bio: one column where a word and its tag are needed in 'Rome'. Put a tab"),
        (" \tx\tO", "line 2 of .*a.bio: the word is empty"),
    ],
)
def test_a_faulty_row_is_refused_or_its_sentence_skipped(write: Write, row: str, problem: str) -> None:
    path = write("a.bio", f"Ann B-person\n{row}\n\nBob B-person\n")
    with pytest.raises(CorpusError, match=problem):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert [document.words for document in corpus] == [(Word("Bob"),)]
    assert sum(n for reason, n in corpus.skipped.counts.items() if reason.startswith("sentences skipped")) == 1


@pytest.mark.parametrize(("part", "entities"), [("train", 1_975), ("dev", 836)])
def test_the_spans_of_wnut17_match_a_count_of_its_tags(data: Path, part: str, entities: int) -> None:
    path = data / f"probing/wnut17-{part}.conll.xz"
    corpus = read(path)
    edges = [edge for document in corpus for edge in document.edges]
    assert len(edges) == entities
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        tags = Counter(line.rstrip("\n").partition("\t")[2] for line in lines)
    assert Counter(edge.labels[0] for edge in edges) == {tag[2:]: n for tag, n in tags.items() if tag.startswith("B-")}
    inside = sum(n for tag, n in tags.items() if tag[:2] in ("B-", "I-"))
    assert sum(edge.first[1] - edge.first[0] for edge in edges) == inside
    assert set(corpus.skipped.counts) == {ALONE}
