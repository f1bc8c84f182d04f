"""The texts of a corpus that two models both read, and the words that both see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headscope.core.document import Document
from headscope.core.heads import Kind
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.map_memory import SIDES
from headscope.errors import RunError
from headscope.measures.base import Level
from headscope.results.counts import Counts


class Names(NamedTuple):
    """The names of the two models."""

    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Shared:
    """One text as the input of each of two models.

    `places` are, for each model, the places of the shared rows and columns among its words (or tokens): number k of one
    model is the same word as number k of the other.
    """

    inputs: tuple[Encoded, Encoded]
    places: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def document(self) -> str:
        """The id of the text's document."""
        return self.inputs[0].document

    @property
    def size(self) -> int:
        """The number of rows that are compared, and of columns."""
        return len(self.places[0])

    @property
    def cost(self) -> int:
        """Tokens of the longer input, by which batches are balanced."""
        return max(text.cost for text in self.inputs)


@dataclass
class Matcher:
    """A reader of a corpus with the encoders of two models. `counts` are those of the texts of each model."""

    encoders: tuple[Encoder, Encoder]
    kinds: tuple[Kind, Kind]
    level: Level
    names: Names
    counts: tuple[Counts, Counts] = field(default_factory=lambda: (Counts(), Counts()))

    @property
    def dropped(self) -> Tally:
        """What either model skips, and what only one of them reads; counted with the texts of the first."""
        return self.counts[0].dropped

    def texts(self, corpus: Corpus) -> Iterator[Shared]:
        """The texts that both models read, in the order of the corpus."""
        for document in corpus:
            for shared in self._matched(document):
                for counts, text in zip(self.counts, shared.inputs, strict=True):
                    counts.add(text)
                yield shared

    def _matched(self, document: Document) -> Iterator[Shared]:
        """Texts match if they are the same words of a document: their numbers differ after one model drops a text."""
        tallies = Tally(), Tally()
        read = [
            {text.annotation.positions: text for text in encoder.texts([document], tally)}
            for encoder, tally in zip(self.encoders, tallies, strict=True)
        ]
        for tally, name in zip(tallies, self.names, strict=True):
            for reason, n in tally.counts.items():
                self.dropped.add(f"{reason} by {name}", tally.first[reason], n, read=reason in tally.read)
        for place, name in enumerate(self.names):
            if alone := len(read[place].keys() - read[1 - place].keys()):
                self.dropped.add(f"texts skipped that only {name} reads so", document.id, alone)
        for positions, text in read[0].items():
            if positions in read[1]:
                yield from self._shared((text, read[1][positions]))

    def _shared(self, inputs: tuple[Encoded, Encoded]) -> Iterator[Shared]:
        sides = [rows_of(text, kind) for text, kind in zip(inputs, self.kinds, strict=True)]
        if self.level == "token":
            _require_same(sides, inputs[0].id, self.names)
            every = tuple(range(len(sides[0])))
            yield Shared(inputs, (every, every))
            return
        # The decoder of an encoder-decoder may never read the last word.
        common = sorted(set(sides[0].annotation.positions) & set(sides[1].annotation.positions))
        first, second = ({word: place for place, word in enumerate(side.annotation.positions)} for side in sides)
        if common:
            yield Shared(inputs, (tuple(map(first.__getitem__, common)), tuple(map(second.__getitem__, common))))
        else:
            self.dropped.add("texts skipped without a word that both models see", inputs[0].id)


def rows_of(text: Encoded, kind: Kind) -> Encoded:
    """The text whose tokens are the rows of this kind of self-attention: the text itself, or what a decoder reads."""
    return text.target if SIDES[kind][0] == "target" and text.target is not None else text


def _require_same(sides: Sequence[Encoded], where: str, names: Names) -> None:
    first, second = sides
    if (first.pieces, first.roles) == (second.pieces, second.roles):
        return
    at = next((at for at, (x, y) in enumerate(zip(first.pieces, second.pieces, strict=False)) if x != y), None)
    if at is not None:
        difference = f"token {at + 1} of {where} is {first.pieces[at]!r} in {names.a} and {second.pieces[at]!r} in {names.b}"
    else:
        difference = f"{where} has {len(first)} tokens in {names.a} and {len(second)} in {names.b}, or tokens of other roles"
    raise RunError(f"the two models do not read the same tokens: {difference}", "Compare words: --level word")
