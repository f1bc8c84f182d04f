"""Texts with a short hidden fact and a question about it at the end: the corpus `needles:96x40`
(docs/retrieval.md).

The text is made of consecutive sentences of the sampler. The fact, the needle, is the sentence "The secret words of
Clara: marble lantern tunnel." The question repeats its beginning, "The secret words of Clara:", so that a language
model that continues as before gives the answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from headscope.core.document import PASSAGE, Document, Edge, Scalar, Sentence, Word
from headscope.core.hashing import hash64
from headscope.corpora.corpus import Corpus
from headscope.corpora.inputs import NEEDLES, SAMPLER, resolve
from headscope.errors import HeadscopeError

COUNT = 40  # texts, if the name gives no count
DEPTHS = (0, 25, 50, 75, 100)  # percent of the text before the needle, in turn
ANSWER = "answer"  # the metadata field with the right answer
SHORTEST = 24  # words of a text: needle and question have 15
_NAME = re.compile(r"needles:([0-9]{1,6})(?:x([0-9]{1,6}))?(?::([0-9]{1,3}(?:,[0-9]{1,3})*))?(?:@([0-9]{1,9}))?")
_REMEDY = (
    "Write needles:96 for 40 texts of up to 96 words; needles:96x100 for 100; needles:96x100:0,50,100 for needles at the start, in the "
    "middle and at the end; needles:96x100@7 for another draw"
)
_PEOPLE = "Anna Clara David Emma Frank Grace Henry Jack Karen Laura Martha Noah Oliver Peter Rose Simon Thomas Walter"
_THINGS = (
    "anchor apple arrow basket bottle bridge candle carpet castle chain cotton cradle curtain desert diamond engine falcon feather forest "
    "garden hammer harbor island jacket kettle ladder lantern lemon marble meadow mirror needle orange palace pepper pillow pocket ribbon "
    "saddle silver spoon temple tiger tunnel velvet violin wagon window winter yellow"
)


def needles(paths: Iterable[str | Path]) -> Corpus | None:
    """The corpus `needles:LENGTH`, with `xCOUNT`, `:DEPTHS` in percent and `@SEED` if they are given; None for file
    names.
    """
    names = [str(path) for path in paths]
    if not any(name.startswith(NEEDLES) for name in names):
        return None
    if len(names) > 1:
        raise HeadscopeError(f"{', '.join(names)}: texts with needles must be the only corpus", "Name one corpus only")
    match = _NAME.fullmatch(names[0])
    length, count, depths, seed = match.groups() if match is not None else ("0", None, None, None)
    percent = tuple(map(int, depths.split(","))) if depths else DEPTHS
    size, texts = int(length), int(count or COUNT)
    if size < SHORTEST or texts < 1 or max(percent) > 100:
        problem = f"{names[0]!r} does not give the length of texts ({SHORTEST} words or more), their number, and depths from 0 to 100"
        raise HeadscopeError(problem, _REMEDY)
    most = sum(map(len, _sentences())) // 2
    if size > most:
        raise HeadscopeError(f"{names[0]!r}: texts of {size} words cannot be made of the sampler", f"Use {most} words or fewer")
    corpus = Corpus.of(_document(size, percent[number % len(percent)], number + 1, int(seed or 0)) for number in range(texts))
    corpus.names = (names[0],)
    return corpus


@lru_cache(maxsize=1)
def _sentences() -> Sequence[tuple[Word, ...]]:
    """All sentences of the sampler, without annotation."""
    corpus = Corpus(resolve([SAMPLER]).paths, "conllu")
    return [
        tuple(Word(word.form, space_after=word.space_after) for word in sentence.words)
        for document in corpus
        for sentence in document.sentences
    ]


def _document(length: int, depth: int, number: int, seed: int) -> Document:
    """One text: sentences of the sampler, the needle among them at a depth, and the question."""
    rng = random.Random(hash64("needles", seed, number))
    person, things = rng.choice(_PEOPLE.split()), rng.sample(_THINGS.split(), 3)
    question = [*map(Word, ("The", "secret", "words", "of")), Word(person, space_after=False), Word(":")]
    needle = (*question, *map(Word, things[:-1]), Word(things[-1], space_after=False), Word("."))
    context = _context(length - len(needle) - len(question), rng)
    # The first sentence stays first: the first tokens of a text attract attention as a sink.
    before = max(1, round(depth / 100 * len(context)))
    parts = [*context[:before], needle, *context[before:], tuple(question)]
    start = sum(map(len, context[:before]))
    end = sum(map(len, parts))
    edge = Edge(PASSAGE, ("gold",), (end - len(question), end), (start, start + len(needle)))
    metadata: dict[str, Scalar] = {ANSWER: " ".join(things), "depth": depth}
    return Document(f"needle_{number}", tuple(map(Sentence, parts)), edges=(edge,), metadata=metadata)


def _context(room: int, rng: random.Random) -> list[tuple[Word, ...]]:
    """Consecutive sentences of at most `room` words in all, from a random place; the first is cut if it is longer."""
    every = _sentences()
    place = rng.randrange(len(every))
    chosen = [every[place][:room]]
    while len(chosen) < len(every):
        following = every[(place + len(chosen)) % len(every)]
        if sum(map(len, chosen)) + len(following) > room:
            break
        chosen.append(following)
    return chosen
