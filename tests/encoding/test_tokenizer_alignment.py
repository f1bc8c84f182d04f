"""Tokens of words, for tokenizers of all common families: alignment, special tokens, unknown words and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, processors
from transformers import PreTrainedTokenizerFast

from headscope.core.batch import CLS, SEP, SPECIAL, WORD
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding import runs
from headscope.encoding.texts import Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import EncodingError
from helpers.families import FAMILIES, gpt2, llama3, tokenizer, wordpiece, words

ALL = ["mini", *FAMILIES]
# Families that mark a word after a space, but not the first word. A word glued to the one before has no mark.
UNPREFIXED = ["gpt2", "roberta", "llama-3", "gemma"]
PREFIXED = ["t5", "xlm-r", "llama-2", "llama-2 metaspace"]
TEXT = "Dogs play in the garden , playing on 2019 mats and unaffable cats ."
LOST = "words without a token, read as unknown"


def names(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [str(name) for name in tokenizer.hf.convert_ids_to_tokens(ids)]


def plain(tokenizer: Tokenizer, text: str) -> list[int]:
    """The tokens that the tokenizer itself returns for running text."""
    return list(tokenizer.hf(text, add_special_tokens=False)["input_ids"])


def of_word(position: int, ids: list[int], word_of: list[int]) -> list[int]:
    return [token for token, word in zip(ids, word_of, strict=True) if word == position]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("text", [TEXT, "The cat sat on a mat .", "a", "cat cat cat", "A dog , a dog ."])
def test_words_separated_by_spaces_have_the_tokens_of_the_plain_text(name: str, text: str) -> None:
    ids, word_of = tokenizer(name).tokens(words(text))
    assert ids == plain(tokenizer(name), text)
    assert len(ids) == len(word_of)


@pytest.mark.parametrize("name", ALL)
def test_the_pieces_of_a_word_spell_the_word(name: str) -> None:
    given = words(TEXT)
    ids, word_of = tokenizer(name).tokens(given)
    assert word_of == sorted(word_of)
    assert sorted(set(word_of)) == list(range(len(given)))
    for position, word in enumerate(given):
        own = of_word(position, ids, word_of)
        spelt = "".join(tokenizer(name).readable(token) for token in own).replace("##", "").strip("▁Ġ")
        assert spelt.lower() == word.form.lower()


@pytest.mark.parametrize("name", ["gpt2", "roberta", "llama-2", "llama-2 metaspace", "gemma", "llama-3"])
def test_a_word_of_several_bytes_per_letter_stays_whole(name: str) -> None:
    ids, word_of = tokenizer(name).tokens(words("a café 😀 ."))
    assert [tokenizer(name).hf.decode(of_word(position, ids, word_of)).strip() for position in range(4)] == ["a", "café", "😀", "."]
    assert ids == plain(tokenizer(name), "a café 😀 .")


def test_pieces_of_words_equal_those_worked_by_hand() -> None:
    made = tokenizer("wordpiece")
    ids, word_of = made.tokens(words("The dogs playing 12 ."))
    assert names(made, ids) == ["the", "dog", "##s", "play", "##ing", "1", "##2", "."]
    assert word_of == [0, 1, 1, 2, 2, 3, 3, 4]
    made = tokenizer("t5")
    ids, word_of = made.tokens(words("The cats playing"))
    assert names(made, ids) == ["▁The", "▁cat", "s", "▁play", "ing"]
    assert word_of == [0, 1, 1, 2, 2]
    made = tokenizer("gpt2")
    ids, word_of = made.tokens(words("cat 21"))
    assert names(made, ids) == ["cat", "Ġ", "2", "1"]
    assert word_of == [0, 1, 1, 1]


@pytest.mark.parametrize("name", UNPREFIXED)
def test_a_glued_word_has_no_space_in_its_token(name: str) -> None:
    made = tokenizer(name)
    ids, word_of = made.tokens(words("The cats_. The"))
    assert names(made, of_word(2, ids, word_of)) == ["."]
    assert names(made, of_word(3, ids, word_of))[0][0] in "Ġ▁"
    assert made.hf.decode(ids) == "The cats. The"


@pytest.mark.parametrize("name", ["gpt2", "roberta", "llama-3"])
def test_punctuation_glued_to_words_has_the_tokens_of_the_plain_text(name: str) -> None:
    ids, word_of = tokenizer(name).tokens(words("The cats_, (_dogs_) sat_. A cat"))
    assert ids == plain(tokenizer(name), "The cats, (dogs) sat. A cat")
    assert sorted(set(word_of)) == list(range(10))


@pytest.mark.parametrize("name", PREFIXED)
def test_a_tokenizer_that_marks_every_word_does_not_mark_glued_words(name: str) -> None:
    glued, word_of = tokenizer(name).tokens(words("The cats_."))
    assert glued == plain(tokenizer(name), "The cats.")
    assert sorted(set(word_of)) == [0, 1, 2]


@pytest.mark.parametrize("name", ["mini", "wordpiece"])
def test_wordpiece_ignores_spaces(name: str) -> None:
    assert tokenizer(name).tokens(words("The cat_."))[0] == plain(tokenizer(name), "The cat.") == plain(tokenizer(name), "The cat .")


@pytest.mark.parametrize("name", ALL)
def test_a_word_with_a_space_inside_stays_one_word(name: str) -> None:
    _, word_of = tokenizer(name).tokens([Word("a"), Word("cat mat"), Word(".")])
    assert sorted(set(word_of)) == [0, 1, 2]
    assert word_of.count(1) >= 2


@pytest.mark.parametrize("name", ALL)
def test_a_long_text_is_tokenised_in_parts_with_the_same_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = [Word(form, space_after=form != "cats") for form in f"{TEXT} \u0007 {TEXT}".split()]
    whole, sizes = tokenizer(name).tokens(text), list[int]()
    encode = runs.encode_words

    def counted(backend: Any, words: Sequence[str]) -> Any:
        sizes.append(len(words))
        return encode(backend, words)

    own = Tokenizer(tokenizer(name).hf)
    monkeypatch.setattr(runs, "encode_words", counted)
    monkeypatch.setattr(runs, "AT_ONCE", 4)
    assert own.tokens(text) == whole
    assert max(sizes) <= 4
    different = len({word.form for word in text})
    assert sum(sizes) >= different - 2  # `cats .` can be encoded as one run
    encoded_before = sum(sizes)
    assert own.tokens(text) == whole
    assert sum(sizes) == encoded_before, "words that were tokenised before are cached"


@pytest.mark.parametrize("name", ALL)
def test_no_words_have_no_tokens(name: str) -> None:
    assert tokenizer(name).tokens(()) == ([], [])


TEMPLATES: dict[str, tuple[str, str]] = {
    "mini": ("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]"),
    "wordpiece": ("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]"),
    "gpt2": ("A", "A B"),
    "gpt2 bos eos": ("<|endoftext|> A <|endoftext|>", "<|endoftext|> A <|endoftext|> B <|endoftext|>"),
    "roberta": ("<s> A </s>", "<s> A </s> </s> B </s>"),
    "t5": ("A </s>", "A </s> B </s>"),
    "xlm-r": ("<s> A </s>", "<s> A </s> </s> B </s>"),
    "llama-2": ("<s> A", "<s> A <s> B"),
    "llama-3": ("<s> A", "<s> A <s> B"),
    "xlnet-like": ("A </s> <cls>", "A </s> B </s> <cls>"),
    "with language": ("<extra_id_0> A </s>", "<extra_id_0> A B </s>"),
}


@pytest.mark.parametrize(("name", "single", "pair"), [(name, *both) for name, both in TEMPLATES.items()])
def test_templates_have_the_special_tokens_of_one_text_and_of_a_pair(name: str, single: str, pair: str) -> None:
    def spelt(tokens: tuple[int, ...]) -> list[str]:
        return names(tokenizer(name), list(tokens))

    one, two = tokenizer(name).single, tokenizer(name).pair
    assert [*spelt(one.before), "A", *spelt(one.after)] == single.split()
    assert one.between == ()
    assert [*spelt(two.before), "A", *spelt(two.between), "B", *spelt(two.after)] == pair.split()
    assert (one.size, two.size) == (len(single.split()) - 1, len(pair.split()) - 2)


def test_a_template_that_cannot_be_determined_is_an_error() -> None:
    backend = Backend(models.BPE(vocab={"<s>": 0, "</s>": 1, "я": 2}, merges=[]))
    ends = [("<s>", 0), ("</s>", 1)]
    backend.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=ends)
    blind = Tokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>"))
    assert blind.tokens(words("я")) == ([2], [0])
    with pytest.raises(EncodingError, match="makes no token of 'The'"):
        _ = blind.single


W = WORD
ROLES: dict[str, tuple[list[int], list[int]]] = {
    "mini": ([CLS, W, SEP], [CLS, W, SEP, W, SEP]),
    "wordpiece": ([CLS, W, SEP], [CLS, W, SEP, W, SEP]),
    "gpt2": ([W], [W, W]),
    "gpt2 bos eos": ([CLS, W, SEP], [CLS, W, SEP, W, SEP]),
    "roberta": ([CLS, W, SEP], [CLS, W, SEP, SEP, W, SEP]),
    "t5": ([W, SEP], [W, SEP, W, SEP]),
    "xlm-r": ([CLS, W, SEP], [CLS, W, SEP, SEP, W, SEP]),
    "llama-2": ([CLS, W], [CLS, W, CLS, W]),
    "llama-3": ([CLS, W], [CLS, W, CLS, W]),
    "xlnet-like": ([W, SEP, CLS], [W, SEP, W, SEP, CLS]),
    "with language": ([SPECIAL, W, SEP], [SPECIAL, W, W, SEP]),
}


@pytest.mark.parametrize(("name", "single", "pair"), [(name, *both) for name, both in ROLES.items()])
def test_special_tokens_have_the_expected_roles(name: str, single: list[int], pair: list[int]) -> None:
    paragraphs = Document("d", (Sentence((Word("a"),)), Sentence((Word("a"),), paragraph=1)))
    made = tokenizer(name)
    text = next(Encoder(made, "sentence").texts([paragraphs], Tally()))
    both = next(Encoder(made, "pair").texts([paragraphs], Tally()))
    assert list(text.roles) == single
    assert list(both.roles) == pair
    assert text.word_of == tuple(0 if role == WORD else -1 for role in single)
    # The ids that the tokenizer itself returns for one text and for a pair.
    assert list(text.ids) == made.hf("a")["input_ids"]
    assert list(both.ids) == made.hf("a", "a")["input_ids"]


def test_a_special_token_written_in_the_text_is_a_word() -> None:
    made = tokenizer("mini")
    text = next(Encoder(made).texts([Document("d", (Sentence(words("a [SEP] b [CLS]")),))], Tally()))
    assert text.pieces == ("[CLS]", "a", "[SEP]", "b", "[CLS]", "[SEP]")
    assert text.roles == (CLS, W, W, W, W, SEP)
    assert text.word_of == (-1, 0, 1, 2, 3, -1)
    made = tokenizer("roberta")
    ids, word_of = made.tokens(words("a </s> a"))
    assert made.hf.sep_token_id in of_word(1, ids, word_of)


def test_a_word_without_a_token_becomes_unknown_and_is_counted() -> None:
    made, tally = tokenizer("mini"), Tally()
    given = [Word("\x00"), Word("cat"), Word("\u200b"), Word("\x01"), Word("dog"), Word("\u0301")]
    ids, word_of = made.tokens(given, tally)
    assert names(made, ids) == ["[UNK]", "cat", "[UNK]", "[UNK]", "dog", "[UNK]"]
    assert word_of == [0, 1, 2, 3, 4, 5]
    assert tally.counts == {LOST: 4}
    assert tally.first == {LOST: repr("\x00")}
    assert made.tokens(given) == (ids, word_of)


def test_an_unknown_word_between_words_of_several_tokens_keeps_its_place() -> None:
    made = tokenizer("wordpiece")
    ids, word_of = made.tokens([Word("playing"), Word("\x07"), Word("dogs")])
    assert names(made, ids) == ["play", "##ing", "[UNK]", "dog", "##s"]
    assert word_of == [0, 0, 1, 2, 2]


def test_a_word_without_a_token_is_an_error_without_an_unknown_token() -> None:
    hf = wordpiece()
    hf.unk_token = None
    with pytest.raises(EncodingError, match=r"the word '\\x07' yields no token"):
        Tokenizer(hf).tokens([Word("cat"), Word("\x07")])
    assert Tokenizer(llama3()).hf.unk_token_id is None
    assert Tokenizer(llama3()).tokens([Word("cat"), Word("\x07")])[1] == [0, 1, 1]


def test_slow_tokenizers_are_refused() -> None:
    class Slow:
        is_fast = False

    slow: Any = Slow()
    with pytest.raises(EncodingError, match=r"Slow has no fast version.*tokenizer\.json"):
        Tokenizer(slow)


def test_truncation_and_padding_in_a_tokenizer_file_are_disabled() -> None:
    hf = wordpiece()
    hf.backend_tokenizer.enable_truncation(4)
    hf.backend_tokenizer.enable_padding(length=30)
    ids, word_of = Tokenizer(hf).tokens(words("the cat the cat the cat"))
    assert names(Tokenizer(hf), ids) == ["the", "cat"] * 3
    assert word_of == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ALL)
def test_readable_tokens_have_no_space_marks(name: str) -> None:
    made = tokenizer(name)
    ids, _ = made.tokens(words("a . a"))
    assert [piece for piece in map(made.readable, ids) if piece not in ("▁", "Ġ")] == ["a", ".", "a"]


def test_readable_tokens_keep_marks_that_distinguish_them() -> None:
    made = tokenizer("wordpiece")
    assert [made.readable(made.hf.convert_tokens_to_ids(name)) for name in ("##ing", "[SEP]", "play")] == ["##ing", "[SEP]", "play"]
    # A lone space or mark would become an empty string, so the token itself is returned.
    assert tokenizer("gpt2").readable(tokenizer("gpt2").hf.convert_tokens_to_ids("Ġ")) == "Ġ"
    assert tokenizer("t5").readable(tokenizer("t5").hf.convert_tokens_to_ids("▁")) == "▁"


def test_the_padding_id_is_that_of_the_tokenizer_or_0() -> None:
    assert tokenizer("roberta").pad_id == 1
    assert tokenizer("t5").pad_id == 0
    assert Tokenizer(gpt2()).pad_id == 0  # it has no padding token


form = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
some_words = st.lists(st.builds(Word, form=form, space_after=st.booleans()), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(given_words=some_words)
def test_any_words_align_under_wordpiece(given_words: list[Word]) -> None:
    made, tally = tokenizer("mini"), Tally()
    ids, word_of = made.tokens(given_words, tally)
    # WordPiece tokenises each word separately, so each word alone is a second implementation.
    alone = [plain(made, word.form) for word in given_words]
    assert [of_word(position, ids, word_of) for position in range(len(given_words))] == [own or [made.hf.unk_token_id] for own in alone]
    assert word_of == sorted(word_of)
    assert tally.counts[LOST] == sum(not own for own in alone)


@settings(max_examples=150, deadline=None)
@given(given_words=some_words)
def test_any_words_align_under_byte_level_bpe(given_words: list[Word]) -> None:
    made, tally = tokenizer("gpt2"), Tally()
    ids, word_of = made.tokens(given_words, tally)
    assert not tally
    assert word_of == sorted(word_of)
    # All bytes are kept, so the tokens of a word spell the word, with the space before it if there is one.
    before = [""] + [" " * word.space_after for word in given_words[:-1]]
    spelt = [made.hf.decode(of_word(position, ids, word_of)) for position in range(len(given_words))]
    assert spelt == [space + word.form for space, word in zip(before, given_words, strict=True)]


def test_a_lone_surrogate_is_a_clear_error() -> None:
    with pytest.raises(EncodingError, match="ud800' cannot be written"):
        tokenizer("mini").tokens([Word("fine"), Word("\ud800")])


def test_a_token_across_two_words_is_split() -> None:
    """In running text, the token `don` of mini would cross the boundary of `do` and `n't`. The words are tokenised
    separately.
    """
    made = tokenizer("mini")
    assert [made.readable(token) for token in plain(made, "don't")] == ["don", "'", "t"]
    ids, word_of = made.tokens([Word("I"), Word("do", space_after=False), Word("n't"), Word("know", space_after=False), Word(".")])
    assert [made.readable(token) for token in ids] == ["i", "do", "n", "'", "t", "know", "."]
    assert word_of == [0, 1, 2, 2, 2, 3, 4]
    whole = tokenizer("gpt2")
    split, of = whole.tokens([Word("a"), Word("ca", space_after=False), Word("ts")])
    assert whole.hf.decode(of_word(1, split, of)) == " ca"
    assert whole.hf.decode(of_word(2, split, of)) == "ts", "no space is added between glued words"


@pytest.mark.parametrize("name", FAMILIES)
def test_words_with_punctuation_have_the_tokens_of_running_text_in_all_families(name: str) -> None:
    given_words = words("The cats_, the dog_, and a mat_.")
    assert tokenizer(name).tokens(given_words)[0] == plain(tokenizer(name), "The cats, the dog, and a mat.")
