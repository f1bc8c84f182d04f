"""The texts of a study, sentences or passages around pairs of words, and how much work each is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from headscope.core.annotation import NONE
from headscope.core.document import Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.jacobian.costs import BlockCosts, costs_of
from headscope.models.jacobian.products import Pairs
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.base import layer_weights
from headscope.studies.flow.items import Context, Passage, alternating, draw
from headscope.studies.flow.spec import FlowSpec, Part
from headscope.studies.picking import picked

PRODUCT = 3  # cost of a product with the Jacobian of a layer by torch's autograd, in passes of a token
SINGULAR = 20  # cost of a largest singular value, in products of matrices


class FlowText(NamedTuple):
    """A text, the parts of the study that use it, and the pairs in it."""

    text: Encoded
    parts: tuple[Part, ...]
    passage: Passage | None = None

    def pairs(self) -> Pairs | None:
        """The tokens between which flow is measured: the nouns and pronouns of a passage; None for all tokens."""
        if self.passage is None:
            return None
        place = {position: number for number, position in enumerate(self.text.annotation.positions)}

        def tokens(words: set[int]) -> list[int]:
            chosen = {place[word] for word in words if word in place}
            return [token for token, word in enumerate(self.text.word_of) if word in chosen]

        asked = Pairs(tokens({pair.noun for pair in self.passage.pairs}), tokens({pair.pronoun for pair in self.passage.pairs}))
        return asked if all(asked) else None  # no pair is left, which is counted elsewhere


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


@dataclass(frozen=True)
class FlowCosts:
    """The costs of the texts of a study, in multiplications. A layer has `weights` weights; `block` is None if the
    structure of layers is not known, and `causal` says that tokens influence only later ones.
    """

    layers: int
    weights: float
    block: BlockCosts | None
    causal: bool

    @classmethod
    def of(cls, model: Model) -> FlowCosts:
        """The costs for a model."""
        kind = model.sites[0].kind
        layers = sum(site.kind == kind for site in model.sites)
        return cls(layers, layer_weights(model.network) / layers, costs_of(model.network), kind == "decoder")

    def by_measure(self, job: FlowText, spec: FlowSpec) -> dict[str, float]:
        """The cost of a text by measure. The cost that all measures share is under ""."""
        tokens = len(job.text)
        pairs = job.pairs() or Pairs(range(tokens), range(tokens))
        block = None if spec.mode == "train" else self.block
        costs = {"": 2 * self.weights * tokens}
        if "G" in spec.measures:
            costs["G"] = len(pairs.targets) * self._target(spec, None if spec.method == "sketch" else block, tokens)
        if "G*" in spec.measures:
            beside = "G" in costs and spec.method != "sketch" and job.pairs() is None
            costs["G*"] = self._star(spec, block, tokens, pairs, beside)
        if "maxflow" in spec.measures:
            costs["maxflow"] = self.weights * tokens**4 / 1e4
        return costs

    def _target(self, spec: FlowSpec, block: BlockCosts | None, tokens: int) -> float:
        """The cost of G for one target."""
        if block is None:
            return _vectors(spec, self.weights) * tokens * PRODUCT * self.weights
        if spec.norm in ("sum", "mean"):
            return 4 * self.weights
        return block.matrices + block.exact(tokens) + (tokens * SINGULAR * block.size**3 if spec.norm == "spectral" else 0.0)

    def _star(self, spec: FlowSpec, block: BlockCosts | None, tokens: int, pairs: Pairs, beside: bool) -> float:
        """The cost of G* for a text; `beside` says that G already makes the matrices of each token, so that rows are
        cheap.
        """
        back = spec.norm in ("sum", "mean")
        rows = tokens * (self.layers + 1) / 2 if back else len(pairs.sources) * _vectors(spec, self.weights)
        if block is None:
            return rows * tokens * PRODUCT * self.weights
        causal = self.causal and not back
        last = 1 + max(*pairs.targets, *pairs.sources)
        reached = sum(last - source for source in pairs.sources) / len(pairs.sources) if causal else tokens
        made = not beside and block.worthwhile(rows / 2 if causal else rows)
        return rows * reached * block.row(tokens, beside or made) + made * tokens * block.matrices


def _vectors(spec: FlowSpec, weights: float) -> int:
    """The number of vectors to multiply with a Jacobian; if exact, one per feature, estimated from the weights."""
    if spec.norm in ("sum", "mean"):
        return 1
    return spec.probes if spec.norm in ("frobenius", None) and spec.method != "exact" else round((weights / 12) ** 0.5)
