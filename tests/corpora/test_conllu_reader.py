from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headscope.core.document import Document, Sentence, Word
from headscope.corpora import read

Write = Callable[[str, str], Path]

TWO_DOCUMENTS = """
    # newdoc id = first
    # newpar
    # sent_id = first-1
    # speaker = Ann
    # text = Dogs don't bark.
    1   Dogs  dog  NOUN  NNS _ 4 nsubj  _ _
    2-3 don't _    _     _   _ _ _      _ _
    2   do    do   AUX   VBP _ 4 aux    _ _
    3   n't   not  PART  RB  _ 4 advmod _ _
    4   bark  bark VERB  VB  _ 0 root   _ SpaceAfter=No
    5   .     .    PUNCT .   _ 4 punct  _ _

    # newpar id = p2
    # sent_id = first-2
    # speaker=Bob
    1   Stay  stay VERB  VB  _ 0 root   _ _
    1.1 there _    _     _   _ _ _      1:obl _

    # newdoc id = second
    # keyphrases = cold air; Snow ;
    # newpar
    1   Snow  _    _     _   _ _ _      _ _
"""


def test_every_field_of_a_small_file_is_read(columns: Write) -> None:
    corpus = read(columns("two.conllu", TWO_DOCUMENTS))
    first = (
        Word("Dogs", "dog", "NOUN", "NNS", 4, "nsubj"),
        Word("do", "do", "AUX", "VBP", 4, "aux", space_after=False),
        Word("n't", "not", "PART", "RB", 4, "advmod"),
        Word("bark", "bark", "VERB", "VB", 0, "root", space_after=False),
        Word(".", ".", "PUNCT", ".", 4, "punct"),
    )
    assert list(corpus) == [
        Document(
            "first",
            (
                Sentence(first, "first-1", 0, "Ann"),
                Sentence((Word("Stay", "stay", "VERB", "VB", 0, "root"),), "first-2", 1, "Bob"),
            ),
        ),
        Document("second", (Sentence((Word("Snow"),)),), keyphrases=("cold air", "Snow")),
    ]
    assert next(iter(corpus)).sentences[0].text == "Dogs don't bark."
    assert list(corpus)
    assert corpus.skipped.lines() == [
        "1 empty nodes (first: line 17 of two.conllu)",
        "1 multi-word tokens (their words are read) (first: line 7 of two.conllu)",
    ]


def test_space_after_is_read_from_the_multi_word_token(columns: Write) -> None:
    path = columns(
        "a.conllu",
        """
        # newdoc id = d
        1-2 gonna _   _ _ _ _ _ _ SpaceAfter=No
        1   gon   go  _ _ _ 0 root _ _
        2   na    to  _ _ _ 1 xcomp _ _
        3   !     !   _ _ _ 1 punct _ CorrectSpaceAfter=No
        4   x     x   _ _ _ 1 dep _ _
        """,
    )
    (document,) = read(path)
    assert [word.space_after for word in document.words] == [False, False, True, True]
    assert document.sentences[0].text == "gonna! x"


def test_each_sentence_before_the_first_newdoc_is_a_document(columns: Write) -> None:
    corpus = read(
        columns(
            "a.conllu",
            """
            # sent_id = s1
            1 One _ _ _ _ _ _ _ _

            1 Two _ _ _ _ _ _ _ _

            # newdoc
            1 Three _ _ _ _ _ _ _ _

            1 Four _ _ _ _ _ _ _ _
            """,
        )
    )
    assert [(document.id, len(document.sentences)) for document in corpus] == [("s1", 1), ("a.conllu#2", 1), ("a.conllu#3", 2)]
    assert corpus.skipped.counts == {"sentences read as separate documents: the file has no # newdoc": 2}


def test_a_separate_block_of_comments_begins_a_document(columns: Write) -> None:
    path = columns("a.conllu", "# newdoc id = x\n\n1 One _ _ _ _ _ _ _ _\n\n# newdoc id = y\n\n# sent_id = 2\n1 Two _ _ _ _ _ _ _ _")
    assert [document.id for document in read(path)] == ["x", "y"]


def test_words_written_as_underscores_are_read_and_counted_if_ambiguous(columns: Write) -> None:
    corpus = read(columns("a.conllu", "# newdoc id = d\n1 _ _ PUNCT NFP _ 0 root _ _\n2 _ _ X FW _ 1 dep _ _\n3 a _ SYM _ _ 1 dep _ _"))
    (document,) = corpus
    assert [(word.form, word.lemma) for word in document.words] == [("_", "_"), ("_", None), ("a", None)]
    assert corpus.skipped.lines() == ["1 words written _ (read as underscores) (first: line 3 of a.conllu)"]


def test_several_roots_are_read_and_counted(columns: Write) -> None:
    rows = "# newdoc id = d\n1 a a NN DT _ 0 root _ _\n2 b b NN _ _ 0 root _ _\n3 c c _ _ _ 2 weird-label _ _"
    for name in ("a.conllu", "a.conll"):
        corpus = read(columns(name, rows))
        (document,) = corpus
        assert [word.head for word in document.words] == [0, 0, 2]
        assert document.words[2].relation == "weird-label"
        assert corpus.skipped.counts == {"sentences with more than one root (read nevertheless)": 1}


def test_conllx_tags_are_read_as_treebank_specific_tags(columns: Write) -> None:
    corpus = read(columns("a.conll", "# newdoc id = d\n# speaker=Ann\n1 a a NP DT _ 0 root _ SpaceAfter=No\n2 b b VVG _ _ 1 dep _ _"))
    (document,) = corpus
    assert corpus.format == "conllx"
    assert [(word.upos, word.xpos) for word in document.words] == [(None, "DT"), (None, "VVG")]
    assert document.sentences[0].text == "ab"
    assert document.sentences[0].speaker == "Ann"


def test_a_final_blank_line_is_optional_and_blank_lines_may_repeat(write: Write) -> None:
    row = "1\ta\t_\t_\t_\t_\t_\t_\t_\t_"
    path = write("a.conllu", f"\n\n# newdoc id = d\r\n{row}\r\n\r\n\r\n{row}")
    assert [len(document.sentences) for document in read(path)] == [2]
