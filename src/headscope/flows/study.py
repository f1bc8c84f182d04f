"""Westera's experiments over a corpus: flow of every text, looked at by every part of the study, kept as it goes, written as tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from headscope.core.state import State, States
from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.flows.agreement import Agreement
from headscope.flows.attachment import Attachment
from headscope.flows.classes import PartsOfSpeech
from headscope.flows.coreference import Coreference
from headscope.flows.forecast import Clock
from headscope.flows.influence import text_flow
from headscope.flows.jobs import Job, Jobs
from headscope.flows.precision import Precision
from headscope.flows.spec import NEEDS, FlowSpec
from headscope.flows.subsets import SubsetDistances
from headscope.flows.summary import summary
from headscope.flows.trees import TreeDistances
from headscope.models.jacobian import Flow
from headscope.models.jacobian.layers import drops
from headscope.models.load import load
from headscope.models.model import Model
from headscope.runs.kept import Kept
from headscope.runs.ledger import Ledger
from headscope.runs.opening import once, require_length, study_folder
from headscope.runs.results import Results
from headscope.runs.signature import key
from headscope.runs.store import Folder
from headscope.runs.studies import begin, finish, study_identity
from headscope.runs.table import Table
from headscope.runs.work import Progress

SHARD = 8  # texts that are worked on before what was found is written


def study(
    spec: FlowSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name.

    `say` is told how long it will take, after the second text.
    """
    folder = study_folder(out, resume, overwrite)
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    spec = spec.resolved(corpus.layers(set(NEEDS.values())))
    if model is not None and spec.weights == "random":
        raise RunError("the weights of a loaded model are as they are", "Load it with random=, a seed, or name the model")
    if model is None:
        model = load(spec.model, device, spec.dtype, spec.random)
    require_length(model, spec.model, spec.max_length)
    spec = spec.model_copy(update={"dtype": model.dtype})
    now = study_identity(spec, model, corpus)
    return once(folder, now, resume, overwrite, lambda: _run(spec, model, corpus, folder, now, resume, progress, say))


class Studies:
    """The parts of a study and what they have seen; made again of their states."""

    def __init__(self, spec: FlowSpec, states: Mapping[str, State] | None = None) -> None:
        parts = spec.parts or ()
        common: dict[str, Any] = {"replicates": spec.replicates, "seed": spec.seed}

        def kept(name: str) -> Kept:
            return Kept(states[name] if states is not None else None)

        words: dict[str, Any] = {"grouping": spec.grouping, **common}
        trees = {**words, "punct": spec.punct, "resample": spec.resample}
        self.precision = Precision(kept("precision"))
        self.coreference = Coreference(**words, kept=kept("coreference")) if "coreference" in parts else None
        self.others: dict[str, PartsOfSpeech | TreeDistances | Attachment | Agreement] = {}
        if "classes" in parts:
            self.others["classes"] = PartsOfSpeech(deletion=spec.deletion or "comparison", **common, kept=kept("classes"))
        if "trees" in parts:
            self.others["trees"] = TreeDistances(**trees, kept=kept("trees"))
            self.others["subsets"] = SubsetDistances(**trees, kept=kept("subsets"))
            self.others["attachment"] = Attachment(spec.transpose, labels=spec.labels or "main", **trees, kept=kept("attachment"))
        if "agreement" in parts:
            self.others["agreement"] = Agreement(**common, kept=kept("agreement"))

    def observe(self, job: Job, found: Flow) -> None:
        """Take in the flow of a text."""
        self.precision.observe(job.text, found)
        if self.coreference is not None and job.passage is not None:
            self.coreference.observe(job.text, found.values, job.passage)
        for name, other in self.others.items():
            if ("trees" if name in ("subsets", "attachment") else name) in job.parts:
                other.observe(job.text, found.values)

    def _all(self) -> dict[str, Any]:
        first = {} if self.coreference is None else {"coreference": self.coreference}
        return {**first, **self.others, "precision": self.precision}

    @property
    def states(self) -> States:
        """What each part has seen."""
        return {name: part.kept.state for name, part in self._all().items()}

    def tables(self) -> dict[str, Table]:
        """The tables of all parts, called `flow_...`, since runs have tables of coreference, too; and a `summary` of them."""
        made = {name: table for part in self._all().values() for name, table in part.tables().items()}
        return {"summary": summary(made), **{f"flow_{name}": table for name, table in made.items()}}


def _run(
    spec: FlowSpec,
    model: Model,
    corpus: Corpus,
    folder: Folder | None,
    now: dict[str, Any],
    resume: bool,
    progress: Progress | None,
    say: Callable[[str], None] | None,
) -> Results:
    started = time.monotonic()
    manifest = begin("flow", spec, now, model, folder)
    ledger = Ledger(folder, key(now), resume)
    jobs = Jobs(corpus, model, spec)
    notes: list[str] = []
    given: Iterable[Job] = jobs
    clock: Clock | None = None
    if say is not None and (spec.limit is not None or spec.parts == ("coreference",)):
        known = list(jobs)  # before the work begins, unless they are those of a whole corpus, which may be large
        given, clock = known, Clock(known, spec, say)
    for number, shard in enumerate(_shards(given)):
        if number == 0 and spec.mode == "train" and not drops(model.network, model.inputs([shard[0].text])):
            notes.append(f"mode train: {model.name} has no dropout, so train mode changes nothing: all numbers are those of mode eval")
        if not ledger.done(number):
            studies = Studies(spec)
            for job in shard:
                studies.observe(job, text_flow(model, job.text, spec, job.pairs()))
                if clock is not None:
                    clock.tick(job)
                if progress is not None:
                    progress(*((clock or jobs).share, (clock or jobs.counts).texts, (clock or jobs.counts).tokens))
            ledger.add(number, studies.states)
        elif clock is not None:
            for job in shard:
                clock.skip(job)
    if ledger.merged is None:
        raise RunError(f"nothing to study: no text is left of {', '.join(spec.corpus)}", "; ".join(jobs.counts.dropped.lines()))
    studies = Studies(spec, ledger.merged)
    if studies.coreference is not None:
        jobs.counts.dropped.update(studies.coreference.left_out)
    said = {
        "measures": {"flow": {name: manifest["settings"][name] for name in ("parts", "measures", "norm", "method", "probes")}},
        "seconds": round(time.monotonic() - started, 3),
        "notes": [*notes, *studies.precision.notes()],
    }
    return finish(manifest, studies.tables(), model, jobs.counts, ledger, ledger.merged, folder, said)


def _shards(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    stream = iter(jobs)
    while shard := list(islice(stream, SHARD)):
        yield shard
