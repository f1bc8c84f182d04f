"""The work of a study of keywords: learnt from some documents, tested on others, with baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.core.state import States
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.keywords.curves import by_heads, by_threshold
from headscope.studies.keywords.features import Words, read_words, texts_with_keyphrases
from headscope.studies.keywords.finder import kept_for_finder
from headscope.studies.keywords.heads import head_table, observe
from headscope.studies.keywords.learning import LEVELS, SYSTEMS, TOGETHER, counts, folds_of, has_yake, tuned, tuning
from headscope.studies.keywords.spec import KeywordSpec
from headscope.studies.keywords.tables import curve_table, ranking_table, score_table, summary, weight_table

Fold = tuple[Words, Words | None]  # to learn from and to test on; None: to find keywords of any text later


READING, LAST = 0.5, 0.3  # the costs of reading, and of learning from all documents, for each fold and as a fold


class KeywordWork(Work):
    """One study of keywords. A job is a fold; the last one learns from all documents."""

    spec: KeywordSpec

    def __init__(self, spec: KeywordSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        self.systems = {name: learn for name, learn in SYSTEMS.items() if name != "yake" or has_yake()}

    @property
    def heads(self) -> list[HeadId]:
        """The heads whose attention words receive."""
        kinds = {site.kind for site in self.model.sites}
        return [head for head in self.model.layout.ids() if head.kind == ("encoder" if "encoder" in kinds else "decoder")]

    def prepare(self) -> None:
        """Find the texts."""
        dev = self.context.corpora["dev"]
        self._texts = [self._found(self.context.corpus, self.spec.limit), self._found(dev, None) if dev is not None else []]

    def _found(self, corpus: Corpus, limit: int | None) -> list[Encoded]:
        return texts_with_keyphrases(corpus, self.model, self.spec, limit, self.counts)

    def costs(self) -> list[float]:
        """Costs: reading is part of the first fold, the other folds cost the same, and the last job less."""
        folds = 1 if self._texts[1] else self.spec.folds
        return [READING * folds + 1.0, *[1.0] * (folds - 1), LAST]

    def jobs(self, merged: Callable[[], States]) -> Iterator[Fold]:
        """The folds, and then all documents; before, the attention that all words receive is read."""
        every = sum(map(len, self._texts))

        def words(texts: Sequence[Encoded], before: int) -> Words:
            def report(share: float | None, texts: int, tokens: int) -> None:
                self.meter.update(READING / (1 + READING) * (before + texts) / every, before + texts, tokens)

            return read_words(self.model, texts, self.spec.source, progress=report)

        texts, tried = self._texts
        self.words = words(texts, 0)
        self.folds = [(self.words, words(tried, len(texts)))] if tried else [*folds_of(self.words, self.spec.folds, self.spec.seed)]
        yield from self.folds
        yield self.words, None

    def do(self, job: Fold) -> States:
        """The results on one part of what is learnt from the other."""
        learnt_from, held = job
        if held is None:
            return {"fold": StateColumns().state, "whole": kept_for_finder(learnt_from, self.spec.penalty).state}
        return {"fold": self._fold(learnt_from, held).state, "whole": StateColumns().state}

    def _fold(self, learnt_from: Words, held: Words) -> StateColumns:
        kept = StateColumns()
        kept.add_words("document", held.documents)
        observe(learnt_from, held, self.spec.penalty, kept)
        kept.add("curves/heads", by_heads(learnt_from, held, self.spec.penalty, tuning(learnt_from)))
        for name, learn in self.systems.items():
            cuts = tuned(learn, learnt_from, self.spec.penalty, tuning(learnt_from))
            learnt = learn(learnt_from, self.spec.penalty)
            scores = learnt.score(held)
            if name == TOGETHER:
                kept.add("curves/threshold", by_threshold(scores, held))
            counted = [counts(scores, held, level, cut) for level, cut in zip(LEVELS, cuts, strict=True)]
            kept.add(f"counts/{name}", np.stack(counted, 1))
            if learnt.weights is not None:
                kept.add(f"weights/{name}", learnt.weights[None])
        return kept

    def tables(self, states: States) -> dict[str, Table]:
        """The tables of heads, of systems, and of the weights of heads in systems."""
        spec, kept = self.spec, StateColumns(states["fold"])
        documents = kept.words("document")
        self._remark(len(documents))
        heads = head_table(kept, documents, self.heads, spec.replicates, spec.seed)
        counted = {name: kept.numbers(f"counts/{name}") for name in self.systems}
        scores = score_table(counted, documents, spec.replicates, spec.seed)
        by_size = np.concatenate([kept.numbers("curves/heads"), counted[TOGETHER][:, None]], 1)  # the last: all heads
        weights = {name: kept.numbers(f"weights/{name}") for name in self.systems if len(kept.numbers(f"weights/{name}"))}
        thresholds = kept.numbers("curves/threshold")
        return {
            "summary": summary(scores, heads),
            "keywords_scores": scores,
            "keywords_heads": heads,
            "keywords_ranking": ranking_table(heads),
            "keywords_curves": curve_table(thresholds, by_size, len(self.heads), documents, spec.replicates, spec.seed),
            "keywords_weights": weight_table(weights, self.heads),
        }

    def _remark(self, tried: int) -> None:
        """Add notes on what was learnt from, and what is missing."""
        how = f" in {len(self.folds)} folds" if self.context.corpora["dev"] is None else f", tested on {tried} others"
        self.notes.append(f"learnt from {len(self.words.texts)} texts{how}")
        if not has_yake():
            self.notes.append("YAKE was skipped, because it is not installed: pip install yake")

    def measured(self) -> dict[str, Any]:
        """The source of the attention that words receive."""
        return {"source": self.spec.source}
