"""Generated tokens grouped into words: by hand, and with tokenizers that split characters and words anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from numpy.testing import assert_array_equal

from headscope.core.batch import SEP, WORD
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.continuation import continued, prompt_of
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer
from helpers.families import tokenizer as tokenizer_of

TEXTS = (" sat on a mat. The dog", "s' cats,\n\n“No!” she said…", " don't 1,000 €5 日本 😀👍🏽 naïve", "\n\t x ", "!", " ((the))")


def prompt(tokenizer: Tokenizer, *words: str) -> Encoded:
    return Encoder(tokenizer, max_length=64).encode("text", [Sentence(tuple(map(Word, words)))], Tally())


def test_words_of_a_continuation_equal_those_worked_by_hand(mini_decoder) -> None:  # type: ignore[no-untyped-def]
    tokenizer = mini_decoder.tokenizer
    ids = tokenizer.hf(" don't sit,\n\nsaid the cab", add_special_tokens=False)["input_ids"]
    text = continued(prompt(tokenizer, "The", "cats"), ids, tokenizer)
    newline = tokenizer.readable(tokenizer.hf("\n", add_special_tokens=False)["input_ids"][0])
    assert [word.form for word in text.words] == ["The", "cats", "don't", "sit", ",", newline, newline, "said", "the", "cab"]
    assert "".join(f"{word.form}{' ' * word.space_after}" for word in text.words[:5]) == "The cats don't sit, "
    assert text.generated_from == 1 + sum(word in (0, 1) for word in text.word_of)
    assert_array_equal(text.ids[text.generated_from :], ids)
    assert text.annotation.heads == (-2,) * 10  # no tree
    assert [word.relation for word in text.words] == [None] * 10


@pytest.mark.parametrize("name", ["mini-decoder", "gpt2", "llama-2", "llama-2 metaspace", "gemma", "llama-3"])
@pytest.mark.parametrize("written", TEXTS)
def test_a_continuation_keeps_its_tokens_and_its_words_spell_the_text(name: str, written: str, mini_decoder) -> None:  # type: ignore[no-untyped-def]
    tokenizer = mini_decoder.tokenizer if name == "mini-decoder" else tokenizer_of(name)
    ids = tokenizer.hf(written, add_special_tokens=False)["input_ids"]
    for size in range(1, len(ids) + 1):  # also where a character is split in two
        text = continued(prompt_of(prompt(tokenizer, "The", "cat")), ids[:size], tokenizer)
        start = text.generated_from
        assert start is not None
        assert text.ids[start:].tolist() == ids[:size]
        own = text.word_of[start:]
        assert own[0] == 2, "the first token begins a word"
        assert all(after - before in (0, 1) for before, after in pairwise(own)), "words are consecutive"
        assert len(text.words) == own[-1] + 1
        decoded = tokenizer.decode_after(int(text.ids[start - 1]), ids[:size])
        forms = [word.form for word in text.words[2:] if word.form in decoded]
        assert "".join("".join(forms).split()) == "".join(decoded.split())


def test_special_tokens_at_the_end_of_a_text_are_not_part_of_the_prompt() -> None:
    tokenizer = tokenizer_of("roberta")
    text = prompt(tokenizer, "The", "cat")
    assert text.roles[-1] == SEP
    assert prompt_of(text).roles[-1] == WORD
    assert_array_equal(prompt_of(text).ids, text.ids[:-1])
    closed = continued(prompt_of(text), [int(text.ids[1]), int(text.ids[-1]), int(text.ids[1])], tokenizer)
    assert closed.word_of[-3:] == (2, -1, 3)
    assert closed.roles[-3:] == (WORD, SEP, WORD)


def test_a_continuation_keeps_slice_and_metadata_and_no_annotation_of_words(mini_decoder) -> None:  # type: ignore[no-untyped-def]
    words = (Word("Cats", head=2, relation="nsubj", upos="NOUN"), Word("sleep", head=0, relation="root", upos="VERB"))
    document = Document("d", (Sentence(words),), metadata={"genre": "news"})
    (text,) = Encoder(mini_decoder.tokenizer, by="genre").texts([document], Tally())
    after = continued(text, [5, 6], mini_decoder.tokenizer)
    assert (after.annotation.slice, after.document, after.annotation.metadata) == ("news", "d", {"genre": "news"})
    assert {(word.head, word.relation, word.upos) for word in after.words} == {(None, None, None)}
