"""Inputs of two parts, `[CLS] A [SEP] B [SEP]`: Clark et al.'s segments, and pairs of paragraphs.

Random choices depend only on (seed, document id), so the order of documents does not change the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.tokenizer import Tokenizer

T = TypeVar("T", bound=Sequence[Any])
Part = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SegmentChunk:
    """The tokens of one input without special tokens: ids and, per token, its word's position in `words`. The second
    part may be empty.

    `words` are consecutive words of the document, the first of them its word number `start`.
    """

    words: tuple[Word, ...]
    ids: tuple[int, ...]
    word_of: tuple[int, ...]
    second_ids: tuple[int, ...] = ()
    second_words: tuple[int, ...] = ()
    start: int = 0

    def sides(self) -> tuple[Part, Part]:
        """The two parts, each as ids and word positions."""
        return (self.ids, self.word_of), (self.second_ids, self.second_words)


def shorten(chunk: SegmentChunk, room: int) -> Iterator[SegmentChunk]:
    """Consecutive windows of at most `room` tokens, cut between words; a word longer than `room` is skipped."""
    start = 0
    while start < len(chunk.ids):
        end = min(start + room, len(chunk.ids))
        while start < end < len(chunk.ids) and chunk.word_of[end] == chunk.word_of[end - 1]:
            end -= 1
        if end == start:
            word = chunk.word_of[start]
            while start < len(chunk.ids) and chunk.word_of[start] == word:
                start += 1
            continue
        yield replace(chunk, ids=chunk.ids[start:end], word_of=chunk.word_of[start:end])
        start = end


def clark_chunks(document: Document, tokenizer: Tokenizer, room: int, seed: int, tally: Tally) -> Iterator[SegmentChunk]:
    """Two-part chunks of consecutive sentences, made as BERT's pre-training made them, without random continuations.

    Sentences are collected until they reach `room` tokens, split at a random sentence boundary, and cut to `room` by
    removing tokens from either end of the longer part. The reference implementation stops at an empty part and ignores
    the rest of the document; here only that chunk is skipped and counted.
    """
    rng = random.Random(f"{seed}/{document.id}")
    gathered: list[Sentence] = []
    size = start = 0
    tokens = tokenizer.tokens_of_each(sentence.words for sentence in document.sentences)
    for number, (sentence, (_, ids, _)) in enumerate(zip(document.sentences, tokens, strict=True)):
        gathered.append(sentence)
        size += len(ids)
        if size < room and number < len(document.sentences) - 1:
            continue
        boundary = rng.randint(1, len(gathered) - 1) if len(gathered) > 1 else 1
        chunk = _two_parts(gathered[:boundary], gathered[boundary:], tokenizer, room, rng, tally)
        if chunk is None:
            tally.add("segments skipped: no second part", document.id)
        else:
            yield replace(chunk, start=start)
        start += sum(map(len, gathered))
        gathered, size = [], 0


def paragraph_pairs(document: Document, tokenizer: Tokenizer, room: int, seed: int, tally: Tally) -> Iterator[SegmentChunk]:
    """Each paragraph with the next one (1 with 2, 3 with 4, ...), cut to `room` tokens as Clark et al.'s segments
    are.
    """
    rng = random.Random(f"{seed}/{document.id}")
    paragraphs = list(document.paragraphs())
    if len(paragraphs) % 2:
        tally.add("paragraphs skipped: no partner", document.id)
    start = 0
    for first, second in zip(paragraphs[::2], paragraphs[1::2], strict=False):
        chunk = _two_parts(first, second, tokenizer, room, rng, tally)
        if chunk is None:
            tally.add("pairs skipped: an empty paragraph", document.id)
        else:
            yield replace(chunk, start=start)
        start += sum(map(len, (*first, *second)))


def _two_parts(
    first: Sequence[Sentence], second: Sequence[Sentence], tokenizer: Tokenizer, room: int, rng: random.Random, tally: Tally
) -> SegmentChunk | None:
    words: list[Word] = []
    parts: list[Part] = []
    for sentences in (first, second):
        own = list(chain.from_iterable(sentence.words for sentence in sentences))
        _, ids, word_of = next(tokenizer.tokens_of_each([own], tally))
        parts.append((ids, tuple([position + len(words) for position in word_of]) if words else word_of))
        words.extend(own)
    kept = cut_to(range(len(parts[0][0])), range(len(parts[1][0])), room, rng)
    if not all(kept):
        return None
    (a, a_words), (b, b_words) = ((ids[own.start : own.stop], of[own.start : own.stop]) for (ids, of), own in zip(parts, kept, strict=True))
    return SegmentChunk(tuple(words), a, a_words, b, b_words)


def cut_to(a: T, b: T, room: int, rng: random.Random) -> tuple[T, T]:
    """Both parts cut to `room` together: one item at a time from the longer (the second if equal), front or back at
    random.
    """
    low = [0, 0]
    high = [len(a), len(b)]
    while high[0] - low[0] + high[1] - low[1] > room:
        longer = 0 if high[0] - low[0] > high[1] - low[1] else 1
        if rng.random() < 0.5:
            low[longer] += 1
        else:
            high[longer] -= 1
    return a[low[0] : high[0]], b[low[1] : high[1]]  # type: ignore[return-value]  # a part of a list is a list
