"""Training examples: labels of texts and words, and held-out texts."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora.tags import phrase_tags, tagging_of
from headscope.encoding.texts import Encoder
from headscope.models.finetuning.examples import UNLABELLED, examples, held_out, names_of, some
from helpers.families import document, tokenizer


def test_keyphrases_are_found_at_every_place_and_the_longest_first() -> None:
    text = Document(
        "d", document("d", "Big data is big news for data .").sentences, keyphrases=("big data", "data", "Big  NEWS", "for all")
    )
    assert phrase_tags(text) == ["B", "I", "O", "B", "I", "O", "B", "O"]


def test_keyphrases_are_found_between_signs_and_do_not_contain_a_comma() -> None:
    """The signs of `C++` are part of it, a comma between two words prevents a match, and `database` does not match
    `data`.
    """
    written = "We like (data mining), “big data” and C++. Data, mining: database"
    text = Document("d", document("d", written).sentences, keyphrases=("data mining", "big data", "c++", "", "data"))
    assert phrase_tags(text) == ["O", "O", "B", "I", "B", "I", "O", "B", "B", "O", "O"]


def plain_tags(forms: list[str], phrases: list[str]) -> list[str]:
    """Match every phrase at every place, the longest first. Signs may stand before its first word and after its last
    word.
    """
    tags = ["O"] * len(forms)
    split = {tuple(phrase.casefold().split()) for phrase in phrases} - {()}
    for phrase in sorted(split, key=lambda words: (-len(words), words)):
        for start in range(len(forms) - len(phrase) + 1):
            fits = tags[start : start + len(phrase)] == ["O"] * len(phrase)
            for at, word in enumerate(phrase):
                before, found, after = forms[start + at].casefold().partition(word)
                fits &= bool(found) and not (before + after).strip("()+.,") and (at == 0 or not before)
                fits &= at == len(phrase) - 1 or not after
            if fits:
                tags[start : start + len(phrase)] = ["B", *["I"] * (len(phrase) - 1)]
    return tags


def test_keyphrase_tags_equal_those_of_a_plain_search() -> None:
    rng = np.random.default_rng(0)
    pieces = ["a", "b", "c++", "(a", "b)", "a.", "B,", "+", "ab", "(", "c"]
    hits = 0
    for _ in range(400):
        forms = [str(form) for form in rng.choice(pieces, int(rng.integers(0, 9)))]
        phrases = [" ".join(str(word) for word in rng.choice(pieces, int(rng.integers(1, 4)))) for _ in range(4)]
        text = Document("d", (Sentence(tuple(map(Word, forms))),), keyphrases=tuple(phrases))
        assert phrase_tags(text) == plain_tags(forms, phrases)
        hits += "B" in phrase_tags(text)
    assert hits > 100


def test_the_kind_of_tags_is_inferred_from_their_names() -> None:
    assert tagging_of(["O", "B", "I"]) == "keyphrases"
    assert tagging_of(["NOUN", "VERB", "X"]) == "upos"
    assert tagging_of(["NN", "VBZ", "X"]) == "xpos"


def test_labels_are_ordered_as_numbers_or_as_text_with_o_first() -> None:
    def labelled(*labels: str) -> list[Document]:
        return [Document(str(place), (), label=label) for place, label in enumerate(labels * 2)]

    assert names_of(labelled("10", "9", "0"), "label") == ("0", "9", "10")
    assert names_of(labelled("b", "O", "10", "a"), "label") == ("O", "10", "a", "b")


def test_only_the_first_piece_of_a_word_has_its_tag() -> None:
    """`playing` is read as several pieces, a word without a tag has no label, and two sentences are two texts."""
    encoder = Encoder(tokenizer("wordpiece"))
    words = [Word("Dogs", upos="N"), Word("playing", upos="V"), Word("zzz"), Word("cat", upos="N")]
    text = Document("d", (Sentence(tuple(words)), Sentence((Word("sat", upos="V"),))))
    first, second = examples([text], encoder, "upos", ["N", "V"], Tally())
    expected = []
    for place, word in enumerate(first.text.word_of):
        begins = word >= 0 and first.text.word_of[place - 1] != word
        expected.append({0: 0, 1: 1, 3: 0}.get(word, UNLABELLED) if begins else UNLABELLED)
    assert len(first.text) > 6
    assert first.labels.tolist() == expected
    assert (first.labels != UNLABELLED).sum() == 3
    assert second.labels[second.labels != UNLABELLED].tolist() == [1]


def test_texts_without_a_label_are_skipped_and_counted() -> None:
    tally = Tally()
    given = [document("a", "The cat sat ."), Document("b", document("b", "A dog").sentences, label="yes")]
    found = examples(given, Encoder(tokenizer("wordpiece"), "document"), "label", ["no", "yes"], tally)
    assert [(example.text.document, example.labels.tolist()) for example in found] == [("b", [1])]
    assert tally.lines() == ["1 texts skipped: no label (first: a)"]
    tally = Tally()
    assert examples(given[:1], Encoder(tokenizer("wordpiece"), "document"), "keyphrases", ["O", "B"], tally) == []
    assert tally.lines() == ["1 texts skipped: no keyphrase in them (first: a)"]


def test_texts_with_the_same_first_paragraph_are_held_out_together() -> None:
    pairs = [document(f"{premise}/{number}", f"premise {premise}", f"hypothesis {number}") for premise in range(300) for number in range(3)]
    learnt, kept = held_out(pairs, 0.2, seed=1)
    sides = [{text.id.split("/")[0] for text in side} for side in (learnt, kept)]
    assert not sides[0] & sides[1]
    assert len(learnt) + len(kept) == 900
    assert 40 <= len(sides[1]) <= 80
    shuffled = [pairs[place] for place in np.random.default_rng(0).permutation(900)]
    assert {text.id for text in held_out(shuffled, 0.2, seed=1)[1]} == {text.id for text in kept}
    assert {text.id for text in held_out(pairs, 0.2, seed=2)[1]} != {text.id for text in kept}


@pytest.mark.parametrize("limit", [None, 5, 99])
def test_the_drawn_documents_do_not_depend_on_their_order(limit: int | None) -> None:
    given = [Document(str(number), ()) for number in range(20)]
    found = [text.id for text in some(given, limit, 0)]
    assert found == sorted(found, key=int)
    assert set(found) == {text.id for text in some(given[::-1], limit, 0)}
    assert len(found) == min(limit or 20, 20)
    if limit == 5:
        assert found != [text.id for text in some(given, 5, 1)]
