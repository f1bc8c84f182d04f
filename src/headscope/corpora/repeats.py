"""Random token sequences, each written twice: the corpus `repeats:50x32@0` (docs/sequences.md).

A sequence is drawn without a model. Its words are numbers; encoding turns them into tokens of the model's vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from headscope.core.document import Document, DrawnWord, Sentence
from headscope.core.hashing import hash64
from headscope.corpora.corpus import Corpus
from headscope.corpora.inputs import REPEATS
from headscope.errors import HeadscopeError

COUNT = 32  # sequences, if the name gives no count
_NAME = re.compile(r"repeats:([0-9]{1,6})(?:x([0-9]{1,6}))?(?:@([0-9]{1,9}))?")


def repeats(paths: Iterable[str | Path]) -> Corpus | None:
    """The corpus `repeats:LENGTH`, `repeats:LENGTHxCOUNT` or either with `@SEED`; None for file names."""
    names = [str(path) for path in paths]
    if not any(name.startswith(REPEATS) for name in names):
        return None
    remedy = "Write repeats:50 for 32 sequences of 50 tokens, each twice; repeats:50x100 for 100; repeats:50x100@7 for another draw"
    if len(names) > 1:
        raise HeadscopeError(f"{', '.join(names)}: repeated sequences must be the only corpus", "Name one corpus only")
    match = _NAME.fullmatch(names[0])
    numbers = match.groups() if match is not None else (0, 0, 0)
    length, count, seed = (int(number or default) for number, default in zip(numbers, (0, COUNT, 0), strict=True))
    if length < 2 or count < 1:
        raise HeadscopeError(f"{names[0]!r} does not give the length and the number of sequences", remedy)
    corpus = Corpus.of(_sequence(length, number, seed) for number in range(1, count + 1))
    corpus.names = (names[0],)
    return corpus


def _sequence(length: int, number: int, seed: int) -> Document:
    """One sequence as a document of one sentence: all its words, then all of them again."""
    words = tuple(DrawnWord(f"#{place}", draw=hash64("repeats", seed, number, place)) for place in range(1, length + 1))
    return Document(f"sequence_{number}", (Sentence(words + words),))
