"""The answers of a model to texts, with and without some of its heads, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.document import Document, Sentence
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.answers import generated
from headscope.models.gates import gated, mean_contexts
from headscope.models.importance import importance, parts
from headscope.models.model import Model
from headscope.models.restart import why_not
from headscope.results.columns import StateColumns
from headscope.results.counts import Counts
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.stats.bootstrap import group_of
from headscope.stats.scores import Function, Score, make_score
from headscope.stats.translation import Bleu, Chrf
from headscope.studies.ablation.answers import answering, columns_of, scored
from headscope.studies.ablation.importance import replicated
from headscope.studies.ablation.spec import OWN, SCORES, AblationSpec
from headscope.studies.ablation.tables import Scores, Systems
from headscope.studies.base import layer_weights
from headscope.studies.execute import require_length
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    from headscope.studies.ablation.answers import Answering, Cut

    ScoreFunction = Callable[[Float64[np.ndarray, "example k"]], float]

# Texts per shard (results are saved after each shard), and padded tokens per batch before it is multiplied by the
# number of systems. Both are larger on a GPU, to keep it busy.
SHARD, GPU_SHARD = 8, 256
BATCH, GPU_BATCH = 2048, 32768
# Padded tokens of texts that are answered together on a CPU. Many systems fill a batch even with few texts, so that
# only texts of about the same length are put together, with little padding.
ALIKE = 64
_LAYER = {"upos": "parts of speech", "xpos": "parts of speech", "keyphrases": "keyphrases"}


class Trial:
    """A model, the texts it is tested on, and how its answers are scored. The settings must be complete (`completed`).

    With `score = "own"`, `function` is the score. It maps an array [example, number], whose numbers are named by
    `answers.columns_of`, to one number; higher is better.
    """

    def __init__(self, spec: AblationSpec, model: Model, corpus: Corpus, function: ScoreFunction | None = None) -> None:
        self.spec, self.model, self._function = spec, model, function
        self.systems = Systems(model.layout, spec.parts)
        gpu = model.device.type != "cpu"
        self._shard = GPU_SHARD if gpu else SHARD
        self.batch_tokens = spec.batch_tokens or (GPU_BATCH if gpu else BATCH)
        self._together = self.batch_tokens if gpu or spec.batch_tokens is not None else ALIKE
        self.counts = Counts()
        self.texts = read_texts(spec, model, corpus, self.counts)
        self._place = {text.id: place for place, text in enumerate(self.texts)}
        self._answer = self._answering()

    def _answering(self) -> Answering:
        replace = mean_contexts(self.model, batches(self.texts, self.batch_tokens)) if self.spec.how == "mean" else None
        if self.spec.score in SCORES["translation"]:
            return translating(self.model, self.spec.score or "", self.spec.beams, replace)
        return answering(self.model, self.spec.mask_share, self.spec.seed, replace, 2 * self.batch_tokens)

    def shards(self, texts: Sequence[Encoded]) -> list[Sequence[Encoded]]:
        """The texts in shards; results are saved after each shard."""
        return [texts[start : start + self._shard] for start in range(0, len(texts), self._shard)]

    @cached_property
    def has_halves(self) -> bool:
        """Whether there are documents in both halves, one to order heads by and one to test the order on."""
        return len({group_of(text.document, 2) for text in self.texts}) == 2

    def ordering_texts(self) -> list[Encoded]:
        """The texts of the half of the documents by which heads are ordered; all texts if there is only one half."""
        return [text for text in self.texts if not self.has_halves or group_of(text.document, 2) == 0]

    def testing_texts(self, texts: Sequence[Encoded]) -> list[Encoded]:
        """The texts of the other half of the documents, on which orders are tested; all texts if there is only one
        half.
        """
        return [text for text in texts if not self.has_halves or group_of(text.document, 2) == 1]

    @cached_property
    def whole_passes(self) -> str | None:
        """Why each set of gates takes a pass through all layers; None if it takes less, or a separate search."""
        return None if self.spec.score in SCORES["translation"] else why_not(self.model)

    def passes(self, cuts: Sequence[Cut]) -> list[float]:
        """The work of the answers under each cut, in passes through all layers: the share of layers from its first gate
        on, and the output layer.
        """
        whole = self.spec.score in SCORES["translation"] or self.whole_passes is not None
        sites = len(self.model.sites)
        return [self.output_cost + (1.0 if whole or not cut else 1 - min(cut) / sites) for cut in cuts]

    @cached_property
    def output_cost(self) -> float:
        """The work of the output layer of a language model, in passes through all layers: with a large vocabulary, half
        a pass.
        """
        layer = None if self.model.whole is None else self.model.whole.get_output_embeddings()
        if self.model.objective not in ("masked", "causal") or layer is None:
            return 0.0
        share = self.spec.mask_share if self.model.objective == "masked" else 1.0
        weights: int = sum(weight.numel() for weight in layer.parameters())
        return share * weights / layer_weights(self.model.network)

    def answer_systems(self, texts: Sequence[Encoded], kept: StateColumns, progress: Callable[[float], None] | None = None) -> None:
        """Answer texts with the whole model and with every system that changes one layer; also compute the gradients of
        gates, if they are needed.

        The results are added to `kept`. `progress` is called with the share of the texts that is answered.
        """
        cuts = self.systems.cuts()
        for batch, batch_progress in self._batches(texts, progress):
            self._add_answers(kept, batch, cuts, batch_progress)
            kept.add("place", [self._place[text.id] for text in batch])
            if {"importance", "pruning"} & {*self.spec.parts}:
                slopes = importance(self.model, batch, self.batch_tokens, share=self.spec.mask_share, key=f"{self.spec.seed}/0")
                for name in ("slopes", "sizes", "tokens"):
                    kept.add(name, getattr(slopes, name))

    def answer_cuts(self, texts: Sequence[Encoded], cuts: Sequence[Cut], progress: Callable[[float], None] | None = None) -> StateColumns:
        """The answers to texts of the whole model, and under each cut."""
        kept = StateColumns()
        for batch, batch_progress in self._batches(texts, progress):
            self._add_answers(kept, batch, cuts, batch_progress)
        return kept

    def _batches(
        self, texts: Sequence[Encoded], progress: Callable[[float], None] | None
    ) -> Iterator[tuple[Sequence[Encoded], Callable[[float], None]]]:
        """Texts that are answered together, and a function to call with the share of the batch that is done."""
        whole, before = sum(map(len, texts)), 0
        for batch in batches(texts, self._together):
            size = sum(map(len, batch))

            def batch_progress(share: float, before: int = before, size: int = size) -> None:
                if progress is not None:
                    progress((before + share * size) / whole)

            yield batch, batch_progress
            before += size

    def _add_answers(self, kept: StateColumns, batch: Sequence[Encoded], cuts: Sequence[Cut], progress: Callable[[float], None]) -> None:
        systems: list[Cut] = [{}, *cuts]
        passes = np.array(self.passes(systems))
        done = np.zeros(len(systems), dtype=bool)

        def answered(number: int) -> None:
            done[number] = True
            progress(float(passes[done].sum() / passes.sum()))

        answers = self._answer(batch, systems, answered)
        kept.add_words("document", [text.document for text in batch])
        kept.add("base", answers[0])
        kept.add("systems", answers[1:].swapaxes(0, 1))

    def statistics(self, table: Float64[np.ndarray, "*system example k"]) -> tuple[Score, Float64[np.ndarray, "*system example s"]]:
        """The score, and its statistics for each example."""
        if self.spec.score in SCORES["translation"]:
            return translation_score(self.spec.score or ""), table
        if self._function is not None:
            return Function(self._function, columns_of(self.model), OWN), table
        return scored(self.spec.score or "", table, self.model)

    def scores(self, kept: StateColumns) -> Scores:
        """The answers with everything that is needed to score them."""
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

    def importance(self, kept: StateColumns, some: np.ndarray, replicates: int) -> Float64[np.ndarray, "replicate+1 head"]:
        """I_h on some examples, and in each replicate of their documents."""
        spec = self.spec
        order = np.flatnonzero(some)[np.argsort(kept.numbers("place")[some])]  # as in the corpus, in whatever order they were answered
        slopes, sizes, tokens = (kept.numbers(name)[order] for name in ("slopes", "sizes", "tokens"))
        sums, weights = parts(slopes, sizes, tokens, spec.abs_over, spec.batch_texts)
        documents = kept.words("document")
        names = [f"batch {number}" for number in range(len(sums))] if spec.abs_over == "batch" else [documents[place] for place in order]
        return replicated(sums, weights, self.model.layout, names, spec.normalise, replicates, spec.seed)


def read_texts(spec: AblationSpec, model: Model, corpus: Corpus, counts: Counts) -> list[Encoded]:
    """The texts with something to predict, in corpus order; they and the omitted texts are counted in `counts`."""
    encoder = Encoder(
        model.tokenizer,
        unit=spec.unit or "sentence",
        max_length=spec.max_length,
        overlong="truncate" if model.objective in ("classes", "tags") else "drop",
        decoder_start=model.decoder_start,
        labelled=model.objective == "classes",
        tags=spec.tags,
    )
    dropped = counts.dropped
    documents = _with_keyphrases(corpus, dropped) if spec.tags == "keyphrases" else corpus
    texts = []
    for text in picked(encoder.texts(documents, dropped), spec.limit, seed=spec.seed, tally=dropped, corpus=corpus):
        if model.predicts(text):
            counts.add(text)
            texts.append(text)
        else:
            dropped.add("texts in which there is nothing to predict", text.id)
    dropped.update(corpus.skipped)
    if not texts:
        raise RunError(f"nothing to ablate on: no text is left of {', '.join(spec.corpus)}", "; ".join(dropped.lines()))
    return texts


def _with_keyphrases(corpus: Corpus, dropped: Tally) -> Iterator[Document]:
    """The documents that have a keyphrase."""
    for document in corpus:
        if {*phrase_tags(document)} - {OUTSIDE}:
            yield document
        else:
            dropped.add("texts without a keyphrase skipped", document.id)


def reference(text: Encoded) -> str:
    """The reference translation of a text."""
    return Sentence(text.target.words).text if text.target is not None else ""


def translating(model: Model, name: str, beams: int = 5, replace: Mapping[int, Float[torch.Tensor, "head d"]] | None = None) -> Answering:
    """A function that translates texts under each cut and counts for a score; every cut takes a separate search."""

    def answer(
        texts: Sequence[Encoded], cuts: Sequence[Cut], batch_progress: Callable[[int], None]
    ) -> Float64[np.ndarray, "cut example k"]:
        score = make_score(name, references=[reference(text) for text in texts])
        assert isinstance(score, Bleu | Chrf)
        statistics = []
        for number, cut in enumerate(cuts):
            gates = {site: torch.from_numpy(np.asarray(gate, dtype=np.float32)).to(model.device) for site, gate in cut.items()}
            with gated(model, gates, replace):
                statistics.append(score.statistics(generated(model, texts, beams)))
            batch_progress(number)
        return np.stack(statistics)

    return answer


def translation_score(name: str) -> Score:
    """The score of the counts of `translating`, which already contain the references."""
    return make_score(name, references=["."])


def completed(spec: AblationSpec, model: Model, corpus: Corpus, function: bool = False) -> AblationSpec:
    """The complete settings, or an error if this model cannot be studied with them.

    `function` says whether a user's function is the score.
    """
    if model.objective is None or model.objective not in SCORES:
        raise RunError(f"{spec.model} was loaded without its prediction head", "Load it with head=True")
    if (spec.score == OWN) != function:
        raise RunError('score="own" needs a function, and a function needs score="own"', "Give both")
    require_length(model, spec)
    if model.objective == "classes" and not corpus.layers({"labels"}):
        problem = f"{spec.model} is a classifier, which is scored on labels, and {', '.join(spec.corpus)} has none"
        raise RunError(problem, "Use a corpus with a label for each text (JSON lines or a table)")
    tags = spec.tags or model.tagging
    if spec.tags is not None and (model.tagging is None or (spec.tags == "keyphrases") != (model.tagging == "keyphrases")):
        raise RunError(f"{spec.model} does not tag words by {spec.tags}", "Omit --tags, or use a model that was trained to do so")
    if tags is not None and not corpus.layers({_LAYER[tags]}):
        problem = f"{spec.model} tags words by {tags}, and {', '.join(spec.corpus)} has no {_LAYER[tags]}"
        raise RunError(problem, "Use another corpus, or --tags")
    if spec.run is not None:  # better found now than after the first pass
        results = Results.open_run(Path(spec.run))
        for name in spec.by:
            by_head(results, name.removeprefix("-"), model.layout)
    return spec.resolved(model.objective, model.encoder_decoder, corpus.pairs, tags)
