"""The interface of studies: `Study` declares what is known without computing, and `Work` is one execution.

A measure needs one pass over a corpus, a study many. A `Study` is cheap to import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from headscope.core.paths import default_folder
from headscope.core.timing import JobProgress
from headscope.errors import RunError

if TYPE_CHECKING:
    from torch.nn import Module

    from headscope.core.state import States
    from headscope.corpora import Corpus
    from headscope.drawing.figure import Drawing
    from headscope.encoding.texts import Encoded
    from headscope.engine.shards import Progress
    from headscope.models.model import Model
    from headscope.results.folder import Folder
    from headscope.results.results import Results
    from headscope.results.table import Table
    from headscope.studies.replicates import ReplicatedTables
    from headscope.studies.spec import StudySpec

# The remedy if a corpus lacks a layer of annotation.
LAYERS = {
    "trees": "Use a corpus with dependencies, such as a CoNLL-U file",
    "keyphrases": "Use JSON lines with text and keyphrases, or a folder of .txt and .key",
    "passages": "Use needles:96x40, or JSON lines with passages, gold, question and answer",
}


class StudyFigure(NamedTuple):
    """A figure of a study.

    `draw` is a function of the study's module `figures`; `table` is the table that it draws, and `command` makes the
    table. A figure with a `title` is part of reports, where `about` says how to read it. It may take further
    `choices`; `quantity` says that it takes a quantity instead of a kind of head.
    """

    name: str
    line: str
    draw: str
    table: str
    command: str
    title: str = ""
    about: str = ""
    choices: tuple[str, ...] = ()
    quantity: bool = False


class ComparedTable(NamedTuple):
    """A table that is compared between studies: the columns that identify its rows, and each number with the columns of
    its bounds, if it has some.

    A table that is `drawn` has a figure on the page of a comparison.
    """

    table: str
    keys: tuple[str, ...]
    numbers: Mapping[str, tuple[str, str] | None]
    title: str
    drawn: bool = False


BOUNDS = ("low", "high")


@dataclass
class StudyContext:
    """The inputs of one execution of a study: the model, the corpora by the names of their settings, and the folder of
    the results.

    `options` are what the study `takes` in addition to its settings; `key` identifies the execution in checkpoints.
    """

    model: Model
    corpora: Mapping[str, Corpus | None]
    folder: Folder | None = None
    resume: bool = False
    progress: Progress | None = None
    notify: Callable[[str], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def corpus(self) -> Corpus:
        """The first corpus, which every study has."""
        corpus = self.corpora["corpus"]
        assert corpus is not None
        return corpus


class Work(ABC):
    """One execution of a study: numbered jobs, whose states are merged in order, and the tables made from them.

    `__init__` completes the settings (`spec`) from the model and the corpora, and raises an error if it cannot be done.
    `contents` are hashes of the other files that the settings name.
    """

    def __init__(self, spec: Any, context: StudyContext) -> None:
        from headscope.results.counts import Counts

        self.spec: Any = spec
        self.context = context
        self.model = context.model
        self.model_name = context.model.name  # in warnings
        self.counts = Counts()
        self.contents: dict[str, str | None] = {}
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.advice = ""  # how to make the study shorter; shown with the estimate of its time
        self._meter: JobProgress | None = None

    def prepare(self) -> None:
        """Read what the jobs need. Not called for a study that is finished."""
        return

    def costs(self) -> Sequence[float] | None:
        """The expected cost of each job, in any unit, after `prepare`; None if it is not known."""
        return None

    def share(self) -> float | None:
        """The share of all work that is done, if the costs of jobs are not known."""
        return self.context.corpus.share

    def reading_cost(self, texts: Iterable[Encoded]) -> float:
        """Multiplications of one pass over texts, as a unit for `costs`: all tokens with all weights of the layers."""
        return float(sum(map(len, texts)) * layer_weights(self.model.network))

    @property
    def meter(self) -> JobProgress:
        """The meter to which `do` reports its progress."""
        if self._meter is None:
            self._meter = JobProgress(self.costs(), self.share, self.context.progress, self.context.notify, self.advice)
        return self._meter

    @abstractmethod
    def jobs(self, merged: Callable[[], States]) -> Iterable[Any]:
        """The jobs in order; `merged` returns the merged states of all earlier jobs."""

    @abstractmethod
    def do(self, job: Any) -> States:
        """The states of one job."""

    def skip(self, job: Any) -> None:
        """Called in place of `do` for a job that was done before the study was interrupted."""
        return

    @abstractmethod
    def tables(self, states: States) -> dict[str, Table]:
        """All tables, by name. It may add notes and warnings."""

    @abstractmethod
    def measured(self) -> dict[str, Any]:
        """The settings that the manifest lists as what was measured."""

    def further(self) -> dict[str, Any]:
        """Further entries of the manifest."""
        return {}

    def close(self) -> None:
        """Remove what only the jobs needed. Called after the results are written."""
        return


def layer_weights(network: Module) -> int:
    """How many weights a network has, without its embeddings."""
    embeddings = {id(module.weight) for module in network.modules() if type(module).__name__ == "Embedding"}
    return sum(weight.numel() for weight in network.parameters() if id(weight) not in embeddings)


class Study:
    """A kind of study: everything that is known about it without computing.

    Its package holds `spec.py`, `findings.py` and `figures.py`, which import neither torch nor transformers, and
    `work.py`, which computes.
    """

    name: ClassVar[str]  # in run.json
    verb: ClassVar[str]  # on the command line
    function: ClassVar[str]  # in Python
    folder: ClassVar[str]  # how its default folder begins
    spec_class: ClassVar[str]  # the class of its settings in its module `spec`
    work_class: ClassVar[str]  # the class of its executions in its module `work`
    help: ClassVar[str]  # of the command line: one sentence, and examples
    corpora: ClassVar[tuple[str, ...]] = ("corpus",)  # the settings that name corpora
    annotation: ClassVar[str | None] = None  # the layer that all corpora must have
    arguments: ClassVar[tuple[str, ...]] = ()  # the settings that the command line takes without a flag, in this order
    files: ClassVar[tuple[str, ...]] = ()  # further settings that name files or folders
    takes: ClassVar[tuple[str, ...]] = ()  # what it accepts in Python in addition to its settings, such as a function
    predicts: ClassVar[bool] = False  # whether the model is loaded with its prediction head
    stops_early: ClassVar[bool] = False  # whether training may end before its last epoch
    doing: ClassVar[str] = "studying"  # beside the progress bar
    title: ClassVar[str]
    about: ClassVar[str]
    published: ClassVar[str]
    figures: ClassVar[tuple[StudyFigure, ...]] = ()
    compared: ClassVar[tuple[ComparedTable, ...]] = ()

    @property
    def spec(self) -> type[StudySpec]:
        """Its settings, imported on demand."""
        spec: type[StudySpec] = self._imported("spec", self.spec_class)
        return spec

    def make(self, settings: Mapping[str, Any], where: str = "the settings") -> Any:
        """The specification from plain values, with errors that say what to do."""
        from headscope.results.specification import validated

        return validated(self.spec, settings, where)

    def resolve(self, spec: Any, corpora: Mapping[str, Corpus | None]) -> Any:
        """The settings, completed from the preset and the corpora; an error if annotation is missing."""
        for name in self.corpora:
            corpus = corpora[name]
            if corpus is not None and self.annotation is not None and not corpus.layers({self.annotation}):
                paths = ", ".join(getattr(spec, name) or ("the corpus",))
                raise RunError(f"this study needs {self.annotation}, and {paths} has none", LAYERS[self.annotation])
        return spec.model_copy(update=spec.by_preset())

    def work(self, spec: Any, context: StudyContext) -> Work:
        """One execution. The code that computes is imported here."""
        work: Work = self._imported("work", self.work_class)(spec, context)
        return work

    def _imported(self, module: str, name: str) -> Any:
        return getattr(import_module(f"{type(self).__module__}.{module}"), name)

    def refuse_rerun(self, results: Results) -> None:
        """Raise an error if the results cannot be made again from the content of their folder."""
        return

    def findings(self, results: Results) -> list[str]:
        """The findings in plain sentences, from the study's module `findings`."""
        sentences: list[str] = self._imported("findings", "sentences")(results)
        return sentences

    def replicates(self, results: Results) -> ReplicatedTables:
        """Numbers with their replicates by table and key, for studies that keep the numbers of single documents."""
        return {}

    def compare_further(self, results: Sequence[Results]) -> tuple[str, Table] | None:
        """The title and table of a further comparison; None if this kind has none, a RunError if it is impossible."""
        return None

    def draw_compared(self, results: Sequence[Results], change: bool = False) -> Drawing | None:
        """A figure of several studies that replaces the usual one, if this kind has one; with `change`, of changes
        instead of scores.
        """
        if change:
            raise RunError("change applies only to studies of ablation, to scores without each head", "Omit it")
        return None

    def draw(self, figure: StudyFigure, results: Results, *args: Any, **choices: Any) -> Drawing:
        """One of its figures, with a caption that begins with the figure's description."""
        return self.captioned(figure, self._imported("figures", figure.draw)(results, *args, **choices))

    def captioned(self, figure: StudyFigure, drawn: Drawing) -> Drawing:
        """A figure that was drawn, with its description at the start of the caption."""
        drawn.caption = replace(drawn.caption, about=f"{figure.line} (headscope {self.verb})")
        return drawn

    def usual_folder(self, spec: StudySpec) -> Path:
        """The default folder of the results."""
        names = [*(getattr(spec, name) for name in self.arguments or ("model",)), spec.corpus[0]]
        return default_folder(self.folder, *names)
