"""GAP's table of ambiguous pronouns, WinoBias's sentences, and the tokenizer for GAP's character offsets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import read
from headscope.corpora.readers.tokenise import sentences, word_spans
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"


def row(
    text: str = "Ann Lee met Eve. Her dog ran.",
    a: str = "TRUE",
    b: str = "FALSE",
    pronoun: str = "Her",
    offset: object = 17,
    id: str = "x-1",
) -> str:
    return f"{id}\t{text}\t{pronoun}\t{offset}\tAnn Lee\t0\t{a}\tEve\t12\t{b}\thttp://x\n"


def test_every_field_of_a_small_file_is_read(write: Write) -> None:
    corpus = read(write("gap-x.tsv", HEADER + row()))
    assert corpus.format == "gap"
    words = [Word("Ann"), Word("Lee"), Word("met"), Word("Eve", space_after=False), Word(".")]
    more = [Word("Her"), Word("dog"), Word("ran", space_after=False), Word(".")]
    assert list(corpus) == [
        Document(
            "x-1",
            (Sentence(tuple(words)), Sentence(tuple(more))),
            (Mention("A", 0, 2, "person"), Mention("B", 3, 4, "person"), Mention("A", 5, 6, "person")),
        )
    ]


@pytest.mark.parametrize(("a", "b", "entity"), [("TRUE", "FALSE", "A"), ("FALSE", "true", "B"), ("FALSE", "FALSE", "Pronoun")])
def test_the_answer_columns_determine_the_entity_of_the_pronoun(write: Write, a: str, b: str, entity: str) -> None:
    (document,) = read(write("gap-x.tsv", HEADER + row(a=a, b=b)))
    assert [mention.entity for mention in document.mentions] == ["A", "B", entity]


def test_words_are_cut_at_the_ends_of_mentions(write: Write) -> None:
    """The tokenizer keeps `Her-dog` as one word unless a mention ends inside it."""
    (document,) = read(write("gap-x.tsv", HEADER + row(text="Ann Lee met Eve by Her-dog ran.", offset=19)))
    assert [word.form for word in document.words[4:]] == ["by", "Her", "-dog", "ran", "."]
    assert document.mentions[2] == Mention("A", 5, 6, "person")


def test_a_document_without_an_id_is_named_by_its_line(write: Write) -> None:
    corpus = read(write("gap-x.tsv", HEADER + row(id="") + "\n" + row(id="")))
    assert [document.id for document in corpus] == ["gap-x.tsv#2", "gap-x.tsv#4"]


@pytest.mark.parametrize(
    ("bad", "problem", "kind"),
    [
        (row().rsplit("\t", 1)[0] + "\n", "10 columns where the header names 11", "wrong number of columns"),
        (row(offset="x"), "Pronoun-offset is 'x'", "offset is not a number"),
        (row(offset=18), "Pronoun is 'Her', but at Pronoun-offset 18 the text has 'er '", "wrong offset"),
        (row(offset=99), "the text has ''", "wrong offset"),
        (row(pronoun=". ", offset=15), "Pronoun is '. '", "wrong offset"),
        (row(a="MAYBE"), "A-coref is 'MAYBE'", "neither TRUE nor FALSE"),
        (row(b="TRUE"), "A-coref and B-coref are both TRUE", "two answers"),
    ],
)
def test_a_faulty_line_is_refused_or_skipped(write: Write, bad: str, problem: str, kind: str) -> None:
    path = write("gap-x.tsv", HEADER + row() + bad + row(id="x-3"))
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"line 3 of {path}: ")
    assert problem in str(caught.value)
    corpus = read(path, on_error="skip")
    assert [document.id for document in corpus] == ["x-1", "x-3"]
    assert corpus.skipped.lines() == [f"1 lines skipped: {kind} (first: line 3 of gap-x.tsv)"]


def test_a_table_with_other_columns_is_refused(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"line 1 of .*: the first line names 0 columns 'Text'.*or another --corpus-format"):
        list(read(write("gap-x.tsv", "sentence\tlabel\nfine\t1\n")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Simon, Pauline's friend", "Simon|,|Pauline|'s|friend"),
        ("He wouldn't, I'll, you’re", "He|would|n't|,|I|'ll|,|you|’re"),
        ("O'Brien's wheel-thrown pots", "O'Brien|'s|wheel-thrown|pots"),
        ("C*rdoba, Beyonc* and *argo *", "C*rdoba|,|Beyonc*|and|*argo|*"),
        ("the U.S. and J. Smith (b. 1,000.5) at 10:30", "the|U.S.|and|J.|Smith|(|b|.|1,000.5|)|at|10:30"),
        ("``Go''... -- she", "``|Go|''|...|--|she"),
        ("fünf 世界", "fünf|世界"),
        ("  ", ""),
    ],
)
def test_a_text_is_split_into_words(text: str, words: str) -> None:
    spans = word_spans(text)
    assert "|".join(text[start:end] for start, end in spans) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Lee left. She did not.", ["Mr. Lee left.", "She did not."]),
        ('He said "Go." Then (she left.) Why? not', ['He said "Go."', "Then (she left.)", "Why? not"]),
        ("It ended in May. (He stayed.)", ["It ended in May.", "(He stayed.)"]),
        ("No end", ["No end"]),
    ],
)
def test_a_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in sentences(text, word_spans(text))] == expected


WINO = """
    #begin document (nw/dev_type1/stereotype//0); part 000
    x 0 0 The       - - - - - - * (1
    x 0 1 developer - - - - - - * 1)
    x 0 2 met       - - - - - - * -
    x 0 3 the       - - - - - - * -
    x 0 4 construction - - - - - - * -
    x 0 5 worker    - - - - - - * -
    x 0 6 and       - - - - - - * -
    x 0 7 he        - - - - - - * (1)
    x 0 8 hired     - - - - - - * -
    x 0 9 a         - - - - - - * -
    x 0 10 developer - - - - - - * -
    #end document
"""


@pytest.mark.parametrize(
    ("name", "subset"),
    [
        ("winobias-dev-type1-pro.v4_auto_conll", "pro"),
        ("winobias-dev-type1-anti.v4_auto_conll", "anti"),
        ("dev_type1_anti_stereotype.v4_auto_conll", "anti"),
        ("dev_type1_pro_stereotype.v4_auto_conll", "pro"),
        ("profile_conll", "pro"),  # from the id of the document
    ],
)
def test_winobias_mentions_and_subset_are_read(columns: Write, name: str, subset: str) -> None:
    (document,) = read(columns(name, WINO), format="winobias")
    assert document.mentions == (Mention("1", 0, 2), Mention("other", 3, 6, "person"), Mention("1", 7, 8))
    assert document.subset == subset


def test_a_winobias_document_without_a_second_occupation_is_counted(columns: Write) -> None:
    corpus = read(columns("x_conll", WINO.replace("construction", "social").replace("stereotype", "y")), format="winobias")
    (document,) = corpus
    assert len(document.mentions) == 2
    assert document.subset is None
    assert corpus.skipped.lines() == ["1 documents without a second occupation (first: nw/dev_type1/y//0/000)"]


def test_a_winobias_occupation_at_the_end_of_the_text_is_found(columns: Write) -> None:
    lines = WINO.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.split()[3:4] == ["construction"])
    cut = "".join([*lines[:first], lines[first].replace("construction", "nurse"), lines[-1]])
    (document,) = read(columns("x_conll", cut), format="winobias")
    assert document.mentions[-1] == Mention("other", 3, 5, "person")
    assert len(document.words) == 5
