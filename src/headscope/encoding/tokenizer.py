"""Tokenise words as in running text, with an exact alignment: no token ever belongs to two words.

Nothing here looks at `##`, `Ġ` or `▁`. The tokens that a tokenizer adds around a text, and whether it needs a space
before a word, are found by trying it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from headscope.core.batch import CLS, SEP, SPECIAL
from headscope.core.document import DrawnWord, Word
from headscope.core.tally import Tally
from headscope.encoding.runs import AT_ONCE, Run, RunTokens, encode_words
from headscope.errors import EncodingError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Words = TypeVar("Words", bound=Sequence[Word])
Tokens = tuple[Words, tuple[int, ...], tuple[int, ...]]  # words, token ids, and for each the position of its word
_PROBE = ("The", "cat", "sat", "on", "a", "mat")


@dataclass(frozen=True, slots=True)
class Template:
    """The special tokens around one text (`before`, `after`) or two (`before`, `between`, `after`)."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of tokens that it adds."""
        return len(self.before) + len(self.between) + len(self.after)


class _Readable(dict[int, str]):
    """The text of tokens, decoded on first access."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._backend = backend

    def __missing__(self, token: int) -> str:
        text = self._backend.decode([token], skip_special_tokens=False).strip()
        self[token] = text or str(self._backend.id_to_token(token))
        return self[token]


class Tokenizer:
    """A fast Hugging Face tokenizer as a function from words to tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise EncodingError(
                f"{type(tokenizer).__name__} has no fast version, so words and tokens cannot be aligned exactly",
                "Use a model with a tokenizer.json",
            )
        self.__dict__["hf"] = tokenizer
        self._backend: Any = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self._readable = _Readable(self._backend)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the backend and the facts about special tokens that encoding needs. transformers, which takes a second
        to import, is then needed only if the tokenizer itself is accessed.
        """
        facts = {name: getattr(self, name) for name in ("unknown", "_unknown_id", "_ends")}
        return {**facts, "_backend": self._backend, "_packed": self.__dict__.get("_packed") or pickle.dumps(self.hf)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._readable = _Readable(self._backend)

    @cached_property
    def hf(self) -> Any:
        """The Hugging Face tokenizer."""
        return pickle.loads(self.__dict__["_packed"])

    @property
    def pad_id(self) -> int:
        """The id that pads short texts; any id will do, since the mask hides it."""
        return int(self.hf.pad_token_id or 0)

    @property
    def mask_id(self) -> int | None:
        """The id that masks a piece for a masked language model to predict; None for other models."""
        mask = self.hf.mask_token_id
        return None if mask is None else int(mask)

    @cached_property
    def size(self) -> int:
        """The number of tokens, including special ones; a model may have more embeddings."""
        return int(max(self.hf.get_vocab().values())) + 1

    @cached_property
    def unknown(self) -> frozenset[int]:
        """The ids for text that the tokenizer does not know. Byte-level tokenizers never give such an id to a word."""
        model = self._backend.model
        found = {self.hf.unk_token_id}
        if (token := getattr(model, "unk_token", None)) is not None:
            found.add(self._backend.token_to_id(token))
        elif found == {None} and type(model).__name__ == "Unigram":  # a Unigram model has it only in its JSON form
            found.add(json.loads(self._backend.to_str())["model"].get("unk_id"))
        return frozenset(int(token) for token in found if token is not None)

    @cached_property
    def _unknown_id(self) -> int | None:
        """The id that a word without a token gets."""
        return None if self.hf.unk_token_id is None else int(self.hf.unk_token_id)

    @cached_property
    def ordinary(self) -> tuple[int, ...]:
        """The ids of the vocabulary that are not special tokens, in order."""
        return tuple(sorted({*self.hf.get_vocab().values()} - self.special))

    @cached_property
    def special(self) -> frozenset[int]:
        """The ids of the special tokens, including those that the tokenizer itself never inserts."""
        added = {token for token, entry in self.hf.added_tokens_decoder.items() if entry.special}
        return frozenset({*self.hf.all_special_ids} | added)

    def _ids(self, words: Sequence[str]) -> list[int]:
        return list(encode_words(self._backend, words).ids)

    @cached_property
    def _spaced(self) -> bool:
        """Whether a word after a space must be tokenised with the space, to reproduce the tokens of running text."""
        running = self._backend.encode(" ".join(_PROBE), add_special_tokens=False).ids
        for spaced in (False, True):
            if self._ids([word if i == 0 or not spaced else f" {word}" for i, word in enumerate(_PROBE)]) == running:
                return spaced
        return False

    @cached_property
    def _marks_words(self) -> bool:
        """Whether the tokenizer marks a single word as if a space preceded it, as T5, XLM-R and Llama 2 do."""
        running = self._backend.encode(f"{_PROBE[0]} {_PROBE[1]}.", add_special_tokens=False).ids
        return bool(self._ids([_PROBE[0], f" {_PROBE[1]}" if self._spaced else _PROBE[1], "."]) != running)

    def tokens(self, words: Sequence[Word], tally: Tally | None = None) -> tuple[list[int], list[int]]:
        """Token ids and, for each, the position of its word.

        Each word is tokenised separately, with one exception: if the tokenizer would then invent a space, words written
        together, as in `cats.`, are tokenised together and split at the word boundary. If a token crosses such a
        boundary (`don` in `do` + `n't`), the words are tokenised one by one after all. A word that the tokenizer drops
        (a control character, for example) becomes the unknown token and is counted.
        """
        _, ids, word_of = next(self.tokens_of_each([words], tally))
        return list(ids), list(word_of)

    def tokens_of_each(self, texts: Iterable[Words], tally: Tally | None = None) -> Iterator[Tokens[Words]]:
        """As `tokens`, for several texts, each given by its words. Words that are not cached are tokenised together for
        many texts.
        """
        for some in _groups(texts):
            split = [() if _is_drawn(words) else self._split(words) for words in some]
            if len(some) > 1:
                with suppress(EncodingError):  # it is raised when its text is reached
                    self._runs.learn(chain.from_iterable(split))
            for words, runs in zip(some, split, strict=True):
                if _is_drawn(words):
                    yield words, tuple(word.token for word in words if isinstance(word, DrawnWord)), tuple(range(len(words)))
                    continue
                parts = self._runs.of(runs)
                if not all(parts):
                    parts = [own or (self._unknown(word.form, tally),) for own, word in zip(parts, words, strict=True)]
                places = chain.from_iterable(map(repeat, range(len(parts)), map(len, parts)))
                yield words, tuple(chain.from_iterable(parts)), tuple(places)

    def _split(self, words: Sequence[Word]) -> Sequence[Run]:
        """The words in runs that are tokenised separately."""
        if self._marks_words:
            return list(_written_together(words, " " if self._spaced else ""))
        if not self._spaced:
            return [word.form for word in words]
        spaces = chain((False,), (word.space_after for word in words))
        return [f" {word.form}" if space else word.form for word, space in zip(words, spaces, strict=False)]

    @cached_property
    def _runs(self) -> RunTokens:
        """The tokenizer of runs of words."""
        return RunTokens(self._backend)

    def _unknown(self, form: str, tally: Tally | None) -> int:
        if self._unknown_id is None:
            raise EncodingError(f"the word {form!r} yields no token, and the tokenizer has none for unknown words")
        if tally is not None:
            tally.add("words without a token, read as unknown", repr(form), read=True)
        return self._unknown_id

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, including special tokens."""
        return str(self._backend.decode(list(ids), skip_special_tokens=False))

    def decode_after(self, before: int, ids: Sequence[int]) -> str:
        """The text of tokens that follow another token: decoded alone, many lose their initial space."""
        return self.decode([before, *ids])[len(self.decode([before])) :]

    def readable(self, token: int) -> str:
        """The text of a token without the marks of its tokenizer: `.` for `.`, `Ġ.` and `▁.`; a continuation keeps its
        `##`.
        """
        return self._readable[token]

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The text of each token."""
        return tuple(map(self._readable.__getitem__, ids))

    @cached_property
    def single(self) -> Template:
        """The special tokens around one text."""
        return self._template(None)

    @cached_property
    def pair(self) -> Template:
        """The special tokens around and between two texts."""
        return self._template([_PROBE[1]])

    def _template(self, second: list[str] | None) -> Template:
        encoding = self._backend.encode([_PROBE[0]], second, is_pretokenized=True, add_special_tokens=True)
        before: list[int] = []
        between: list[int] = []
        after: list[int] = []
        seen: set[int] = set()
        last = 0 if second is None else 1
        for token, sequence, special in zip(encoding.ids, encoding.sequence_ids, encoding.special_tokens_mask, strict=True):
            if not special:
                seen.add(sequence)
            else:
                (after if last in seen else between if seen else before).append(token)
        if last not in seen:
            raise EncodingError(f"the tokenizer makes no token of {_PROBE[last]!r}, so its special tokens cannot be determined")
        return Template(tuple(before), tuple(between), tuple(after))

    @cached_property
    def _ends(self) -> tuple[set[int | None], set[int | None]]:
        """The tokens that open a text, and those that close or separate texts."""
        return {self.hf.cls_token_id, self.hf.bos_token_id}, {self.hf.sep_token_id, self.hf.eos_token_id}

    def role(self, token: int, first: bool) -> int:
        """The role of a special token: opening ([CLS], <s>, BOS), closing or separating ([SEP], </s>, EOS), or
        other.
        """
        opening, closing = self._ends
        if token in opening and (first or token not in closing):
            return CLS
        return SEP if token in closing else SPECIAL

    def _roles(self, template: Template) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        before = tuple(self.role(token, first=not number) for number, token in enumerate(template.before))
        between, after = (tuple(self.role(token, first=False) for token in part) for part in (template.between, template.after))
        return before, between, after

    @cached_property
    def single_roles(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The roles of the tokens of `single`: before, between and after."""
        return self._roles(self.single)

    @cached_property
    def pair_roles(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The roles of the tokens of `pair`."""
        return self._roles(self.pair)


def _is_drawn(words: Sequence[Word]) -> bool:
    return bool(words) and isinstance(words[0], DrawnWord)


def _groups(texts: Iterable[Words]) -> Iterator[list[Words]]:
    """Consecutive texts of about AT_ONCE words together."""
    group: list[Words] = []
    size = 0
    for words in texts:
        group.append(words)
        size += len(words)
        if size >= AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _written_together(words: Sequence[Word], space: str) -> Iterator[Run]:
    """Words grouped by the spaces between them: `the` `cats` `.` is `the` and `cats` + `.` where no space precedes the
    period. What follows a space begins with `space`.
    """
    lead, forms = "", list[str]()
    for word in words:
        forms.append(word.form)
        if word.space_after:
            yield lead + forms[0] if len(forms) == 1 else (lead, *forms)
            lead, forms = space, []
    if forms:
        yield lead + forms[0] if len(forms) == 1 else (lead, *forms)
