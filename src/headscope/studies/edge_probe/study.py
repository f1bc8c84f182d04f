"""A study by edge probing: states of all texts worked out once, the probes of every task trained on them, kept as it goes (METHODS §8)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headscope.core.state import States
from headscope.corpora import Corpus, read
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import once, require_length, study_folder
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.hidden import hidden_shape
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.columns import Kept
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.results.table import Table
from headscope.studies.edge_probe.feeding import Rows
from headscope.studies.edge_probe.reading import Texts, found_tasks, gather
from headscope.studies.edge_probe.spec import EdgeSpec
from headscope.studies.edge_probe.summary import linear_warnings, notes, summary, task_table
from headscope.studies.edge_probe.tables import example_tables, mix_table, score_table, seed_table
from headscope.studies.edge_probe.task import Job
from headscope.studies.edge_probe.task_results import Found
from headscope.studies.hidden_states import hidden_states
from headscope.studies.legacy import begin, finish, study_identity

STUDY = "edge_probe"
KEPT = "states"  # where hidden states lie while a study runs, if nowhere else is named


def probe_edge(
    spec: EdgeSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    dev: Corpus | None = None,
    look: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or corpora in hand take the place of their names."""
    folder = study_folder(out, resume, overwrite)
    given = {"corpus": corpus, "dev": dev, "look": look}
    corpora = {name: own or _read(spec, getattr(spec, name)) for name, own in given.items()}
    first = corpora["corpus"]
    assert first is not None
    spec = spec.resolved(found_tasks(first, spec.choices, spec.tasks, ", ".join(spec.corpus)))
    if corpora["dev"] is not None:
        found_tasks(corpora["dev"], spec.choices, spec.tasks, ", ".join(spec.dev))
    if model is not None and spec.weights == "random":
        raise RunError("the weights of a loaded model are as they are", "Load it with random=, a seed, or name the model")
    if model is None:
        model = load(spec.model, device, spec.dtype, spec.random)
    require_length(model, spec.model, spec.max_length)
    spec = spec.model_copy(update={"dtype": model.dtype})
    now = study_identity(spec, model, first, dev=corpora["dev"], look=corpora["look"])
    return once(
        folder,
        now,
        resume,
        overwrite,
        lambda: _Study(spec, model, gather(spec, model, first, corpora["dev"], corpora["look"]), folder, progress).run(now, resume),
    )


def _read(spec: EdgeSpec, names: Sequence[str]) -> Corpus | None:
    return read(*names, format=spec.format, on_error=spec.on_error) if names else None


class _Study:
    """One study: its tasks one after the other, on states that all of them share."""

    def __init__(self, spec: EdgeSpec, model: Model, texts: Texts, folder: Folder | None, progress: Progress | None) -> None:
        self.spec, self.model, self.texts, self.folder, self.progress = spec, model, texts, folder, progress
        layers = hidden_shape(model)[0]
        self.jobs = [Job(task, spec, texts, layers) for task in spec.tasks or ()]
        # Several seeds at once keep a GPU busy; on a CPU they would only take memory, and less could be gone on with.
        seeds = range(spec.seed, spec.seed + spec.seeds)
        self.turns = [(job, [*seeds]) for job in self.jobs] if model.device.type != "cpu" else [(j, [s]) for j in self.jobs for s in seeds]

    def run(self, now: dict[str, Any], resume: bool) -> Results:
        """All tasks, and the tables."""
        started = time.monotonic()
        manifest = begin(STUDY, self.spec, now, self.model, self.folder)
        ledger = Ledger(self.folder, key(now), resume)
        own = self.folder.path / KEPT if self.folder is not None else None
        if not all(ledger.done(number) for number in range(len(self.turns))):
            cache = Path(self.spec.cache) if self.spec.cache is not None else own
            rows = Rows(self._states(cache), self.model.device)
            for number, (job, seeds) in enumerate(self.turns):
                if not ledger.done(number):
                    ledger.add(number, {"edge": job.run(rows, seeds, self._teller(number)).state})
        assert ledger.merged is not None
        tables, told = self._tables(ledger.merged)
        said = {
            "measures": {STUDY: {"tasks": list(self.spec.tasks or ())}},
            "seconds": round(time.monotonic() - started, 3),
            "notes": told,
            "warnings": linear_warnings(tables["edge_scores"]),
        }
        results = finish(manifest, tables, self.model, self.texts.counts, ledger, ledger.merged, self.folder, said)
        if self.folder is not None and self.spec.cache is None:
            self.folder.drop(KEPT)
        return results

    def _states(self, cache: Path | None) -> Any:
        spec = self.spec
        limit = int(spec.cache_limit * 2**30)
        options: dict[str, Any] = {"dtype": spec.cache_dtype, "limit_bytes": limit, "batch_tokens": spec.batch_tokens}
        return hidden_states(self.model, self.texts.texts, cache, **options, progress=self._told)

    def _told(self, share: float | None, texts: int, tokens: int) -> None:
        """Progress of the states: a small part of the work."""
        if self.progress is not None:
            self.progress(0.1 * (share or 0.0), texts, tokens)

    def _teller(self, number: int) -> Any:
        def tell(step: int, steps: int) -> None:
            if self.progress is not None:
                share = 0.1 + 0.9 * (number + min(step / steps, 1.0)) / len(self.turns)
                self.progress(share, len(self.texts.texts), sum(map(len, self.texts.texts)))

        return tell

    def _tables(self, states: States) -> tuple[dict[str, Table], list[str]]:
        kept = Kept(states["edge"])
        every = [Found.of(job, kept) for job in self.jobs]
        examples, beliefs = example_tables(every, self.spec.examples)
        tasks = task_table(every)
        tables = {"summary": summary(tasks), "edge_tasks": tasks, "edge_scores": score_table(every), "edge_mix": mix_table(every)}
        tables |= {"edge_seeds": seed_table(every), "edge_examples": examples, "edge_beliefs": beliefs}
        return tables, notes(every)
