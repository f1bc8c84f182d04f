"""Small tokenizers of the common families, built here: their vocabularies are tiny, but their pipelines are the real
ones.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend
from transformers import (
    BertTokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    T5Tokenizer,
    XLMRobertaTokenizer,
)

from headscope.core.document import Document, Sentence, Word
from headscope.encoding.tokenizer import Tokenizer
from headscope.models.load import load_tokenizer

SENTENCES = (
    "The cat sat on a mat .",
    "A dog saw the cats sitting on mats .",
    "Dogs and cats play in the garden , playing all day .",
) * 3
LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
Bpe = tuple[dict[str, int], list[tuple[str, str]]]


def _trained(pre_tokenizer: Any, specials: list[str], alphabet: list[str]) -> Bpe:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, special_tokens=specials, show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    model = json.loads(backend.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]


@cache
def _byte_level() -> Bpe:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], alphabet)


@cache
def _sentencepiece_bpe() -> Bpe:
    return _trained(pre_tokenizers.Metaspace(), ["<unk>", "<s>", "</s>", *BYTES], list(string.ascii_letters + ".,"))


def _unigram(specials: list[str]) -> list[tuple[str, float]]:
    whole = ("▁The", "▁cat", "▁play", "ing", "▁on", "▁mat", "s", "▁the", "▁gard", "en", "▁.", "▁a")
    letters = [mark for mark in string.ascii_letters + string.digits + ".,-'" if mark not in whole]
    return [(name, 0.0) for name in specials] + [(name, -2.0) for name in whole] + [("▁", -3.0)] + [(mark, -6.0) for mark in letters]


def wordpiece() -> Any:
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "play", "dog", "##s", "##ing", *"abcdefghijklmnopqrstuvwxyz0129.,"]
    vocab += [f"##{mark}" for mark in "abcdefghijklmnopqrtuvwxyz0129"]
    return BertTokenizer(vocab={name: number for number, name in enumerate(vocab)})


def letters() -> Any:
    """A WordPiece tokenizer that splits a word of n letters into n tokens, so that the text shows the lengths."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase, *(f"##{mark}" for mark in string.ascii_lowercase)]
    return BertTokenizer(vocab={name: number for number, name in enumerate(vocab)})


def gpt2() -> Any:
    vocab, merges = _byte_level()
    return GPT2Tokenizer(vocab=vocab, merges=merges)


def gpt2_bos_eos() -> Any:
    """Like GPT-2, but with its only special token at both ends."""
    tokenizer = gpt2()
    end = ("<|endoftext|>", tokenizer.eos_token_id)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{end[0]} $A {end[0]}", pair=f"{end[0]} $A {end[0]} $B {end[0]}", special_tokens=[end]
    )
    return tokenizer


def roberta() -> Any:
    vocab, merges = _byte_level()
    return RobertaTokenizer(vocab=vocab, merges=merges)


def t5() -> Any:
    return T5Tokenizer(vocab=_unigram(["<pad>", "</s>", "<unk>"]), extra_ids=2)


def xlm_r() -> Any:
    return XLMRobertaTokenizer(vocab=[*_unigram(["<s>", "<pad>", "</s>", "<unk>"]), ("<mask>", 0.0)])


def _llama_backend() -> Backend:
    vocab, merges = _sentencepiece_bpe()
    backend = Backend(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return backend


def llama2() -> Any:
    """Llama 2 as in its tokenizer.json files: the normalizer replaces spaces, and there is no pre-tokenizer."""
    backend = _llama_backend()
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def llama2_metaspace() -> Any:
    """Llama 2 as transformers 5 builds it."""
    vocab, merges = _sentencepiece_bpe()
    return LlamaTokenizer(vocab=vocab, merges=merges)


def gemma() -> Any:
    """A space becomes a mark, but there is no mark before the first word."""
    backend = _llama_backend()
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def llama3() -> Any:
    vocab, merges = _byte_level()
    backend = Backend(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA_3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])
    backend.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")


def xlnet_like() -> Any:
    """A tokenizer that puts its opening token `<cls>` at the end, like XLNet's."""
    tokenizer = t5()
    tokenizer.add_special_tokens({"cls_token": "<cls>"})
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s> <cls>", pair="$A </s> $B </s> <cls>", special_tokens=[("</s>", 1), ("<cls>", tokenizer.cls_token_id)]
    )
    return tokenizer


def with_language() -> Any:
    """A tokenizer of a multilingual translator: a language code, which is no opening token, precedes the text."""
    tokenizer = t5()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<extra_id_0> $A </s>",
        pair="<extra_id_0> $A $B </s>",
        special_tokens=[("</s>", 1), ("<extra_id_0>", tokenizer.convert_tokens_to_ids("<extra_id_0>"))],
    )
    return tokenizer


FAMILIES: dict[str, Callable[[], Any]] = {
    "wordpiece": wordpiece,
    "gpt2": gpt2,
    "roberta": roberta,
    "t5": t5,
    "xlm-r": xlm_r,
    "llama-2": llama2,
    "llama-2 metaspace": llama2_metaspace,
    "gemma": gemma,
    "llama-3": llama3,
}
OTHERS: dict[str, Callable[[], Any]] = {
    "letters": letters,
    "gpt2 bos eos": gpt2_bos_eos,
    "xlnet-like": xlnet_like,
    "with language": with_language,
}


@cache
def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a family, or of the embedded model with the name `mini`."""
    return load_tokenizer("mini") if name == "mini" else Tokenizer((FAMILIES | OTHERS)[name]())


def words(text: str) -> tuple[Word, ...]:
    """The words between spaces. `_` joins a word to the next: `cats_.` is `cats` without a space after it, then `.`."""
    found = []
    for stretch in text.split():
        *glued, last = stretch.split("_")
        found += [Word(form, space_after=False) for form in glued] + [Word(last)]
    return tuple(found)


def document(name: str, *paragraphs: str) -> Document:
    """A document of paragraphs. In each paragraph, `|` separates sentences."""
    return Document(
        name,
        tuple(Sentence(words(text), paragraph=number) for number, paragraph in enumerate(paragraphs) for text in paragraph.split("|")),
    )
