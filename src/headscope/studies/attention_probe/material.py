"""The data of attention probes: sentences with trees, and the vectors of their words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.annotation import NONE, ROOT
from headscope.core.hashing import digest
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.attention_probe.lexicon import Lexicon, lexicon
from headscope.studies.attention_probe.maps import ParsedSentence
from headscope.studies.attention_probe.spec import AttentionProbeSpec
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Bool, Int64

STOPPING = 0.1  # share of the training documents that is held out for early stopping


@dataclass(frozen=True)
class AttentionProbeData:
    """Texts to learn from, texts for early stopping, texts to test on, and the lexicon of all."""

    learned: list[Encoded]
    stopping: list[Encoded]
    tried: list[Encoded]
    lexicon: Lexicon
    counts: Counts

    @classmethod
    def of(cls, spec: AttentionProbeSpec, model: Model, corpus: Corpus, dev: Corpus | None) -> AttentionProbeData:
        """The texts of the corpora; without a corpus to test on, some documents of the other are held out."""
        counts = Counts()
        learned = _texts(spec, model, corpus, counts, spec.limit)
        if dev is not None:
            tried = _texts(spec, model, dev, counts, spec.limit_dev)
        else:
            learned, tried = _split_off(learned, spec.held_out, "tried")
        if not learned or not tried:
            what = "to learn from" if not learned else "to test probes on"
            remedy = "Use more texts, or name a separate corpus with --dev" if dev is None else "; ".join(counts.dropped.lines())
            raise RunError(f"there is no sentence with a tree {what}", remedy)
        learned, stopping = _split_off(learned, STOPPING, "stopping") if spec.patience else (learned, [])
        if not learned:
            raise RunError("no sentence is left for early stopping", "Use more texts, or omit --patience")
        vectors = Path(spec.vectors) if spec.vectors is not None else None
        words = lexicon(spec.words, vectors, learned, [*stopping, *tried], model, spec.unknown or "zeros")
        return cls(learned, stopping, tried, words, counts)

    def trees(self, texts: list[Encoded]) -> list[ParsedSentence]:
        """The sentences as probes read them."""
        return [ParsedSentence.of(text, self.lexicon.of(text)) for text in texts]

    def scored(self) -> list[Bool[np.ndarray, "word"]]:
        """For each text to test on, which words have a governor."""
        return [np.array([head != NONE for head in text.annotation.heads]) for text in self.tried]

    def gold(self) -> list[Int64[np.ndarray, "word"]]:
        """For each text to test on, the governors among the candidates: the root first, then the words."""
        return [np.array([0 if head == ROOT else head + 1 for head in text.annotation.heads], dtype=np.int64) for text in self.tried]


def _texts(spec: AttentionProbeSpec, model: Model, corpus: Corpus, counts: Counts, limit: int | None) -> list[Encoded]:
    encoder = Encoder(model.tokenizer, unit="sentence", max_length=spec.max_length, decoder_start=model.decoder_start)
    texts, tally = [], counts.dropped
    for text in picked(encoder.texts(corpus, tally), limit, seed=spec.seed, tally=tally, corpus=corpus):
        if any(head != NONE for head in text.annotation.heads):
            counts.add(text)
            texts.append(text)
        else:
            counts.dropped.add("sentences without a tree", text.id)
    counts.dropped.update(corpus.skipped)
    return texts


def _split_off(texts: list[Encoded], share: float, what: str) -> tuple[list[Encoded], list[Encoded]]:
    """Texts without a share of the documents, drawn by name, and the texts of that share. A single document is split
    by sentences.
    """
    single = len({text.document for text in texts}) < 2
    units = {text.id if single else text.document for text in texts}
    drawn = sorted(units, key=lambda name: digest(what, name))[: math.ceil(share * len(units))]
    out = frozenset(drawn)
    apart = [(text.id if single else text.document) in out for text in texts]
    return [text for text, gone in zip(texts, apart, strict=True) if not gone], [
        text for text, gone in zip(texts, apart, strict=True) if gone
    ]
