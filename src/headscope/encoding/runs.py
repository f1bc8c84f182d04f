"""The tokens of runs of words. A run is one word, or several words that are tokenised together. The tokens of a run
depend only on its text, so they are cached: a corpus of a million words has some ten thousand different runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse, islice
from typing import Any

from headscope.errors import EncodingError

AT_ONCE = 4096  # runs: what the backend returns takes hundreds of bytes for each
REMEMBERED = 1 << 17  # runs, of a few hundred bytes each
_SHORT = 64  # characters of a run that is cached

Run = str | tuple[str, ...]  # a word with the space before it, if it is given with one; or a space or "", and several words
Ids = tuple[int, ...]


class RunTokens:
    """Tokenises runs of words with a backend of Hugging Face's tokenizers."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._known: dict[Run, Any] = {}  # of one word its ids, of several the ids of each
        # With dropout the same text gives different tokens each time.
        self._remembers = not getattr(backend.model, "dropout", None)

    def of(self, runs: Sequence[Run]) -> list[Ids]:
        """The ids of each word of the runs, in order; () for a word that the tokenizer drops."""
        found: list[Any] = list(map(self._known.get, runs))
        if not all(found):  # one is not cached, or is dropped
            missing = dict.fromkeys(run for run, own in zip(runs, found, strict=True) if own is None)
            try:
                fresh = self._tokenised(missing)
            except EncodingError:
                for some in _parts(runs):  # so that the error names the whole text
                    encode_words(self._backend, list(map(_text, some)))
                raise
            found = [fresh[run] if own is None else own for run, own in zip(runs, found, strict=True)]
        if {str}.issuperset(map(type, runs)):
            return found
        return [ids for run, own in zip(runs, found, strict=True) for ids in ((own,) if type(run) is str else own)]

    def learn(self, runs: Iterable[Run]) -> None:
        """Tokenise and cache the runs that are not cached yet."""
        self._tokenised(dict.fromkeys(filterfalse(self._known.__contains__, runs)))

    def _tokenised(self, runs: Iterable[Run]) -> dict[Run, Any]:
        """The tokens of different runs, which are cached."""
        fresh: dict[Run, Any] = {}
        for some in _parts(runs):
            fresh.update(zip(some, self._encoded(some), strict=True))
        # Where a token belongs to two words of a run, each word is tokenised on its own.
        if apart := {run: (run[0] + run[1], *run[2:]) for run, own in fresh.items() if own is None}:
            single = self._tokenised(dict.fromkeys(word for words in apart.values() for word in words))
            fresh.update((run, tuple(single[word] for word in words)) for run, words in apart.items())
        if self._remembers and fresh:
            if len(self._known) + len(fresh) > REMEMBERED:
                self._known = {}
            self._known.update((run, own) for run, own in fresh.items() if len(_text(run)) <= _SHORT)
        return fresh

    def _encoded(self, runs: Sequence[Run]) -> list[Any]:
        """The ids of each run or, if it has several words, of each of its words; None if a token belongs to two
        words.
        """
        encoding = encode_words(self._backend, list(map(_text, runs)))
        found: list[Any] = [[] if type(run) is str else [[] for _ in run[1:]] for run in runs]
        for token, number, (start, end) in zip(encoding.ids, encoding.word_ids, encoding.offsets, strict=True):
            run, own = runs[number], found[number]
            if type(run) is str:
                own.append(token)
            elif own is not None:
                place = _place(run[1:], start - len(run[0]), end - len(run[0]))
                if place is None:
                    found[number] = None
                else:
                    own[place].append(token)
        return [
            own if own is None else (tuple(own) if type(run) is str else tuple(map(tuple, own)))
            for run, own in zip(runs, found, strict=True)
        ]


def encode_words(backend: Any, words: Sequence[str]) -> Any:
    """The backend's encodings of words; an EncodingError if it cannot tokenise one."""
    try:
        return backend.encode(words, is_pretokenized=True, add_special_tokens=False)
    except TypeError:
        wrong = next((word for word in words if not _writable(word)), words)
        raise EncodingError(f"the word {wrong!r} cannot be written as UTF-8", "Remove lone surrogates") from None
    except BaseException as error:  # a panic in the tokenizer's Rust code is not a Python Exception
        if type(error).__name__ != "PanicException":
            raise
        said = (str(error).strip() or "no message").splitlines()[0][:200]
        raise EncodingError(
            f"the tokenizer panicked on a text of {len(words)} words that begins with {words[0][:40]!r} ({said})",
            "A pattern in its tokenizer.json is at fault: use the model's own tokenizer.json",
        ) from None


def _parts(runs: Iterable[Run]) -> Iterator[list[Run]]:
    rest = iter(runs)
    while some := list(islice(rest, AT_ONCE)):
        yield some


def _text(run: Run) -> str:
    return run if isinstance(run, str) else "".join(run)


def _place(run: Sequence[str], start: int, end: int) -> int | None:
    """The word of a run that the characters [start, end) belong to; None if they belong to two. A single space belongs
    to the word after it.
    """
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
