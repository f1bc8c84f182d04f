"""Words to tokens, as in running text, with an alignment that is exact: no token ever belongs to two words.

Nothing here looks at `##`, `Ġ` or `▁`. What a tokenizer adds around a text, and whether it wants a space before a
word, is found out by asking it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from headscope.core.batch import CLS, SEP, SPECIAL
from headscope.core.document import Word
from headscope.core.tally import Tally
from headscope.errors import EncodingError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_AT_ONCE = 4096  # words: what the backend returns takes hundreds of bytes for each
_PROBE = ("The", "cat", "sat", "on", "a", "mat")


@dataclass(frozen=True, slots=True)
class Template:
    """The special tokens around one text (`before`, `after`) or two (`before`, `between`, `after`)."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many tokens it adds."""
        return len(self.before) + len(self.between) + len(self.after)


class Tokenizer:
    """A fast Hugging Face tokenizer, seen as a function from words to tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise EncodingError(
                f"{type(tokenizer).__name__} has no fast version, so words and tokens cannot be aligned exactly",
                "Use a model with a tokenizer.json",
            )
        self.hf: Any = tokenizer
        self._backend: Any = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self._readable: dict[int, str] = {}

    @property
    def pad_id(self) -> int:
        """What fills the space after a short text; any id will do, since the mask hides it."""
        return int(self.hf.pad_token_id or 0)

    @property
    def mask_id(self) -> int | None:
        """What stands for a piece that a masked language model is to guess; None for other models."""
        mask = self.hf.mask_token_id
        return None if mask is None else int(mask)

    @cached_property
    def unknown(self) -> frozenset[int]:
        """The ids that stand for text that the tokenizer does not know. Those that work on bytes never give one to a
        word.
        """
        model = self._backend.model
        found = {self.hf.unk_token_id}
        if (token := getattr(model, "unk_token", None)) is not None:
            found.add(self._backend.token_to_id(token))
        elif found == {None} and type(model).__name__ == "Unigram":  # which tells it nowhere else
            found.add(json.loads(self._backend.to_str())["model"].get("unk_id"))
        return frozenset(int(token) for token in found if token is not None)

    @cached_property
    def _spaced(self) -> bool:
        """Whether a word after a space must be given with it: the form that reproduces the tokens of running text."""
        running = self._backend.encode(" ".join(_PROBE), add_special_tokens=False).ids
        for spaced in (False, True):
            if self._ids([word if i == 0 or not spaced else f" {word}" for i, word in enumerate(_PROBE)]).ids == running:
                return spaced
        return False

    @cached_property
    def _marks_words(self) -> bool:
        """Whether a word given on its own is marked as if a space stood before it, as T5, XLM-R and Llama 2 do."""
        running = self._backend.encode(f"{_PROBE[0]} {_PROBE[1]}.", add_special_tokens=False).ids
        return bool(self._ids([_PROBE[0], f" {_PROBE[1]}" if self._spaced else _PROBE[1], "."]).ids != running)

    def _ids(self, words: Sequence[str]) -> Any:
        try:
            return self._backend.encode(list(words), is_pretokenized=True, add_special_tokens=False)
        except TypeError:
            wrong = next((word for word in words if not _writable(word)), words)
            raise EncodingError(f"the word {wrong!r} is not text that can be written as UTF-8", "Remove lone surrogates") from None
        except BaseException as error:  # where the tokenizer's own code panics, that is no Exception in Python
            if type(error).__name__ != "PanicException":
                raise
            said = (str(error).strip() or "no message").splitlines()[0][:200]
            raise EncodingError(
                f"the tokenizer panicked on a text of {len(words)} words that begins with {words[0][:40]!r} ({said})",
                "A pattern in its tokenizer.json is at fault: use the model's own tokenizer.json",
            ) from None

    def tokens(self, words: Sequence[Word], tally: Tally | None = None) -> tuple[list[int], list[int]]:
        """Token ids and, for each, the position of its word.

        Each word is tokenised on its own. Only where the tokenizer would then make up a space, words written
        together, as in `cats.`, are tokenised together and parted where they meet; if a token reaches over such a
        boundary (`don` in `do` + `n't`), they are tokenised one by one all the same. A word that the tokenizer drops
        (a control character, say) becomes the unknown token and is counted.
        """
        runs = _written_together(words) if self._marks_words else ([position] for position in range(len(words)))
        ids: list[int] = []
        word_of: list[int] = []
        while some := list(islice(runs, _AT_ONCE)):
            for position, token in self._aligned(words, some, tally):
                ids.append(token)
                word_of.append(position)
        return ids, word_of

    def _aligned(self, words: Sequence[Word], runs: Sequence[Sequence[int]], tally: Tally | None) -> list[tuple[int, int]]:
        """The tokens of some runs of positions, each token with the position of its word before it."""
        found = self._tokens_of(words, runs)
        apart = [position for run, own in zip(runs, found, strict=True) if own is None for position in run]
        singly = iter(self._tokens_of(words, [[position] for position in apart]) if apart else ())
        pairs: list[tuple[int, int]] = []
        for run, own in zip(runs, found, strict=True):
            if own is not None:
                pairs += [(run[place], token) for token, place in own]
            else:
                pairs += [(position, token) for position in run for token, _ in next(singly) or ()]
        for lost in sorted({position for run in runs for position in run} - {position for position, _ in pairs}):
            pairs.append((lost, self._unknown(words[lost].form, tally)))
        return sorted(pairs, key=lambda pair: pair[0])

    def _tokens_of(self, words: Sequence[Word], runs: Sequence[Sequence[int]]) -> list[list[tuple[int, int]] | None]:
        """For each run of positions its tokens, each with its word's place in the run; None if a token belongs to
        two words.
        """
        forms = [[words[position].form for position in run] for run in runs]
        lead = [" " if self._spaced and _after_space(words, run[0]) else "" for run in runs]
        encoding = self._ids([space + "".join(run) for space, run in zip(lead, forms, strict=True)])
        found: list[list[tuple[int, int]] | None] = [[] for _ in runs]
        for token, number, (start, end) in zip(encoding.ids, encoding.word_ids, encoding.offsets, strict=True):
            own = found[number]
            if own is not None:
                place = _place(forms[number], start - len(lead[number]), end - len(lead[number]))
                if place is None:
                    found[number] = None
                else:
                    own.append((token, place))
        return found

    def _unknown(self, form: str, tally: Tally | None) -> int:
        if self.hf.unk_token_id is None:
            raise EncodingError(f"the word {form!r} yields no token, and the tokenizer has none for unknown words")
        if tally is not None:
            tally.add("words without a token, read as unknown", repr(form), read=True)
        return int(self.hf.unk_token_id)

    def readable(self, token: int) -> str:
        """What a token says, without the marks of its tokenizer: `.` for `.`, `Ġ.` and `▁.` alike; a continuation
        keeps its `##`.
        """
        if token not in self._readable:
            text = self._backend.decode([token], skip_special_tokens=False).strip()
            self._readable[token] = text or str(self.hf.convert_ids_to_tokens(token))
        return self._readable[token]

    @cached_property
    def single(self) -> Template:
        """What the tokenizer puts around one text."""
        return self._template(None)

    @cached_property
    def pair(self) -> Template:
        """What it puts around and between two."""
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
            raise EncodingError(f"the tokenizer makes no token of {_PROBE[last]!r}, so what it puts around a text cannot be told")
        return Template(tuple(before), tuple(between), tuple(after))

    @cached_property
    def _ends(self) -> tuple[set[int | None], set[int | None]]:
        """The tokens that open a text, and those that close or part texts."""
        return {self.hf.cls_token_id, self.hf.bos_token_id}, {self.hf.sep_token_id, self.hf.eos_token_id}

    def role(self, token: int, first: bool) -> int:
        """The role of a special token: an opening one ([CLS], <s>, BOS), a closing or parting one ([SEP], </s>,
        EOS), or another.
        """
        opening, closing = self._ends
        if token in opening and (first or token not in closing):
            return CLS
        return SEP if token in closing else SPECIAL


def _after_space(words: Sequence[Word], position: int) -> bool:
    return position > 0 and words[position - 1].space_after


def _written_together(words: Sequence[Word]) -> Iterator[list[int]]:
    """Positions of words grouped by the spaces between them: `the` `cats` `.` is [0], [1, 2] where no space precedes
    the period.
    """
    run: list[int] = []
    for position in range(len(words)):
        if run and _after_space(words, position):
            yield run
            run = []
        run.append(position)
    if run:
        yield run


def _place(run: Sequence[str], start: int, end: int) -> int | None:
    """Which word of a run the characters [start, end) belong to; None if to two. A lone space belongs to what
    follows.
    """
    if len(run) == 1:
        return 0
    left = 0
    for place, form in enumerate(run):
        right = left + len(form)
        if start < right or place == len(run) - 1:
            return place if end <= right or place == len(run) - 1 else None
        left = right
    return None


def _writable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
