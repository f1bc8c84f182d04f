"""What a study is: what it declares about itself, and how one execution of it works.

A study is to many passes over a corpus what a measure is to one. `Study` declares and is cheap to import, `Work`
computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from headscope.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.core.state import States
    from headscope.corpora import Corpus
    from headscope.engine.shards import Progress
    from headscope.models.model import Model
    from headscope.results.folder import Folder
    from headscope.results.results import Results
    from headscope.results.table import Table
    from headscope.studies.replicates import ReplicatedTables
    from headscope.studies.spec import StudySpec

# What to do where a corpus lacks a layer of annotation.
LAYERS = {
    "trees": "Use a corpus with dependencies, such as a CoNLL-U file",
    "keyphrases": "Use JSON lines with text and keyphrases, or a folder of .txt and .key",
}


class StudyFigure(NamedTuple):
    """A figure of a study.

    `draw` is a function of the study's module `figures`; `table` is what it draws, which `command` makes. With a
    `title` it is part of reports, and `about` says there how to read it. It may take further `choices`; `quantity`
    says that it takes one, not a kind of head.
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
    """A table that is compared between studies: what its rows are of, and each number with the columns of its bounds,
    if it has some.

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
    """What one execution of a study is given: the model, the corpora by the names of their settings, and where results
    go.

    `options` are what the study `takes` beside its settings; `key` identifies the execution, for checkpoints of its
    own.
    """

    model: Model
    corpora: Mapping[str, Corpus | None]
    folder: Folder | None = None
    resume: bool = False
    progress: Progress | None = None
    tell: Callable[[str], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def corpus(self) -> Corpus:
        """The first corpus, which every study has."""
        corpus = self.corpora["corpus"]
        assert corpus is not None
        return corpus


class Work(ABC):
    """One execution of a study: numbered jobs, whose states are merged in order, and the tables made of them.

    `__init__` completes the settings (`spec`) from the model and the corpora, and refuses what cannot be studied.
    `contents` are hashes of what the settings name beside the model and the corpora.
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

    def prepare(self) -> None:
        """Read what the jobs need. Not called for a study that is finished."""
        return

    @abstractmethod
    def jobs(self, merged: Callable[[], States]) -> Iterable[Any]:
        """The jobs in order; `merged` gives the states of all jobs before the one asked for."""

    @abstractmethod
    def do(self, job: Any) -> States:
        """The states of one job."""

    def skip(self, job: Any) -> None:
        """Called in place of `do` for a job that was done before the study was interrupted."""
        return

    @abstractmethod
    def tables(self, states: States) -> dict[str, Table]:
        """All tables, by name. Notes and warnings may be added to here."""

    @abstractmethod
    def measured(self) -> dict[str, Any]:
        """The settings that the manifest lists as what was measured."""

    def further(self) -> dict[str, Any]:
        """Further entries of the manifest."""
        return {}

    def close(self) -> None:
        """Remove what only the jobs needed. Called once results are written."""
        return


class Study(ABC):
    """A kind of study: what is known of it without computing anything.

    Its package holds `spec.py`, `findings.py` and `figures.py`, which import neither torch nor transformers, and
    what computes.
    """

    name: ClassVar[str]  # in run.json
    verb: ClassVar[str]  # on the command line
    function: ClassVar[str]  # in Python
    folder: ClassVar[str]  # how its usual folder begins
    help: ClassVar[str]  # of the command line: one sentence, and examples
    corpora: ClassVar[tuple[str, ...]] = ("corpus",)  # the settings that name corpora
    annotation: ClassVar[str | None] = None  # the layer that all corpora must have
    arguments: ClassVar[tuple[str, ...]] = ()  # the settings that the command line takes without a flag, in this order
    files: ClassVar[tuple[str, ...]] = ()  # further settings that name files or folders
    takes: ClassVar[tuple[str, ...]] = ()  # what it may be given in Python beside its settings, such as a function
    predicts: ClassVar[bool] = False  # whether the model is loaded with what it predicts with
    doing: ClassVar[str] = "studying"  # beside the progress bar
    title: ClassVar[str]
    about: ClassVar[str]
    published: ClassVar[str]
    figures: ClassVar[tuple[StudyFigure, ...]] = ()
    compared: ClassVar[tuple[ComparedTable, ...]] = ()

    @property
    @abstractmethod
    def spec(self) -> type[StudySpec]:
        """Its settings, imported when they are asked for."""

    def make(self, settings: Mapping[str, Any], where: str = "the settings") -> Any:
        """The specification from plain values, with errors a person can act on."""
        from headscope.results.specification import validated

        return validated(self.spec, settings, where)

    def resolve(self, spec: Any, corpora: Mapping[str, Corpus | None]) -> Any:
        """The settings as far as the preset and the corpora decide them, before a model is loaded; an error where
        annotation is missing.
        """
        for name in self.corpora:
            corpus = corpora[name]
            if corpus is not None and self.annotation is not None and not corpus.layers({self.annotation}):
                paths = ", ".join(getattr(spec, name) or ("the corpus",))
                raise RunError(f"this study needs {self.annotation}, and {paths} has none", LAYERS[self.annotation])
        return spec.model_copy(update=spec.by_preset())

    @abstractmethod
    def work(self, spec: Any, context: StudyContext) -> Work:
        """One execution. What computes is imported here."""

    def refuse_rerun(self, results: Results) -> None:
        """An error for results that cannot be made again from what their folder holds."""
        return

    def findings(self, results: Results) -> list[str]:
        """What was found, in plain sentences: those of the study's module `findings`."""
        found: list[str] = import_module(f"{type(self).__module__}.findings").sentences(results)
        return found

    def replicates(self, results: Results) -> ReplicatedTables:
        """Numbers with their replicates by table and key, for studies that keep what they saw of single documents."""
        return {}

    def compare_further(self, results: Sequence[Results]) -> tuple[str, Table] | None:
        """The title of a further table of studies side by side and the table, if this kind has one. A RunError says
        why these have none.
        """
        return None

    def draw_compared(self, results: Sequence[Results], change: bool = False) -> Figure | None:
        """A figure of studies side by side in place of the usual one, if this kind has one; `change` asks for
        changes, not scores.
        """
        if change:
            raise RunError("change is for what studies of ablation score without each head", "Leave it out")
        return None

    def draw(self, figure: StudyFigure, results: Results, *args: Any, **choices: Any) -> Figure:
        """One of its figures."""
        drawn: Figure = getattr(import_module(f"{type(self).__module__}.figures"), figure.draw)(results, *args, **choices)
        return drawn

    def usual_folder(self, spec: StudySpec) -> Path:
        """Where results go if nothing else is said."""
        names = [*(getattr(spec, name) for name in self.arguments or ("model",)), spec.corpus[0]]
        return Path("runs") / "-".join([self.folder, *(Path(name).name.split(".")[0] for name in names)])
