"""Westera's experiments over a corpus: the flow of every text, observed by every part of the study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from headscope.core.state import State, States
from headscope.encoding.texts import Encoded
from headscope.models.jacobian.flow import Flow
from headscope.models.jacobian.layers import drops
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length
from headscope.studies.flow.agreement import Agreement
from headscope.studies.flow.attachment import Attachment
from headscope.studies.flow.classes import PartsOfSpeech
from headscope.studies.flow.coreference import CoreferenceFlow
from headscope.studies.flow.findings import summary
from headscope.studies.flow.influence import text_flow
from headscope.studies.flow.jobs import FlowCosts, FlowText, Jobs
from headscope.studies.flow.spec import FlowSpec
from headscope.studies.flow.subsets import SubsetDistances
from headscope.studies.flow.trees import TreeDistances

SHARD = 8  # texts per job


class FlowWork(Work):
    """One study of flow. A job is a shard of texts."""

    spec: FlowSpec

    def __init__(self, spec: FlowSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        require_length(self.model, spec)
        if "G*" in spec.measures and spec.norm in ("frobenius", None):
            self.advice = "; --measures A,G or --norm sum is faster"
        self._texts = self._tokens = 0
        self._costs = FlowCosts.of(self.model)

    def prepare(self) -> None:
        """Find the texts."""
        texts = Jobs(self.context.corpus, self.model, self.spec)
        self._shards = list(_shards(texts))
        self.counts = texts.counts

    def costs(self) -> list[float]:
        """The cost of the texts of each shard."""
        return [sum(sum(self._work(text).values()) for text in shard) for shard in self._shards]

    def _work(self, text: FlowText) -> dict[str, float]:
        return self._costs.by_measure(text, self.spec)

    def jobs(self, merged: Callable[[], States]) -> Iterator[list[FlowText]]:
        """The texts in shards."""
        for number, shard in enumerate(self._shards):
            if number == 0 and self.spec.mode == "train" and not drops(self.model.network, self.model.inputs([shard[0].text])):
                name = self.model.name
                self.notes.append(f"mode train: {name} has no dropout, so train mode changes nothing: all numbers are those of mode eval")
            yield shard

    def do(self, job: list[FlowText]) -> States:
        """The states of every part of the study for the texts of a job."""
        parts = FlowParts(self.spec)
        whole = sum(sum(self._work(text).values()) for text in job)
        before = 0.0
        for text in job:
            costs = self._work(text)
            parts.observe(text, text_flow(self.model, text.text, self.spec, text.pairs(), self._tell(before, costs, whole)))
            before += sum(costs.values())
            self.skip([text])
            self.meter.update(before / whole, self._texts, self._tokens)
        return parts.states

    def _tell(self, before: float, costs: Mapping[str, float], whole: float) -> Callable[[str, float], None]:
        """A function that receives a measure of a text, and the share of it that is done."""
        done: dict[str, float] = {}

        def report(measure: str, share: float) -> None:
            done[measure] = share * costs[measure]
            self.meter.update((before + sum(done.values())) / whole, self._texts, self._tokens)

        return report

    def skip(self, job: list[FlowText]) -> None:
        """Count the texts as done."""
        self._texts += len(job)
        self._tokens += sum(len(text.text) for text in job)

    def tables(self, states: States) -> dict[str, Table]:
        """The tables of all parts."""
        parts = FlowParts(self.spec, states)
        if parts.coreference is not None:
            self.counts.dropped.update(parts.coreference.left_out)
        self.notes += parts.precision.notes()
        return parts.tables()

    def measured(self) -> dict[str, Any]:
        """What was measured, and how."""
        return self.spec.model_dump(mode="json", include={"parts", "measures", "norm", "method", "probes"})


class FlowParts:
    """The parts of a study with their states, new or restored."""

    def __init__(self, spec: FlowSpec, states: Mapping[str, State] | None = None) -> None:
        parts = spec.parts or ()
        common: dict[str, Any] = {"replicates": spec.replicates, "seed": spec.seed}

        def kept(name: str) -> StateColumns:
            return StateColumns(states[name] if states is not None else None)

        words: dict[str, Any] = {"grouping": spec.grouping, **common}
        trees = {**words, "punct": spec.punct, "resample": spec.resample}
        self.precision = Precision(kept("precision"))
        self.coreference = CoreferenceFlow(**words, kept=kept("coreference")) if "coreference" in parts else None
        self.others: dict[str, PartsOfSpeech | TreeDistances | Attachment | Agreement] = {}
        if "classes" in parts:
            self.others["classes"] = PartsOfSpeech(deletion=spec.deletion or "comparison", **common, kept=kept("classes"))
        if "trees" in parts:
            self.others["trees"] = TreeDistances(**trees, kept=kept("trees"))
            self.others["subsets"] = SubsetDistances(**trees, kept=kept("subsets"))
            self.others["attachment"] = Attachment(spec.transpose, labels=spec.labels or "main", **trees, kept=kept("attachment"))
        if "agreement" in parts:
            self.others["agreement"] = Agreement(**common, kept=kept("agreement"))

    def observe(self, job: FlowText, flow: Flow) -> None:
        """Add the flow of a text to every part."""
        self.precision.observe(job.text, flow)
        if self.coreference is not None and job.passage is not None:
            self.coreference.observe(job.text, flow.values, job.passage)
        for name, other in self.others.items():
            if ("trees" if name in ("subsets", "attachment") else name) in job.parts:
                other.observe(job.text, flow.values)

    def _all(self) -> dict[str, Any]:
        first = {} if self.coreference is None else {"coreference": self.coreference}
        return {**first, **self.others, "precision": self.precision}

    @property
    def states(self) -> States:
        """The state of each part."""
        return {name: part.kept.state for name, part in self._all().items()}

    def tables(self) -> dict[str, Table]:
        """A `summary`, and the tables of all parts, named `flow_...` because runs have tables of coreference, too."""
        made = {name: table for part in self._all().values() for name, table in part.tables().items()}
        return {"summary": summary(made), **{f"flow_{name}": table for name, table in made.items()}}


def _shards(jobs: Iterable[FlowText]) -> Iterator[list[FlowText]]:
    stream = iter(jobs)
    while shard := list(islice(stream, SHARD)):
        yield shard


COLUMNS = ("measure", "layer", "method", "relative_error", "texts")


class Precision:
    """The mean over a text's entries of standard error / value, layer by layer; 0 for exact values."""

    def __init__(self, kept: StateColumns | None = None) -> None:
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, flow: Flow) -> None:
        """Add the flow of a text."""
        for name, values in flow.values.items():
            errors = flow.errors[name]
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.zeros_like(values) if errors is None else np.where(values > 0, errors / values, np.nan)
            self.kept.add(f"errors/{name}", np.nanmean(shares, (1, 2))[None])
        self.kept.add_words("note", flow.notes)

    def tables(self) -> dict[str, Table]:
        """`precision`: every measure and layer."""
        rows = []
        for name in self.kept.under("errors/"):
            errors = self.kept.numbers(f"errors/{name}")
            for layer, error in enumerate(np.nanmean(errors, 0).tolist(), 1):
                method = "sketch" if errors.any() else "exact"
                rows.append({"measure": name, "layer": layer, "method": method, "relative_error": error, "texts": len(errors)})
        return {"precision": Table.from_rows(rows, COLUMNS)}

    def notes(self) -> list[str]:
        """Notes on how the flow was computed, each once."""
        return list(dict.fromkeys(self.kept.words("note")))
