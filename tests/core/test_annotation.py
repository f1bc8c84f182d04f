"""The annotation that a text has from its document: heads, mentions, singletons and parses."""

from __future__ import annotations

from headscope.core.annotation import NONE, ROOT, Annotated, Annotation, Parse
from headscope.core.document import Document, Mention, Sentence, Word

DOCUMENT = Document(
    "d",
    (
        Sentence((Word("a", head=2), Word("b", head=0)), parse="(NP (X a) (X b))"),
        Sentence((Word("c", head=0), Word("d"), Word("e", head=1)), parse="(NP (X c) (X d) (X e))"),
        Sentence((Word("f", head=0),)),
    ),
    (Mention("1", 3, 5), Mention("2", 0, 1, "person"), Mention("1", 1, 3), Mention("1", 1, 2), Mention("3", 5, 6), Mention("4", 4, 5)),
    subset="pro",
)


def test_a_text_of_the_whole_document_has_all_its_annotation() -> None:
    text = Annotated(DOCUMENT).select(range(6))
    assert text.heads == (1, ROOT, ROOT, NONE, 2, ROOT)
    assert text.mentions == (
        Mention("2", 0, 1, "person"), Mention("1", 1, 2), Mention("1", 1, 3), Mention("1", 3, 5), Mention("4", 4, 5), Mention("3", 5, 6),
    )  # fmt: skip
    assert text.singletons == {"2", "3", "4"}
    assert text.parses == (Parse(0, 0, 2, "(NP (X a) (X b))"), Parse(1, 2, 5, "(NP (X c) (X d) (X e))"))
    assert text.subset == "pro"


def test_a_window_has_only_whole_mentions_counted_from_its_first_word() -> None:
    """The window has words b to d, so the mention of d and e is dropped. Entity 1 is not a singleton in any window."""
    text = Annotated(DOCUMENT).select(range(1, 4))
    assert text.positions == (1, 2, 3)
    assert text.mentions == (Mention("1", 0, 1), Mention("1", 0, 2))
    assert text.singletons == frozenset()
    assert [parse.sentence for parse in text.parses] == [0, 1]


def test_an_entity_with_one_mention_left_in_a_window_is_not_a_singleton() -> None:
    text = Annotated(DOCUMENT).select(range(3, 6))
    assert text.mentions == (Mention("1", 0, 2), Mention("4", 1, 2), Mention("3", 2, 3))
    assert text.singletons == {"3", "4"}


def test_words_alone_have_no_mentions_singletons_or_parses() -> None:
    text = Annotation.of_sentence("d", (Word("a"),))
    assert (text.mentions, text.singletons, text.parses, text.subset) == ((), frozenset(), (), None)
