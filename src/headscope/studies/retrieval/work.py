"""The work of a study of retrieval heads: questions are answered with capture, then without the strongest heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from headscope.core.heads import HeadId
from headscope.core.state import States
from headscope.errors import RunError
from headscope.models.gates import gates_without
from headscope.models.generation import greedy, require_generator
from headscope.models.predictions import Predictions
from headscope.models.prefix import ablated
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.inference import FEWEST
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length
from headscope.studies.retrieval.copying import chance, copy_scores
from headscope.studies.retrieval.ranking import first, folds, random_heads
from headscope.studies.retrieval.samples import RetrievalSample, read_samples, recall
from headscope.studies.retrieval.spec import Decoding, RetrievalSpec
from headscope.studies.retrieval.tables import PASSED, AblatedAnswers, HeadScores, ablation_table, head_table, stability_table, summary

if TYPE_CHECKING:
    from jaxtyping import Float64

TOGETHER = 8  # samples of a job
BATCH_TOKENS = 2048


class RetrievalJob(NamedTuple):
    """Some samples to score; or, with sets of heads for each part of the documents, to answer without these heads."""

    samples: Sequence[RetrievalSample]
    cuts: Sequence[Sequence[Sequence[HeadId]]] | None = None


class RetrievalWork(Work):
    """One study of retrieval heads: all samples are answered with capture, then again without some heads."""

    spec: RetrievalSpec

    def __init__(self, spec: RetrievalSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        require_generator(self.model)
        require_length(self.model, spec)
        if 2 * max(spec.top) > self.model.layout.size:
            raise RunError(
                f"there are not {max(spec.top)} heads besides the {max(spec.top)} strongest of {self.model.layout.size} to compare with",
                "Use smaller numbers with --top",
            )

    def prepare(self) -> None:
        """Read the samples, and divide their documents into two parts."""
        self._samples = read_samples(self.context.corpus, self.model, self.spec, self.counts)
        if (count := len({sample.prompt.document for sample in self._samples})) < 2:
            reasons = "; ".join(self.counts.dropped.lines())
            problem = f"too few documents have a question, a passage and an answer that fit: {count}{f' ({reasons})' if reasons else ''}"
            raise RunError(problem, "Use a corpus with at least two, or raise --max-length")
        parts = folds([sample.prompt.document for sample in self._samples], self.spec.seed)
        self._part = {sample.prompt.document: int(part) for sample, part in zip(self._samples, parts, strict=True)}

    def costs(self) -> list[float]:
        """Costs of all jobs: to generate and to score, and then one pass without each set of heads."""
        sets = 1 + len(self.spec.top) * (1 + self.spec.draws)
        tokens = [self.reading_cost(sample.prompt for sample in samples) for samples in self._shards()]
        return [*(4.0 * cost for cost in tokens), *(float(sets) * cost for cost in tokens)]

    def _shards(self) -> list[Sequence[RetrievalSample]]:
        return [self._samples[start : start + TOGETHER] for start in range(0, len(self._samples), TOGETHER)]

    def jobs(self, merged: Callable[[], States]) -> Iterator[RetrievalJob]:
        """The samples in shards; and a second time without heads, when these are chosen."""
        for samples in self._shards():
            yield RetrievalJob(samples)
        scores = HeadScores.of(StateColumns(merged()["scores"]))
        cuts = self._cuts(scores, scores.main(self.spec.decoding))
        for samples in self._shards():
            yield RetrievalJob(samples, cuts)

    def _cuts(self, scores: HeadScores, decoding: Decoding) -> list[list[list[HeadId]]]:
        """For each part of the documents the sets of heads to switch off: none; for each k the strongest on the other
        part, and random ones.
        """
        ids, spec = self.model.layout.ids(), self.spec
        values, documents = scores.scored(decoding)
        part = np.array([self._part[name] for name in documents])
        cuts = []
        for own in (0, 1):
            others = values[part != own]
            if not len(others):  # no question of that part was answered: its heads are ranked by forced decoding
                forced, names = scores.scored("forced")
                others = forced[np.array([self._part[name] for name in names]) != own]
            means = others.mean(0)
            sets: list[list[HeadId]] = [[]]
            for k in spec.top:
                strongest = first(means, k).tolist()
                chosen = [strongest, *(random_heads(len(ids), k, strongest, spec.seed, draw) for draw in range(spec.draws))]
                sets += [[ids[head] for head in heads] for heads in chosen]
            cuts.append(sets)
        return cuts

    def do(self, job: RetrievalJob) -> States:
        """The scores of the samples, or their answers without heads."""
        scores, answers = StateColumns(), StateColumns()
        for number, sample in enumerate(job.samples):
            if job.cuts is None:
                self._score(sample, scores)
            else:
                answers.add_words("document", [sample.prompt.document])
                answers.add("answers", self._answer(sample, job.cuts[self._part[sample.prompt.document]])[None])
            self.meter.update((number + 1) / len(job.samples), number + 1, sum(len(one.prompt) for one in job.samples[: number + 1]))
        return {"scores": scores.state, "answers": answers.state}

    def _score(self, sample: RetrievalSample, kept: StateColumns) -> None:
        written = greedy(self.model, [sample.prompt.ids.tolist()], len(sample.answer))[0].ids
        found = recall(sample.right, self.model.tokenizer.hf.decode(list(written), skip_special_tokens=True))
        kept.add_words("document", [sample.prompt.document])
        kept.add("recall", [found])
        both: dict[Decoding, Sequence[int]] = {"greedy": written, "forced": sample.answer}
        for decoding, ids in both.items():
            kept.add(decoding, copy_scores(self.model, sample, ids)[None])
            kept.add(f"chance/{decoding}", [chance(sample, ids)])

    def _answer(self, sample: RetrievalSample, cuts: Sequence[Sequence[HeadId]]) -> Float64[np.ndarray, "cut 2"]:
        """The loss of the right answer per token without each set of heads, and whether greedy decoding gives the
        answer.

        It does if every token of the answer is the most probable one after those before it, so one pass is enough.
        """
        text = sample.followed_by(sample.answer)
        size, labels = len(sample.prompt), np.array(sample.answer, dtype=np.int64)
        places = np.arange(size - 1, len(text) - 1)
        asked = Predictions((text.ids,), np.zeros(len(labels), dtype=np.int64), places, labels)
        answers = np.zeros((len(cuts), 2))
        gates = [gates_without(self.model, heads) for heads in cuts]
        for number, logits in ablated(self.model, [text], gates, asked, batch_tokens=BATCH_TOKENS):
            losses = torch.nn.functional.cross_entropy(logits.float(), torch.from_numpy(labels).to(logits.device))
            answers[number] = float(losses), float((logits.argmax(-1).cpu().numpy() == labels).all())
        return answers

    def tables(self, states: States) -> dict[str, Table]:
        """The scores of heads, their stability, and what depends on the strongest."""
        spec = self.spec
        scores = HeadScores.of(StateColumns(states["scores"]))
        main = scores.main(spec.decoding)
        answers = AblatedAnswers.of(StateColumns(states["answers"]), spec)
        cuts = self._cuts(scores, main)
        which = [" / ".join(" ".join(map(str, cuts[part][answers.number(k)])) for part in (0, 1)) for k in spec.top]
        ids = self.model.layout.ids()
        tables = {
            "retrieval_heads": head_table(scores, main, ids, spec),
            "retrieval_stability": stability_table(scores, main, spec),
            "retrieval_ablation": ablation_table(answers, which, spec),
        }
        self._remark(scores, main)
        return {"summary": summary(scores, main, answers, tables["retrieval_stability"], spec), **tables}

    def _remark(self, scores: HeadScores, main: Decoding) -> None:
        passed = int(scores.passed.sum())
        self.notes.append(f"{passed} of {len(scores.passed)} questions were answered (ROUGE-1 recall above {PASSED:g})")
        if main == "forced" and self.spec.decoding == "auto":
            self.notes.append(
                f"fewer than {FEWEST} documents were answered, so heads are ranked by forced decoding: the right answer is given to the "
                "model token by token"
            )

    def measured(self) -> dict[str, Any]:
        """How heads were ranked, and how many were switched off."""
        return self.spec.model_dump(mode="json", include={"decoding", "top", "draws"})
