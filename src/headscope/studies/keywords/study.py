"""A study of keywords: learnt from some documents, tried on others, head by head and together, beside plain baselines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.document import Document
from headscope.core.heads import HeadId
from headscope.corpora import Corpus, read
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import once, study_folder
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.columns import Kept
from headscope.results.counts import Counts
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.stats.bootstrap import group_of
from headscope.studies.keywords.curves import by_heads, by_threshold
from headscope.studies.keywords.features import Words, read_words
from headscope.studies.keywords.heads import head_table, observe
from headscope.studies.keywords.learning import LEVELS, SYSTEMS, TOGETHER, counts, tuned
from headscope.studies.keywords.peers import has_yake
from headscope.studies.keywords.spec import KeywordSpec
from headscope.studies.keywords.tables import curve_table, ranking_table, score_table, summary, weight_table
from headscope.studies.legacy import begin, finish, study_identity
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Bool

STUDY = "keywords"
TUNING = 7  # one group of so many is what thresholds are tuned on


def keywords(
    spec: KeywordSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    dev: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name."""
    folder = study_folder(out, resume, overwrite)
    corpus = corpus or read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    if dev is None and spec.dev:
        dev = read(*spec.dev, format=spec.format, on_error=spec.on_error)
    for one, names in ((corpus, spec.corpus), (dev, spec.dev)):
        if one is not None and not one.layers({"keyphrases"}):
            remedy = "Take JSON lines with text and keyphrases, or a folder of .txt and .key"
            raise RunError(f"there are no keyphrases in {', '.join(names)}", remedy)
    model = model or load(spec.model, device, spec.dtype)
    now = study_identity(spec, model, corpus, dev=dev)
    return once(folder, now, resume, overwrite, lambda: Study(spec, model, progress).run(corpus, dev, folder, now, resume))


class Study:
    """One study: its texts, its folds, and what is made of them."""

    def __init__(self, spec: KeywordSpec, model: Model, progress: Progress | None = None) -> None:
        self.spec, self.model, self.progress = spec, model, progress
        self.counts = Counts()
        self.systems = {name: learn for name, learn in SYSTEMS.items() if name != "yake" or has_yake()}

    @property
    def heads(self) -> list[HeadId]:
        """The heads whose attention words receive."""
        kinds = {site.kind for site in self.model.sites}
        return [head for head in self.model.layout.ids() if head.kind == ("encoder" if "encoder" in kinds else "decoder")]

    def words(self, corpus: Corpus, limit: int | None) -> Words:
        """The words of a corpus's documents, with what they receive."""
        length = min(self.spec.max_length, self.model.max_length or self.spec.max_length)
        start = self.model.decoder_start
        encoder = Encoder(self.model.tokenizer, "document", length, "truncate", decoder_start=start, tags="keyphrases")
        texts = list(self._with_phrases(encoder, corpus, limit))
        self.counts.dropped.update(corpus.skipped)
        if len({text.document for text in texts}) < 2:
            raise RunError(f"{len(texts)} documents have a keyphrase in their first {length} tokens", "Give at least two")
        return read_words(self.model, texts, self.spec.source, progress=self.progress)

    def _with_phrases(self, encoder: Encoder, corpus: Corpus, limit: int | None) -> Iterator[Encoded]:
        tally = self.counts.dropped
        for text in picked(encoder.texts(self._located(corpus), tally), limit, seed=self.spec.seed, tally=tally, corpus=corpus):
            if set(text.tags) <= {OUTSIDE}:
                self.counts.dropped.add("texts whose keyphrases are all cut off left out", text.id)
            else:
                self.counts.add(text)
                yield text

    def _located(self, corpus: Corpus) -> Iterator[Document]:
        for document in corpus:
            if set(phrase_tags(document)) <= {OUTSIDE}:
                self.counts.dropped.add("texts without a keyphrase in them left out", document.id)
            else:
                yield document

    def run(self, corpus: Corpus, dev: Corpus | None, folder: Folder | None, now: dict[str, Any], resume: bool) -> Results:
        """All folds, and the tables."""
        started = time.monotonic()
        spec = self.spec
        manifest = begin(STUDY, spec, now, self.model, folder)
        ledger = Ledger(folder, key(now), resume)
        words = self.words(corpus, spec.limit)
        other = self.words(dev, None) if dev is not None else None
        folds = [(words, other)] if other is not None else list(self.folds(words))
        for number, (learnt_from, held) in enumerate(folds):
            if not ledger.done(number):
                ledger.add(number, {"fold": self._fold(learnt_from, held).state, "whole": Kept().state})
        if not ledger.done(len(folds)):
            ledger.add(len(folds), {"fold": Kept().state, "whole": self.whole(words).state})
        assert ledger.merged is not None
        kept = Kept(ledger.merged["fold"])
        documents = kept.words("document")
        heads = head_table(kept, documents, self.heads, spec.replicates, spec.seed)
        counted = {name: kept.numbers(f"counts/{name}") for name in self.systems}
        scores = score_table(counted, documents, spec.replicates, spec.seed)
        by_size = np.concatenate([kept.numbers("curves/heads"), counted[TOGETHER][:, None]], 1)  # the last: all heads
        weights = {name: kept.numbers(f"weights/{name}") for name in self.systems if len(kept.numbers(f"weights/{name}"))}
        tables = {
            "summary": summary(scores, heads),
            "keywords_scores": scores,
            "keywords_heads": heads,
            "keywords_ranking": ranking_table(heads),
            "keywords_curves": curve_table(
                kept.numbers("curves/threshold"), by_size, len(self.heads), documents, spec.replicates, spec.seed
            ),
            "keywords_weights": weight_table(weights, self.heads),
        }
        how = f"learnt from {len(words.texts)} texts" + (f", tried on {len(documents)} others" if dev else f" in {len(folds)} folds")
        said = {
            "measures": {STUDY: {"source": spec.source}},
            "seconds": round(time.monotonic() - started, 3),
            "notes": [how] + ([] if has_yake() else ["YAKE is not installed and was left out: pip install yake"]),
        }
        return finish(manifest, tables, self.model, self.counts, ledger, ledger.merged, folder, said)

    def folds(self, words: Words) -> Iterator[tuple[Words, Words]]:
        """Documents in turn, by their names alone; each is tried once."""
        fold = np.array([group_of(f"{self.spec.seed}/{name}", self.spec.folds) for name in words.documents])
        if len(set(fold)) < 2:
            raise RunError(f"{len(words.texts)} documents all fall into one fold", "Give more documents, or a dev corpus")
        for number in sorted(set(fold)):
            yield words.some(fold != number), words.some(fold == number)

    def _fold(self, learnt_from: Words, held: Words) -> Kept:
        """Everything learnt from the one part, and tried on the other."""
        kept = Kept()
        kept.say("document", held.documents)
        observe(learnt_from, held, self.spec.penalty, kept)
        kept.add("curves/heads", by_heads(learnt_from, held, self.spec.penalty, self.tuning(learnt_from)))
        for name, learn in self.systems.items():
            cuts = tuned(learn, learnt_from, self.spec.penalty, self.tuning(learnt_from))
            found = learn(learnt_from, self.spec.penalty)
            scores = found.score(held)
            if name == TOGETHER:
                kept.add("curves/threshold", by_threshold(scores, held))
            counted = [counts(scores, held, level, cut) for level, cut in zip(LEVELS, cuts, strict=True)]
            kept.add(f"counts/{name}", np.stack(counted, 1))
            if found.weights is not None:
                kept.add(f"weights/{name}", found.weights[None])
        return kept

    def tuning(self, words: Words) -> Bool[np.ndarray, "text"]:
        """The texts that thresholds are tuned on, by their names alone."""
        return np.array([group_of(f"tuning/{name}", TUNING) == 0 for name in words.documents], dtype=bool)

    def whole(self, words: Words) -> Kept:
        """What a finder of keywords needs, learnt from all documents: of all heads together."""
        learn = SYSTEMS[TOGETHER]
        found = learn(words, self.spec.penalty)
        assert found.scale is not None
        assert found.fit is not None
        kept = Kept()
        kept.add("mean", found.scale.mean)
        kept.add("spread", found.scale.spread)
        kept.add("coefficients", found.fit.coefficients)
        kept.add("intercept", [found.fit.intercept])
        kept.add("cuts", tuned(learn, words, self.spec.penalty, self.tuning(words)))
        kept.add("lengths", [len(text) for text in words.texts])
        return kept
