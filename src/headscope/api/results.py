"""Results of runs and studies as objects with tables, figures and pages."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headscope.api.models import given_model
from headscope.core import html
from headscope.core.suggest import choose_from
from headscope.core.wording import number_of
from headscope.drawing.look import find_look, using
from headscope.errors import HeadscopeWarning, RunError
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.twins.heads import Twins

if TYPE_CHECKING:
    from headscope.api.models import GivenModel
    from headscope.comparison.alike import Alike
    from headscope.comparison.base import Comparison
    from headscope.comparison.rerun import Rerun, Texts
    from headscope.core.heads import Kind
    from headscope.drawing.figure import Drawing
    from headscope.engine.shards import Progress
    from headscope.stats.embedding import Method
    from headscope.widget.run import RunView


def warn(lines: Iterable[str]) -> None:
    """Issue a HeadscopeWarning for each line, at the line of the user's code that called headscope."""
    frame, depth = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("headscope."):
        frame, depth = frame.f_back, depth + 1
    for line in lines:
        warnings.warn(line, HeadscopeWarning, stacklevel=depth)


def _subject(results: Results) -> str:
    """Model and corpus by name, as in `mini on sampler`."""
    from headscope.views.run import corpus_name, model_name

    return " on ".join(filter(None, (model_name(results), corpus_name(results))))


def _warnings(results: Results) -> list[str]:
    return [f"warning: {line}" for line in results.warnings]


def _warned(results: Results) -> str:
    """The number of warnings as the end of a line; empty if there are none."""
    number = len(results.warnings)
    return f"; {number_of(number, 'warning')}" if number else ""


class Measured:
    """One measure of a run, as `run["entropy"]` gives it: its table of heads, its table of layers, its figure."""

    def __init__(self, results: Results, name: str) -> None:
        self._results = results
        self.name = name

    @property
    def table(self) -> Table:
        """One row per head and quantity."""
        return self._results[self.name]

    @property
    def layers(self) -> Table:
        """One row per layer and quantity: the mean over the layer's heads, if the measure has one."""
        return self._results[f"{self.name}_layers"]

    @property
    def slices(self) -> Table:
        """One row per slice, head and quantity, of a run with `by`: `slices.where(genre="news")`."""
        return self._results.by_slice(self.name)

    def plot(self, figure: str | None = None, **choices: Any) -> Drawing:
        """A figure of the measure, as a matplotlib figure; without a name, the one that shows the measure best.
        `choices` are the options of `headscope plot`: `quantity` of a heatmap (by default the first), those of figures
        of distances, and those of all figures: `width` ("column", "page" or millimetres), `font_size` in points,
        `style` ("colour", "grey" or "dark"), and `signature=True` to write the signature into the picture.

        >>> import headscope as hs
        >>> run = hs.run("mini", "sampler", ["tokens"], limit=2, replicates=0, gallery=0)
        >>> len(run["tokens"].plot("heatmap", quantity="to_sep").axes)  # the heads, and the scale of colours
        2
        """
        from headscope.figures import default_figure, draw

        name = figure or default_figure(self.name)
        if name == "heatmap" and "quantity" not in choices:
            choices["quantity"] = str(self.table["quantity"][0])
        return draw(name, self._results, **choices)

    def __repr__(self) -> str:
        return f"Measured({self.name!r} of {_subject(self._results)}: {len(self.table):,} rows)"

    def __str__(self) -> str:
        return f"{self.name} of {self._results.signature}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return html.card(f"{self.name} of {_subject(self._results)}", inside=self.table._repr_html_())


class Run:
    """The results of a run. `run["entropy"].table` is a table, `run["entropy"].plot()` a figure; `run.results` holds
    all tables by name.

    >>> import headscope as hs
    >>> run = hs.run("mini", "sampler", ["relations"], limit=2, replicates=0, gallery=0)
    >>> run.measures, list(run.results)
    (['relations'], ['relations', 'relations_best'])
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def signature(self) -> str:
        """The line that says what was measured, on what, and how."""
        return self.results.signature

    @property
    def measures(self) -> list[str]:
        """The names of the measures, for `run[...]`."""
        return list(self.results.measures)

    def __getitem__(self, name: str) -> Measured:
        if name not in self.measures:
            raise RunError(f"the run has no measure {name!r}", choose_from(name, self.measures, "It has"))
        return Measured(self.results, name)

    def slice(self, **choice: object) -> Run:
        """The results over the documents of one slice, for a run with `by`: `run.slice(genre="news")` has the same
        measures.

        >>> import headscope as hs
        >>> run = hs.run("mini", "sampler", ["entropy"], by="length", replicates=0, gallery=0)
        >>> run.slices
        {'65-256 words': 1, '257-1024 words': 18}
        >>> run.slice(length="65-256 words")["entropy"].table["documents"][0]
        1
        """
        return Run(self.results.slice(**choice))

    @property
    def slices(self) -> dict[str, int]:
        """The slices of a run with `by`, and the number of documents of each."""
        return {name: counted["documents"] for name, counted in self.results.manifest.get("slices", {"values": {}})["values"].items()}

    def heads(self, *others: Run) -> Table:
        """One row per head and significant label: what type the head is of (docs/head-types.md).
        `others` are further runs of the same model.

        >>> import headscope as hs
        >>> run = hs.run("mini-decoder", "repeats:20x8", ["sequences"], gallery=0, replicates=100)
        >>> [f"{row['layer']}-{row['head']}" for row in run.heads() if row["label"] == "induction"]
        ['5-3', '5-4', '7-3', '7-4']
        """
        return heads(self, *others)

    def alike(self, kind: Kind | None = None) -> Alike:
        """The distances between the heads of one kind, if the run measured `distances`: points, groups, neighbours,
        near-duplicates.
        """
        from headscope.comparison.alike import alike

        return alike(self.results, kind)

    def report(self, path: str | Path | None = None, studies: Sequence[StudyResult] = ()) -> Path:
        """Write the run as one offline HTML page, by default into its folder, and return its path. Each of `studies`
        gets a section.
        """
        from headscope.report import write_report

        return write_report(self.results, Path(path) if path is not None else None, [study.results for study in studies])

    def show(self, head: str | None = None) -> RunView:
        """A view for notebooks: all heads, and what is known of the chosen one."""
        from headscope.widget.run import RunView

        return RunView(self.results, head)

    @property
    def warnings(self) -> list[str]:
        """Warnings to read before a number is used: the model cannot read the texts, or a measure counted nothing."""
        return self.results.warnings

    def __repr__(self) -> str:
        return f"Run({_subject(self.results)}: {', '.join(self.measures)}{_warned(self.results)})"

    def __str__(self) -> str:
        tables = ", ".join(f"{name}: {len(self.results[name])} rows" for name in self.measures)
        return "\n  ".join([f"Run({self.signature})", tables, *(f"warning: {line}" for line in self.warnings)])

    def _repr_html_(self) -> str:
        names, layout = list(self.results), self.results.layout.spelled()
        rows = [(name, f"{len(self.results[name]):,}", ", ".join(self.results[name].columns)) for name in names]
        tables = html.table(("table", "rows", "columns"), rows, (True, False, True))
        return html.card(f"Run of {_subject(self.results)}, {layout}", _warnings(self.results), tables, self.signature)


class StudyResult:
    """The results of a study: `study["summary"]` is a table, `study.plot("westera1")` a figure, and `print(study)`
    prints the findings.

    >>> import headscope as hs
    >>> study = hs.ablate("mini", "sampler", parts=["layers"], limit=2, replicates=0)
    >>> study.tables
    ['summary', 'ablation_layers']
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def signature(self) -> str:
        """The line that says what was studied, on what, and how."""
        return self.results.signature

    @property
    def tables(self) -> list[str]:
        """The names of the tables, for `study[...]`."""
        return list(self.results)

    def __getitem__(self, name: str) -> Table:
        return self.results[name]

    def plot(self, figure: str, quantity: str | None = None, **choices: Any) -> Drawing:
        """A figure of the study by its name, as `headscope plot --help` lists them: `westera1` of flow, `michel1` of
        ablation. `quantity` names examples in figures that show some (`pos/2` of `tenney3`); `choices` are the options
        of the figure, such as `bars=True`, or another study as `structural=`, and those of all figures: `width`,
        `font_size`, `style`, `signature`.
        """
        from headscope.figures import draw

        chosen: dict[str, Any] = {name: choice.results if isinstance(choice, StudyResult) else choice for name, choice in choices.items()}
        return draw(figure, self.results, quantity=quantity, **chosen)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the study as one offline HTML page, by default into its folder, and return its path."""
        from headscope.report import write_report

        return write_report(self.results, Path(path) if path is not None else None)

    def __repr__(self) -> str:
        return f"StudyResult({self.results.study} of {_subject(self.results)}: {', '.join(self.tables)}{_warned(self.results)})"

    def __str__(self) -> str:
        return "\n".join([*self._sentences(), self.signature])

    def _repr_html_(self) -> str:
        tables = f"tables: {', '.join(self.tables)}"
        return html.card(f"{self.results.study} of {_subject(self.results)}", [*self._sentences(), tables], note=self.signature)

    def _sentences(self) -> list[str]:
        from headscope.views.words import findings

        return [*_warnings(self.results), *findings(self.results)]


@dataclass(frozen=True, repr=False)
class TwinHeads(Twins):
    """The results of `twins`: the heads of two models, their distances, and a figure. `results` holds the tables and
    what they depend on.

    >>> import headscope as hs
    >>> from headscope.api import TwinHeads
    >>> found = TwinHeads.of_study(hs.open_study("TWINS").results)  # doctest: +SKIP
    """

    results: Results | None = None

    @classmethod
    def of_study(cls, results: Results) -> Self:
        """The heads that a finished study of twins compared."""
        return replace(super().of_study(results), results=results)

    def table(self, name: str = "twins") -> Table:
        """`twins`: one row per head. `twins_layers`: per layer and quantity. `twins_matrix`: per layer of `a` and of
        `b`. `twins_summary`: per quantity of all heads.
        """
        return self.results[name] if self.results is not None and name in self.results else super().table(name)

    def plot(self, embedding: Method = "metric", sqrt: bool = False, **options: Any) -> Drawing:
        """A matplotlib figure of all heads of both models as points, and of the distances between their layers.
        `options` are those of all figures.
        """
        from headscope.studies.twins.figures import draw

        with using(find_look(options)):
            return draw(self, embedding, sqrt)

    def save(self, folder: str | Path) -> list[Path]:
        """Write all tables, as CSV and Parquet, and the figure into a folder."""
        from headscope.studies.twins.figures import save

        return save(self, Path(folder))

    def __repr__(self) -> str:
        return f"TwinHeads({len(self.a.ids)} heads of {self.a.name} and {len(self.b.ids)} of {self.b.name})"

    def __str__(self) -> str:
        from headscope.studies.twins.findings import of_twins

        return "\n".join([*of_twins(self), self.signature])

    def _repr_html_(self) -> str:
        from headscope.studies.twins.findings import of_twins

        return html.card(f"Heads of {self.a.name} and {self.b.name}", of_twins(self), note=self.signature)


class Compared:
    """Runs, or studies of one kind, side by side: `compared.differences["overall"]` is a table for further use,
    `compared.wide("best")` a table to read.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs in the tables: what differs between the runs."""
        return self.comparison.names

    @property
    def values(self) -> Mapping[str, Table]:
        """By name, tables with one row per number and run: what the number is of, `run`, `value`, `low`, `high`."""
        return self.comparison.values

    @property
    def differences(self) -> Mapping[str, Table]:
        """By name, tables with one row per number and pair of runs: `first`, `second`, `a`, `b`, `difference`, `low`,
        `high`, `p` (Holm's).
        """
        return self.comparison.differences

    def wide(self, table: str) -> Table:
        """A table to read, with one column per run and per difference."""
        return self.comparison.wide(table)

    def plot(self, table: str | None = None, change: bool = False, **options: Any) -> Drawing:
        """One of the tables as a matplotlib figure. For ablations the default is the scores without each head on each
        task or, with `change`, the loss in percent. `options` are those of all figures.
        """
        from headscope.figures.compared import draw

        with using(find_look(options)):
            return draw(self.comparison, table, change)

    def report(self, path: str | Path) -> Path:
        """Write everything as one offline HTML page, and return its path."""
        from headscope.report.comparison import write_comparison

        return write_comparison(self.comparison, Path(path))

    def __repr__(self) -> str:
        return f"Compared({', '.join(self.names)}: {', '.join(self.values)})"

    def __str__(self) -> str:
        table, before, after = self._first()
        return "\n".join([*before, repr(table), *after])

    def _repr_html_(self) -> str:
        table, before, after = self._first()
        return html.card(", ".join(self.names), before, table._repr_html_(), "; ".join(after))

    def _first(self) -> tuple[Table, list[str], list[str]]:
        """The first table, with the lines before it and after it."""
        name = next(iter(self.values))
        mind = [f"warning: {line}" for line in self.comparison.unlike]
        return self.wide(name), mind, [self.comparison.counted(name), f"intervals: {self.comparison.how}"]


def compare(*runs: Run | StudyResult | TwinHeads | str | Path, to: int = 1, pairs: bool = False) -> Compared:
    """Runs, or studies of one kind, side by side: each minus the one that `to` names, counted from 1, or all pairs
    (docs/compare.md).

    >>> import headscope as hs
    >>> settings = {"limit": 4, "gallery": 0}
    >>> runs = [hs.run("mini", "sampler", ["entropy"], weights=name, **settings) for name in ("trained", "random")]
    >>> hs.compare(*runs).names
    ('trained weights', 'random weights')
    """
    from headscope.comparison.studies import compare_any

    return Compared(compare_any([Path(run) if isinstance(run, str | Path) else results_of(run) for run in runs], to, pairs))


def heads(*runs: Run | str | Path) -> Table:
    """One row per head and significant label, by one or several runs of one model, the most informative label of a head
    first: `kind`, `layer`, `head`, `label`, `quantity`, `value`, `low`, `high`, `n`, `documents`, `baseline`,
    `survives`.

    >>> import headscope as hs
    >>> table = hs.heads("TEXT", "REPEATS")  # doctest: +SKIP
    >>> table.where(label="induction")  # doctest: +SKIP
    """
    from headscope.results.head_labels import head_labels

    if not runs:
        raise RunError("no run was named", "Give a run, or the folder of one")
    return head_labels(*(run.results if isinstance(run, Run) else Results.open_run(Path(run)) for run in runs)).table()


def results_of(results: Run | StudyResult | TwinHeads) -> Results:
    """The tables of a run or a study, and what they depend on."""
    if results.results is None:
        raise RunError("this comparison of heads was made from numbers alone", "Give one that headscope.twins made")
    return results.results


def rerun(
    run: str | Path | Run | StudyResult | TwinHeads,
    out: str | Path | None = None,
    *,
    model: GivenModel | None = None,
    other: GivenModel | None = None,
    corpus: Texts | None = None,
    dev: Texts | None = None,
    look: Texts | None = None,
    device: str | None = None,
    engine: str = "local",
    workers: int = 2,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> Rerun:
    """Repeat a run or a study with its settings, and compare every table and state with the results in its folder.

    The new results are written to `out`, or to a folder beside the old one that is removed if all is identical.
    `model`, the corpora and the `other` model of twins need to be named only if they were moved. If their content has
    changed, an error is raised before anything is computed. `notify` receives a line for each version that has changed.

    >>> import headscope as hs, tempfile
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> _ = hs.run("mini", "sampler", ["entropy"], folder, limit=2, replicates=0, gallery=0)
    >>> hs.rerun(folder).identical
    True
    """
    from headscope.comparison.rerun import rerun as make_again

    results = Results.open(Path(run)) if isinstance(run, str | Path) else results_of(run)
    texts_by_name = {"corpus": corpus, "dev": dev, "look": look}
    corpora = {name: texts for name, texts in texts_by_name.items() if texts is not None}
    how: dict[str, Any] = {
        "model": None if model is None else given_model(model),
        "other": None if other is None else given_model(other),
        "device": device,
        "engine": engine,
        "workers": workers,
        "progress": progress,
        "notify": notify,
    }
    return make_again(results, Path(out) if out is not None else None, corpora=corpora, **how)


def open_run(path: str | Path) -> Run:
    """The run in a folder that `headscope run` or `hs.run(..., out=)` wrote. An interrupted run is refused: resume it
    first.

    >>> import headscope as hs
    >>> run = hs.open_run("RUN")  # doctest: +SKIP
    >>> run["tokens"].table.where(quantity="to_sep").sort("value", descending=True).head(3)  # doctest: +SKIP
    """
    return Run(Results.open_run(Path(path)))


def open_study(path: str | Path) -> StudyResult:
    """The study in a folder: flow, ablation, a probe, keywords, twins, a replication or any other.

    >>> import headscope as hs
    >>> study = hs.open_study("ABLATED")  # doctest: +SKIP
    >>> study["ablation"].sort("difference", descending=True).head(3)  # doctest: +SKIP
    """
    results = Results.open(Path(path))
    if results.study is None:
        raise RunError(f"{path} holds a run", "Open it with headscope.open_run")
    return StudyResult(results)
