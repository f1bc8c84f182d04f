"""The work of a study by edge probing: states are computed once, then the probes of every task are trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from headscope.core.state import States
from headscope.models.hidden import hidden_shape
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.edge_probe.feeding import StateRows
from headscope.studies.edge_probe.reading import gather
from headscope.studies.edge_probe.spec import EdgeSpec
from headscope.studies.edge_probe.summary import linear_warnings, notes, summary, task_table
from headscope.studies.edge_probe.tables import example_tables, mix_table, score_table, seed_table
from headscope.studies.edge_probe.task import Task
from headscope.studies.edge_probe.task_results import TaskResults
from headscope.studies.execute import require_length
from headscope.studies.hidden_states import hidden_states
from headscope.studies.spec import STATES_FOLDER

if TYPE_CHECKING:
    from headscope.studies.edge_probe.training import StepProgress


class TaskJob(NamedTuple):
    """The probes of a task that are trained together: those of one seed, or of several."""

    number: int
    task: Task
    seeds: list[int]


class EdgeProbeWork(Work):
    """One study by edge probing: its tasks one after the other, on the same hidden states."""

    spec: EdgeSpec

    def __init__(self, spec: EdgeSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        require_length(self.model, spec)

    def prepare(self) -> None:
        """Read the texts, and find the targets of each task in them."""
        corpora = self.context.corpora
        self._texts = gather(self.spec, self.model, self.context.corpus, corpora["dev"], corpora["look"])
        self.counts = self._texts.counts
        layers = hidden_shape(self.model)[0]
        self._tasks = [Task(name, self.spec, self._texts, layers) for name in self.spec.tasks or ()]
        # Several seeds at once keep a GPU busy; on a CPU they would only take memory, and an interruption would lose
        # more.
        seeds = range(self.spec.seed, self.spec.seed + self.spec.seeds)
        groups = [[seed] for seed in seeds] if self.model.device.type == "cpu" else [[*seeds]]
        self._jobs = [TaskJob(number, *pair) for number, pair in enumerate(product(self._tasks, groups))]

    def jobs(self, merged: Callable[[], States]) -> list[TaskJob]:
        """The tasks, on a CPU seed by seed."""
        return self._jobs

    def costs(self) -> list[float]:
        """Multiplications of training each job; for the first job also of reading the texts."""
        training = [job.task.cost(hidden_shape(self.model)[1]) * len(job.seeds) for job in self._jobs]
        self._reading = self.reading_cost(self._texts.texts) / (self.reading_cost(self._texts.texts) + training[0])
        return [training[0] / (1 - self._reading), *training[1:]]

    def do(self, job: TaskJob) -> States:
        """Train and score the probes of a task."""
        return {"edge": job.task.run(self._rows, job.seeds, self._progress_of(job.number)).state}

    def tables(self, states: States) -> dict[str, Table]:
        """A summary of all tasks, and their scores, mixing weights and examples."""
        kept = StateColumns(states["edge"])
        results = [TaskResults.of(task, kept) for task in self._tasks]
        examples, beliefs = example_tables(results, self.spec.examples)
        tasks, scores = task_table(results), score_table(results)
        self.notes += notes(results)
        self.warnings += linear_warnings(scores)
        return {
            "summary": summary(tasks),
            "edge_tasks": tasks,
            "edge_scores": scores,
            "edge_mix": mix_table(results),
            "edge_seeds": seed_table(results),
            "edge_examples": examples,
            "edge_beliefs": beliefs,
        }

    def measured(self) -> dict[str, Any]:
        """The tasks that were probed."""
        return self.spec.model_dump(mode="json", include={"tasks"})

    def close(self) -> None:
        """Remove hidden states that are not kept in a cache."""
        if self.context.folder is not None and self.spec.cache is None:
            self.context.folder.drop(STATES_FOLDER)

    @cached_property
    def _rows(self) -> StateRows:
        """The hidden states of all texts, computed when the first job needs them."""
        spec, folder = self.spec, self.context.folder
        states = hidden_states(
            self.model,
            self._texts.texts,
            spec.cache_folder(folder.path if folder is not None else None),
            dtype=spec.cache_dtype,
            limit_bytes=spec.cache_bytes,
            batch_tokens=spec.batch_tokens,
            progress=self._report_states,
        )
        return StateRows(states, self.model.device)

    def _report_states(self, share: float | None, texts: int, tokens: int) -> None:
        self.meter.update(self._reading * (share or 0.0), texts, tokens)

    def _progress_of(self, number: int) -> StepProgress:
        """A function that receives the number of steps that a job has done."""
        texts, before = self._texts.texts, self._reading if number == 0 else 0.0

        def report(step: int, steps: int) -> None:
            self.meter.update(before + (1 - before) * min(step / steps, 1.0), len(texts), sum(map(len, texts)))

        return report
