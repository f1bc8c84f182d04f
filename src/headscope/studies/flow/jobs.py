"""The texts of a study: sentences for parts of speech, trees and agreement, and passages around pairs of words for
coreference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headscope.core.annotation import NONE
from headscope.core.document import Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.jacobian.flow import Pairs
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.flow.items import Context, Passage, alternating, draw
from headscope.studies.flow.spec import FlowSpec, Part
from headscope.studies.picking import picked


class FlowText(NamedTuple):
    """A text, the parts of the study that look at it, and the pairs in it."""

    text: Encoded
    parts: tuple[Part, ...]
    passage: Passage | None = None

    def pairs(self) -> Pairs | None:
        """The tokens between which flow is asked for: the nouns and pronouns of a passage; None for all tokens."""
        if self.passage is None:
            return None
        place = {position: number for number, position in enumerate(self.text.annotation.positions)}

        def tokens(words: set[int]) -> list[int]:
            chosen = {place[word] for word in words if word in place}
            return [token for token, word in enumerate(self.text.word_of) if word in chosen]

        found = Pairs(tokens({pair.noun for pair in self.passage.pairs}), tokens({pair.pronoun for pair in self.passage.pairs}))
        return found if all(found) else None  # nothing is left of the pairs, which is counted elsewhere


class Jobs:
    """All texts in the order of the corpus, sentences first. `share` is how much of them has been handed out."""

    def __init__(self, corpus: Corpus, model: Model, spec: FlowSpec) -> None:
        self.counts = Counts()
        self.share: float | None = 0.0
        self._corpus, self._model, self._spec = corpus, model, spec
        self._parts: tuple[Part, ...] = tuple(part for part in spec.parts or () if part != "coreference")
        self._halves = bool(self._parts) + ("coreference" in (spec.parts or ()))

    def __iter__(self) -> Iterator[FlowText]:
        if self._parts:
            yield from self._sentences()
            self.counts.dropped.update(self._corpus.skipped)
        if "coreference" in (self._spec.parts or ()):
            yield from self._passages()
            if not self._parts:
                self.counts.dropped.update(self._corpus.skipped)

    def _encoder(self, unit: str) -> Encoder:
        return Encoder(
            self._model.tokenizer,
            unit=unit,  # type: ignore[arg-type]
            max_length=self._spec.max_length,
            decoder_start=self._model.decoder_start,
        )

    def _sentences(self) -> Iterator[FlowText]:
        limit = self._spec.limit
        texts = self._encoder("sentence").texts(self._corpus, self.counts.dropped)
        pick, seed, tally = self._spec.pick or "random", self._spec.seed, self.counts.dropped
        for number, text in enumerate(picked(texts, limit, pick, seed, tally=tally, corpus=self._corpus), 1):
            share = number / limit if limit else self._corpus.share
            self.share = None if share is None else share / self._halves
            self.counts.add(text)
            if parts := tuple(part for part in self._parts if self._fits(text, part)):
                yield FlowText(text, parts)

    def _fits(self, text: Encoded, part: Part) -> bool:
        lacking = {
            "classes": not any(word.upos for word in text.words),
            "trees": all(head == NONE for head in text.annotation.heads),
        }
        if lacking.get(part):
            self.counts.dropped.add(f"sentences without {'a tree' if part == 'trees' else 'parts of speech'}", text.id)
        return not lacking.get(part)

    def _passages(self) -> Iterator[FlowText]:
        passages = self._drawn()
        encoder = self._encoder("document")
        for number, passage in enumerate(passages):
            self.share = (self._halves - 1 + number / len(passages)) / self._halves
            for text in encoder.texts([passage.document], self.counts.dropped):
                self.counts.add(text)
                yield FlowText(text, ("coreference",), passage)

    def _drawn(self) -> list[Passage]:
        spec = self._spec
        if spec.draw == "alternating":
            return alternating(self._corpus, spec.items)
        tokenizer = self._model.tokenizer
        sizes: dict[Word, int] = {}

        def cost(word: Word) -> int:
            if word not in sizes:
                sizes[word] = len(tokenizer.tokens([word], Tally())[0])
            return sizes[word]

        limit = min(spec.context, spec.max_length - tokenizer.single.size)
        return draw(self._corpus, spec.items, Context(limit, cost), match=spec.draw == "matched", seed=spec.seed)
