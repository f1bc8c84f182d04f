"""Texts to try a model on, with and without some of its heads: which they are, how they are answered, and how that is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document
from headscope.corpora import Corpus
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.opening import require_length
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.gates import mean_contexts
from headscope.models.importance import importance, parts
from headscope.models.model import Model
from headscope.results.columns import Kept
from headscope.results.counts import Counts
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.stats.bootstrap import group_of
from headscope.stats.scores import Function, Score
from headscope.studies.ablation.answers import answering, columns_of, scored
from headscope.studies.ablation.importance import replicated
from headscope.studies.ablation.spec import OWN, SCORES, AblationSpec
from headscope.studies.ablation.systems import Systems
from headscope.studies.ablation.tables import Scores
from headscope.studies.ablation.translating import translating, translation_score
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.studies.ablation.answers import Answering, Cut

    Own = Callable[[Float64[np.ndarray, "example k"]], float]

# Texts that are answered before what was counted is written, and padded tokens of a batch before it is multiplied by systems. On a GPU
# both are larger: it wants to be kept busy.
SHARD, GPU_SHARD = 8, 256
BATCH, GPU_BATCH = 2048, 32768
_LAYER = {"upos": "parts of speech", "xpos": "parts of speech", "keyphrases": "keyphrases"}


def resolved(spec: AblationSpec, model: Model, corpus: Corpus) -> AblationSpec:
    """The settings with nothing left open, or an error if this model cannot be studied so."""
    if model.objective is None or model.objective not in SCORES:
        raise RunError(f"{spec.model} was loaded without what it predicts with", "Load it with head=True")
    require_length(model, spec.model, spec.max_length)
    if model.objective == "classes" and not corpus.layers({"labels"}):
        problem = f"{spec.model} is a classifier, whose score needs labels, and {', '.join(spec.corpus)} has none"
        raise RunError(problem, "Use a corpus with a label for each text (JSON lines or a table)")
    tags = spec.tags or model.tagging
    if spec.tags is not None and (model.tagging is None or (spec.tags == "keyphrases") != (model.tagging == "keyphrases")):
        raise RunError(f"{spec.model} does not tag words by {spec.tags}", "Leave out --tags, or use a model that was trained to do so")
    if tags is not None and not corpus.layers({_LAYER[tags]}):
        raise RunError(
            f"{spec.model} tags words by {tags}, and {', '.join(spec.corpus)} has no {_LAYER[tags]}", "Use another corpus, or --tags"
        )
    if spec.run is not None:  # better found now than after the first pass
        results = Results.open_run(Path(spec.run))
        for name in spec.by:
            by_head(results, name.removeprefix("-"), model.layout)
    found = spec.resolved(model.objective, model.encoder_decoder, corpus.pairs, tags)
    return found.model_copy(update={"dtype": model.dtype})


class Trial:
    """A model, its texts, and how they are answered."""

    def __init__(
        self, spec: AblationSpec, model: Model, corpus: Corpus, progress: Progress | None = None, function: Own | None = None
    ) -> None:
        self.spec, self.model, self.progress, self.function = spec, model, progress, function
        if (spec.score == OWN) != (function is not None):
            raise RunError("a score of your own and a function go together", 'Give score="own" and the function')
        self.counts = Counts()
        self.systems = Systems(model.layout, spec.parts)
        gpu = model.device.type != "cpu"
        self.shard = GPU_SHARD if gpu else SHARD
        self.batch = spec.batch_tokens or (GPU_BATCH if gpu else BATCH)
        self.texts = self._texts(corpus)
        self._place = {text.id: place for place, text in enumerate(self.texts)}
        self.counts.dropped.update(corpus.skipped)
        if not self.texts:
            raise RunError(f"nothing to ablate on: no text is left of {', '.join(spec.corpus)}", "; ".join(self.counts.dropped.lines()))
        self.answer = self._answering()

    @classmethod
    def of(cls, spec: AblationSpec, model: Model, corpus: Corpus, progress: Progress | None = None) -> Trial:
        """One whose settings may be open still."""
        return cls(resolved(spec, model, corpus), model, corpus, progress)

    def _texts(self, corpus: Corpus) -> list[Encoded]:
        spec, model = self.spec, self.model
        encoder = Encoder(
            model.tokenizer,
            unit=spec.unit or "sentence",
            max_length=spec.max_length,
            overlong="truncate" if model.objective in ("classes", "tags") else "drop",
            decoder_start=model.decoder_start,
            labelled=model.objective == "classes",
            tags=spec.tags,
        )
        found, tally = [], self.counts.dropped
        for text in picked(encoder.texts(self._documents(corpus), tally), spec.limit, seed=spec.seed, tally=tally, corpus=corpus):
            if model.predicts(text):
                self.counts.add(text)
                found.append(text)
            else:
                self.counts.dropped.add("texts in which there is nothing to predict", text.id)
        return found

    def _documents(self, corpus: Corpus) -> Iterator[Document]:
        """All documents but those in which there is no keyphrase to be found, where keyphrases are tagged."""
        for document in corpus:
            if self.spec.tags == "keyphrases" and not {*phrase_tags(document)} - {OUTSIDE}:
                self.counts.dropped.add("texts without a keyphrase in them left out", document.id)
            else:
                yield document

    def _answering(self) -> Answering:
        replace = mean_contexts(self.model, batches(self.texts, self.batch)) if self.spec.how == "mean" else None
        if self.spec.score in SCORES["translation"]:
            return translating(self.model, self.spec.score or "", self.spec.beams, replace)
        return answering(self.model, self.spec.mask_share, self.spec.seed, replace, 2 * self.batch)

    def statistics(self, table: Float64[np.ndarray, "*system example k"]) -> tuple[Score, Float64[np.ndarray, "*system example s"]]:
        """The score and its statistics."""
        if self.spec.score in SCORES["translation"]:
            return translation_score(self.spec.score or ""), table
        if self.function is not None:
            return Function(self.function, columns_of(self.model), OWN), table
        return scored(self.spec.score or "", table, self.model)

    @cached_property
    def halves(self) -> bool:
        """Whether there are documents in both halves, one to order heads by and one to try the order on."""
        return len({group_of(text.document, 2) for text in self.texts}) == 2

    def found_on(self) -> list[Encoded]:
        """The texts of the half of the documents that an order of heads is found on; all texts where there is one half alone."""
        return [text for text in self.texts if not self.halves or group_of(text.document, 2) == 0]

    def tried(self, texts: Sequence[Encoded]) -> list[Encoded]:
        """Those of the half of the documents that an order of heads is tried on, which is not the half that it was found on."""
        return [text for text in texts if not self.halves or group_of(text.document, 2) == 1]

    def single(self, texts: Sequence[Encoded], kept: Kept) -> Kept:
        """The texts answered by the model as it is, and by every system that changes one layer; and gradients of their gates."""
        cuts = self.systems.cuts()
        for batch in batches(texts, self.batch):
            found = self.answer(batch, [{}, *cuts])
            kept.say("document", [text.document for text in batch])
            kept.add("base", found[0])
            kept.add("systems", found[1:].swapaxes(0, 1))
            kept.add("place", [self._place[text.id] for text in batch])
            if self._weighs:
                slopes = importance(self.model, batch, self.batch, share=self.spec.mask_share, key=f"{self.spec.seed}/0")
                for name in ("slopes", "sizes", "tokens"):
                    kept.add(name, getattr(slopes, name))
        return kept

    @property
    def _weighs(self) -> bool:
        return bool({"importance", "pruning"} & {*self.spec.parts})

    def weighed(self) -> Kept:
        """The half of the documents that an order is found on, answered and differentiated."""
        some = self.found_on()
        kept = Kept()
        for start in range(0, len(some), self.shard):
            self.single(some[start : start + self.shard], kept)
            if self.progress is not None:
                seen = some[: start + self.shard]
                self.progress(len(seen) / len(some), len(seen), sum(map(len, seen)))
        return kept

    def answered(self, texts: Sequence[Encoded], cuts: Sequence[Cut]) -> Kept:
        """Texts answered by the model as it is, and under each cut."""
        kept = Kept()
        for batch in batches(texts, self.batch):
            found = self.answer(batch, [{}, *cuts])
            kept.say("document", [text.document for text in batch])
            kept.add("base", found[0])
            kept.add("systems", found[1:].swapaxes(0, 1))
        return kept

    def scores(self, kept: Kept) -> Scores:
        """What was answered, to be scored."""
        return Scores(
            self.systems,
            kept.numbers("base"),
            kept.numbers("systems").swapaxes(0, 1),
            kept.words("document"),
            self.statistics,
            self.spec.test,
            self.spec.replicates,
            self.spec.seed,
        )

    def importance(self, kept: Kept, some: np.ndarray, replicates: int) -> Float64[np.ndarray, "replicate+1 head"]:
        """I_h by some examples, and where their documents are drawn again."""
        spec = self.spec
        order = np.flatnonzero(some)[np.argsort(kept.numbers("place")[some])]  # as in the corpus, however they were worked out
        slopes, sizes, tokens = (kept.numbers(name)[order] for name in ("slopes", "sizes", "tokens"))
        found = parts(slopes, sizes, tokens, spec.abs_over, spec.batch_texts)
        documents = kept.words("document")
        names = [f"batch {n}" for n in range(len(found[0]))] if spec.abs_over == "batch" else [documents[place] for place in order]
        return replicated(*found, self.model.layout, names, spec.normalise, replicates, spec.seed)
