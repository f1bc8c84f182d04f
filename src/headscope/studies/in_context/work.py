"""The work of a study of in-context learning: heads are chosen on some texts, and losses are measured on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from headscope.core.state import States
from headscope.corpora import Corpus
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.compute import ShardRunner
from headscope.engine.plan import Plan
from headscope.errors import RunError
from headscope.measures import Sequences
from headscope.models.answers import ask
from headscope.models.gates import mean_contexts
from headscope.models.prefix import ablated
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length
from headscope.studies.in_context.choice import HeadSets
from headscope.studies.in_context.places import ContextPlaces, is_drawn
from headscope.studies.in_context.spec import InContextSpec
from headscope.studies.in_context.tables import all_tables
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

BATCH, GPU_BATCH = 2048, 32768  # padded tokens of a batch
SHARD = 8  # texts per job; results are saved after each job


class InContextJob(NamedTuple):
    """Some texts: to choose heads on, or to score with and without heads."""

    chooses: bool
    texts: Sequence[Encoded]


class InContextWork(Work):
    """One study of in-context learning: heads are chosen first, then texts are scored in shards."""

    spec: InContextSpec

    def __init__(self, spec: InContextSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        if self.model.objective != "causal" or self.model.encoder_decoder:
            problem = f"{spec.model} does not predict each next token from those before it, so it has no in-context learning to measure"
            raise RunError(problem, "Use a language model such as mini-decoder or gpt2; a loaded one needs head=True")
        if max(spec.heads) >= self.model.layout.size:
            problem = f"{max(spec.heads)} heads are to be switched off, but {spec.model} has {self.model.layout.size}"
            raise RunError(problem, "Use smaller numbers with --heads")
        require_length(self.model, spec)
        self._measure = Sequences()
        self._plan = Plan.make([self._measure], self.model.sites)
        self._batch = spec.batch_tokens or (BATCH if self.model.device.type == "cpu" else GPU_BATCH)
        self._sets: HeadSets | None = None
        self._texts = self._tokens = 0

    def prepare(self) -> None:
        """Read the texts that heads are chosen on, and the texts that are scored, which must be others."""
        self._choosing = list(self._encoder().texts(self._corpus("chosen_on"), self.counts.dropped))
        corpus = self.context.corpus
        texts = list(self._encoder().texts(corpus, self.counts.dropped))
        drawn = bool(texts) and all(map(is_drawn, texts))  # the context of drawn sequences is their length
        self.places = ContextPlaces.of(self.spec, max(map(len, texts)) if drawn else self.spec.max_length, drawn)
        long = [text for text in texts if len(text) >= self.places.needed]
        if not long:
            raise RunError(*_too_short(texts, self.spec))
        for text in texts:
            if len(text) < self.places.needed:
                self.counts.dropped.add(f"texts skipped with fewer than {self.places.needed} tokens", text.id)
        self._scored = list(picked(long, self.spec.limit, seed=self.spec.seed, corpus=corpus))
        known = {text.ids.tobytes() for text in self._choosing}
        if both := [text.id for text in self._scored if text.ids.tobytes() in known]:
            problem = f"heads would be chosen and scored on the same texts: {both[0]} is in --corpus and in --chosen-on"
            raise RunError(problem, "Use other texts, such as --chosen-on repeats:50@1")
        for text in self._scored:
            self.counts.add(text)
        self.counts.dropped.update(corpus.skipped)

    def _corpus(self, name: str) -> Corpus:
        corpus = self.context.corpora[name]
        assert corpus is not None
        return corpus

    def _encoder(self) -> Encoder:
        return Encoder(self.model.tokenizer, unit="document", max_length=self.spec.max_length, overlong="window")

    def jobs(self, merged: Callable[[], States]) -> Iterator[InContextJob]:
        """One job with all texts to choose heads on, and then the texts to score in shards."""
        yield InContextJob(True, self._choosing)
        self._sets = self._choose(merged())
        for start in range(0, len(self._scored), SHARD):
            yield InContextJob(False, self._scored[start : start + SHARD])

    def _choose(self, states: States) -> HeadSets:
        spec = self.spec
        values, _ = self._measure.glimpse(states["sequences"], self._plan.layout)[spec.by]
        return HeadSets.choose(values, self._plan.layout, spec.heads, spec.draws, spec.seed)

    def costs(self) -> list[float]:
        """Tokens of the texts of each job, times the passes that they take."""
        passes = 1 + len(self.spec.heads) * (1 + self.spec.draws)
        scored = [self._scored[start : start + SHARD] for start in range(0, len(self._scored), SHARD)]
        return [self.reading_cost(self._choosing), *(passes * self.reading_cost(texts) for texts in scored)]

    def do(self, job: InContextJob) -> States:
        """The scores of heads, or the losses of texts under each set of gates."""
        kept = StateColumns()
        if job.chooses:
            runner = ShardRunner(self.model, self._plan, replicates=self.spec.replicates, seed=self.spec.seed, batch_tokens=self._batch)
            sequences = runner(job.texts)["sequences"]
        else:
            sequences = self._measure.start(self._plan.layout, self.spec.replicates, self.spec.seed)
            for batch in batches(job.texts, self._batch):
                self._score(batch, kept)
            self.skip(job)
        return {"sequences": sequences, "scored": kept.state}

    def skip(self, job: InContextJob) -> None:
        """Count the texts as done."""
        if not job.chooses:
            self._texts += len(job.texts)
            self._tokens += sum(map(len, job.texts))
            self.meter.update(1.0, self._texts, self._tokens)

    def _score(self, texts: Sequence[Encoded], kept: StateColumns) -> None:
        """Add the losses of each text under each set of gates, and its curves; random sets are averaged."""
        assert self._sets is not None
        losses = self._losses(texts)
        kept.add_words("document", [text.document for text in texts])
        kept.add("means", np.stack([self.places.means(text, own) for text, own in zip(texts, losses, strict=True)]))
        kept.add("curves", np.stack([self._curves(self.places.curve(own)) for own in losses]))

    def _losses(self, texts: Sequence[Encoded]) -> list[Float64[np.ndarray, "system token"]]:
        """For each text the loss of each token but the first under each set of gates."""
        assert self._sets is not None
        asked = ask(self.model, texts)
        labels = torch.from_numpy(asked.labels).to(self.model.device)
        gates = [{site: torch.from_numpy(gate.astype(np.float32)) for site, gate in cut.items()} for cut in self._sets.gates()]
        losses = np.zeros((len(gates), len(asked.labels)))
        for number, logits in ablated(self.model, texts, gates, asked, self._replace, self._batch):
            losses[number] = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none").double().cpu().numpy()
        return np.split(losses, np.cumsum(np.bincount(asked.texts, minlength=len(texts)))[:-1], axis=1)

    @cached_property
    def _replace(self) -> Mapping[int, Float[torch.Tensor, "head d"]] | None:
        """The mean output of heads over the words of the scored texts, if heads that are off have it; else None."""
        return mean_contexts(self.model, batches(self._scored, self._batch)) if self.spec.how == "mean" else None

    def _curves(self, systems: Float64[np.ndarray, "system bin"]) -> Float64[np.ndarray, "condition bin"]:
        """The curves of the whole model, and for each number of heads without the strongest and without random ones."""
        parts = systems[1:].reshape(len(self.spec.heads), 1 + self.spec.draws, -1)
        return np.concatenate([systems[:1], *(np.stack([part[0], part[1:].mean(0)]) for part in parts)])

    def tables(self, states: States) -> dict[str, Table]:
        """All tables."""
        assert self._sets is not None
        (first, after), (begin, end) = self.places.early, self.places.late
        self.notes.append(
            f"early: tokens {first} to {after - 1}; late: tokens {begin} to {end - 1} of a context of {self.places.context}, counted from 0"
        )
        heads = Table.of(self._measure.tables(states["sequences"], self._plan.layout)["sequences"]).where(quantity=self.spec.by)
        return all_tables(StateColumns(states["scored"]), heads, self._sets, self.places, self.spec)

    def measured(self) -> dict[str, Any]:
        """What was measured, and how."""
        places = {"context": self.places.context, "early": list(self.places.early), "late": list(self.places.late)}
        return {**self.spec.model_dump(mode="json", include={"by", "heads", "draws", "how"}), "places": places}


def _too_short(texts: Sequence[Encoded], spec: InContextSpec) -> tuple[str, str]:
    """What is wrong with texts that are all shorter than the context, and what to do."""
    where = ", ".join(spec.corpus)
    if not texts:
        return f"nothing to study: no text is left of {where}", "Name another corpus"
    longest: dict[str, int] = {}
    for text in texts:
        longest[text.document] = max(longest.get(text.document, 0), len(text))
    usual = sorted(longest.values())[len(longest) // 4]  # three of four documents are at least as long
    remedy = f"Use --max-length {max(8, 2 ** (usual.bit_length() - 1))}"
    return f"no text of {where} has a context of {spec.max_length} tokens: the longest has {max(map(len, texts))}", remedy
