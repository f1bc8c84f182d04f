"""Reading and encoding one line, one row, one word and one text at a time: the plain form of what headscope does for
many at once. Both forms must give the same texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO
from unittest.mock import patch

import numpy as np

from headscope.core.annotation import Annotated
from headscope.core.batch import WORD
from headscope.core.document import Word
from headscope.core.tally import Tally
from headscope.corpora import files
from headscope.corpora.files import Line
from headscope.corpora.readers import conllu
from headscope.corpora.readers.conllu_rows import parse_rows
from headscope.encoding.runs import encode_words
from headscope.encoding.segments import Part, SegmentChunk
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer, Tokens, Words


class PlainTokenizer(Tokenizer):
    """A tokenizer that calls the backend for every text, without a cache."""

    def tokens_of_each(self, texts: Iterable[Words], tally: Tally | None = None) -> Iterator[Tokens[Words]]:
        """The tokens of each text, one text at a time."""
        for words in texts:
            runs = list(_together(words)) if self._marks_words else [[place] for place in range(len(words))]
            pairs: list[tuple[int, int]] = []
            for run, found in zip(runs, self._of_runs(words, runs), strict=True):
                if found is None:
                    alone = self._of_runs(words, [[place] for place in run])
                    pairs += [(place, token) for place, own in zip(run, alone, strict=True) for _, token in own or ()]
                else:
                    pairs += [(run[place], token) for place, token in found]
            for lost in sorted(set(range(len(words))) - {place for place, _ in pairs}):
                pairs.append((lost, self._unknown(words[lost].form, tally)))
            pairs.sort(key=lambda pair: pair[0])
            yield words, tuple(token for _, token in pairs), tuple(place for place, _ in pairs)

    def _of_runs(self, words: Sequence[Word], runs: Sequence[Sequence[int]]) -> list[list[tuple[int, int]] | None]:
        """The tokens of each run, each after its word's place in the run; None if a token belongs to two words."""
        leads = [" " if self._spaced and run[0] > 0 and words[run[0] - 1].space_after else "" for run in runs]
        forms = [[words[place].form for place in run] for run in runs]
        encoding = encode_words(self._backend, [lead + "".join(own) for lead, own in zip(leads, forms, strict=True)])
        found: list[list[tuple[int, int]] | None] = [[] for _ in runs]
        for token, number, (start, end) in zip(encoding.ids, encoding.word_ids, encoding.offsets, strict=True):
            own = found[number]
            place = _place(forms[number], start - len(leads[number]), end - len(leads[number]))
            if place is None:
                found[number] = None
            elif own is not None:
                own.append((place, token))
        return found


class PlainEncoder(Encoder):
    """An encoder that assembles texts token by token."""

    def _assemble(self, chunk: SegmentChunk, name: str, document: Annotated, sides: tuple[Part, ...]) -> Encoded:
        template = self.tokenizer.pair if len(sides) == 2 else self.tokenizer.single
        ids: list[int] = []
        word_of: list[int] = []
        roles: list[int] = []
        segments: list[int] = []

        def add(token: int, word: int, role: int, segment: int) -> None:
            ids.append(token)
            word_of.append(word)
            roles.append(role)
            segments.append(segment if self.segment_ids == "pair" else 0)

        for token in template.before:
            add(token, -1, self.tokenizer.role(token, first=not ids), 0)
        for number, (tokens, words) in enumerate(sides):
            for token in template.between if number else ():
                add(token, -1, self.tokenizer.role(token, first=not ids), 0)
            for token, word in zip(tokens, words, strict=True):
                add(token, word, WORD, number)
        for token in template.after:
            add(token, -1, self.tokenizer.role(token, first=not ids), len(sides) - 1)
        kept = sorted({word for word in word_of if word >= 0})
        return Encoded(
            name,
            document.select([chunk.start + word for word in kept]),
            np.array(ids, dtype=np.int64),
            np.array(segments, dtype=np.int64),
            tuple(roles),
            tuple(kept.index(word) if word >= 0 else -1 for word in word_of),
            tuple(map(self.tokenizer.readable, ids)),
            unknown=sum(token in self.tokenizer.unknown for tokens, _ in sides for token in tokens),
        )


@contextmanager
def one_by_one() -> Iterator[None]:
    """While the context is active, files are read line by line and sentences of CoNLL-U row by row."""
    with patch.object(files, "_whole", _lines), patch.object(conllu, "parse_sentence", parse_rows):
        yield


def _lines(stream: IO[bytes], path: Path) -> Iterator[list[Line]]:
    for number, raw in enumerate(iter(partial(stream.readline, files.LONGEST_LINE + 1), b""), start=1):
        if len(raw) > files.LONGEST_LINE:
            raise files._too_long(path, number)
        yield [files._decoded(number, (raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw).rstrip(b"\r\n"))]


def _together(words: Sequence[Word]) -> Iterator[list[int]]:
    """The positions of words without a space between them, one list per run."""
    run: list[int] = []
    for place in range(len(words)):
        if run and words[place - 1].space_after:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _place(run: Sequence[str], start: int, end: int) -> int | None:
    """The number of the word in a run to which the characters [start, end) belong; None if they belong to two."""
    ends = np.cumsum([len(form) for form in run])
    first = min(int(np.searchsorted(ends, start, side="right")), len(run) - 1)
    return first if end <= ends[first] or first == len(run) - 1 else None
