"""The work of a study of ablation: texts are answered with and without heads, and the answers become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from headscope.core.state import States
from headscope.encoding.texts import Encoded
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.results.table import Table
from headscope.studies.ablation.answers import baseline_warning
from headscope.studies.ablation.findings import summary
from headscope.studies.ablation.importance import importance_correlation_table, importance_table
from headscope.studies.ablation.prune import pruning_orders
from headscope.studies.ablation.pruning_curves import Curves, curve_table, prunable_table
from headscope.studies.ablation.spec import AblationSpec
from headscope.studies.ablation.tables import head_table, layer_table, only_table
from headscope.studies.ablation.trial import Trial, completed
from headscope.studies.base import StudyContext, Work

if TYPE_CHECKING:
    from headscope.studies.ablation.trial import ScoreFunction

_TABLES = {
    "heads": ("ablation", head_table),
    "all_but_one": ("ablation_all_but_one", only_table),
    "layers": ("ablation_layers", layer_table),
}


BACKWARD = 3.0  # the work of importance, in forward passes


class AblationJob(NamedTuple):
    """Texts to answer: by all systems that change a single layer, or with heads removed cumulatively."""

    systems: Literal["single", "pruning"]
    texts: Sequence[Encoded]


class AblationWork(Work):
    """One study of ablation: all texts are answered without each head or layer, then again for pruning."""

    spec: AblationSpec

    def __init__(self, spec: AblationSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        self._function: ScoreFunction | None = context.options.get("function")
        self.spec = completed(spec, self.model, context.corpus, self._function is not None)
        self.contents = {"run": None if spec.run is None else key(Results.open_run(Path(spec.run)).manifest["identity"])}
        self._curves: Curves | None = None
        self._texts = self._tokens = 0

    def prepare(self) -> None:
        """Read the texts."""
        self._trial = Trial(self.spec, self.model, self.context.corpus, self._function)
        self.counts = self._trial.counts

    def jobs(self, merged: Callable[[], States]) -> Iterator[AblationJob]:
        """The texts in shards; for pruning a second time, when the orders of heads are known."""
        shards = self._trial.shards(self._trial.texts)
        for texts in shards:
            yield AblationJob("single", texts)
        if "pruning" in self.spec.parts:
            self._curves = Curves(self.model.layout, pruning_orders(self._trial, StateColumns(merged()["single"])), self.spec.steps)
            for texts in shards:
                yield AblationJob("pruning", texts)

    def costs(self) -> list[float]:
        """Tokens of the texts of each job, times the passes that they take."""
        trial, spec = self._trial, self.spec
        shards = trial.shards(trial.texts)
        whole = 1.0 + trial.output_cost
        gradients = whole * BACKWARD * bool({"importance", "pruning"} & {*spec.parts})
        costs = [_tokens(texts) * (sum(trial.passes([{}, *trial.systems.cuts()])) + gradients) for texts in shards]
        if "pruning" in spec.parts:
            ordered = (1 + ("heads" in spec.parts)) * (1 + spec.most_first)
            orders = ordered + spec.reestimate + len(spec.by) + spec.orders
            costs += [_tokens(trial.testing_texts(texts)) * whole * (1.0 + orders * spec.steps) for texts in shards]
        return costs

    def do(self, job: AblationJob) -> States:
        """The answers to the texts of a job."""
        single, pruning = StateColumns(), StateColumns()
        if job.systems == "single":
            self._trial.answer_systems(job.texts, single, self._tell)
        else:
            assert self._curves is not None
            pruning = self._trial.answer_cuts(self._trial.testing_texts(job.texts), self._curves.cuts(), self._tell)
        self.skip(job)
        return {"single": single.state, "pruning": pruning.state}

    def skip(self, job: AblationJob) -> None:
        """Count the texts as done."""
        self._texts += len(job.texts)
        self._tokens += _tokens(job.texts)

    def _tell(self, share: float) -> None:
        self.meter.update(share, self._texts, self._tokens)

    def tables(self, states: States) -> dict[str, Table]:
        """All tables. If the model is no better than the baseline, the summary has no value except its score."""
        trial, spec, single = self._trial, self.spec, StateColumns(states["single"])
        scores = trial.scores(single)
        score, statistics = trial.statistics(scores.base)
        value = float(score.of(statistics))
        warning = baseline_warning(score, value, scores.base, self.model) if {*spec.parts} - {"importance"} else None
        losing = warning is None
        self.warnings += [] if warning is None else [warning]
        self.notes += self._notes()
        n, documents = len(scores.documents), len(set(scores.documents))
        tables = {name: make(scores) for part, (name, make) in _TABLES.items() if part in spec.parts}
        if "importance" in spec.parts:
            weights = trial.importance(single, np.ones(n, dtype=bool), spec.replicates)
            tables["importance"] = importance_table(weights, self.model.layout, n, documents)
            if "heads" in spec.parts:
                tables["importance_correlation"] = importance_correlation_table(weights[0], scores)
        if self._curves is not None:
            pruned = trial.scores(StateColumns(states["pruning"]))
            tables["pruning"] = curve_table(self._curves, pruned, pruned.table)
            _, statistics = trial.statistics(pruned.base)
            tables["prunable"] = prunable_table(tables["pruning"], float(score.of(statistics)), score, spec.tolerance, losing)
        return {"summary": summary(tables, score, value, n, documents, losing), **tables}

    def _notes(self) -> list[str]:
        """Notes for the reader on how the study was done."""
        notes = []
        if "pruning" in self.spec.parts and not self._trial.has_halves:
            notes.append("pruning: too few documents to split, so orders were found and tested on the same texts (selection bias)")
        if (reason := self._trial.whole_passes) is not None:
            notes.append(f"each set of heads took a full forward pass: {reason}")
        return notes

    def measured(self) -> dict[str, Any]:
        """What was measured, and how."""
        return self.spec.model_dump(mode="json", include={"parts", "score", "how"})

    def further(self) -> dict[str, Any]:
        """No findings if the model is no better than the baseline."""
        return {"findings": []} if self.warnings else {}


def _tokens(texts: Sequence[Encoded]) -> int:
    return sum(map(len, texts))
