"""The texts of a study, sentences or passages around pairs of words, and how much work each is."""

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

FEATURES = 4.8  # of a state, that make one pass of a target's exact Jacobian: products of matrices against one of a vector


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

        asked = Pairs(tokens({pair.noun for pair in self.passage.pairs}), tokens({pair.pronoun for pair in self.passage.pairs}))
        return asked if all(asked) else None  # nothing is left of the pairs, which is counted elsewhere


class Jobs:
    """All texts in the order of the corpus, sentences first."""

    def __init__(self, corpus: Corpus, model: Model, spec: FlowSpec) -> None:
        self.counts = Counts()
        self._corpus, self._model, self._spec = corpus, model, spec
        self._parts: tuple[Part, ...] = tuple(part for part in spec.parts or () if part != "coreference")

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
        texts = self._encoder("sentence").texts(self._corpus, self.counts.dropped)
        pick, seed, tally = self._spec.pick or "random", self._spec.seed, self.counts.dropped
        for text in picked(texts, self._spec.limit, pick, seed, tally=tally, corpus=self._corpus):
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
        for passage in passages:
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


def work(job: FlowText, spec: FlowSpec, size: int) -> dict[str, float]:
    """The work of a text by measure, in passes of a token through a layer with states of so many features: comparable
    within one model and study. What all measures take is under "".
    """
    tokens = len(job.text)
    pairs = job.pairs()
    sources, targets = (tokens, tokens) if pairs is None else (len(pairs.sources), len(pairs.targets))
    frobenius = spec.norm in ("frobenius", None)
    costs = {"": 2.0 * tokens}
    if "G" in spec.measures:
        costs["G"] = targets * (size / FEATURES if frobenius else 4.0)
    if "G*" in spec.measures:
        rows = sources * spec.probes if frobenius else tokens
        shared = "G" in costs and frobenius and pairs is None  # the matrices of each token, after which rows are cheap
        known = shared or 14 * rows > 10 * size  # as in `linear.worthwhile`
        costs["G*"] = tokens * ((0.0 if shared else 0.7 * size / FEATURES) + rows * 0.2 if known else rows * 0.6)
    if "maxflow" in spec.measures:
        costs["maxflow"] = tokens**4 / 1e4
    return costs
