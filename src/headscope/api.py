"""The Python interface: load, read, run, measure, open_run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.document import Word
from headscope.corpora import Corpus, read
from headscope.errors import MeasureError, RunError
from headscope.runs.results import Results
from headscope.runs.table import Table

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from matplotlib.figure import Figure

    from headscope.models.model import Model
    from headscope.runs.execute import Progress

Measures = Sequence[str] | Mapping[str, Mapping[str, Any]]
DEFAULT_MEASURES = ("positions", "tokens", "entropy")


class Measured:
    """One measure of a run: its table of heads, its table of layers, its figure."""

    def __init__(self, results: Results, name: str) -> None:
        self._results = results
        self.name = name

    @property
    def table(self) -> Table:
        """One row a head and quantity."""
        return self._results[self.name]

    @property
    def layers(self) -> Table:
        """One row a layer and quantity: the mean over the layer's heads."""
        return self._results[f"{self.name}_layers"]

    def plot(self, figure: str | None = None) -> Figure:
        """The measure's figure, as a matplotlib figure."""
        from headscope.figures import default_figure, draw

        return draw(figure or default_figure(self.name), self._results)

    def __repr__(self) -> str:
        return f"{self.name} of {self._results.signature}\n{self.table!r}"


class Run:
    """What a run found. `run["entropy"].table` is a table, `run["entropy"].plot()` a figure."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def signature(self) -> str:
        """The line that says what was measured, on what, and how."""
        return self.results.signature

    @property
    def measures(self) -> list[str]:
        """What can be asked for with `run[...]`."""
        return self.results.measures

    def __getitem__(self, name: str) -> Measured:
        if name not in self.measures:
            raise RunError(f"the run has no measure {name!r}", f"It has {', '.join(self.measures)}")
        return Measured(self.results, name)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the run as one offline HTML page, by default into its folder, and return where it is."""
        from headscope.report import write_report

        return write_report(self.results, Path(path) if path is not None else None)

    def __repr__(self) -> str:
        return f"Run({self.signature})\n  " + ", ".join(f"{name}: {len(self.results[name])} rows" for name in self.measures)


def load(name: str | Path = "mini", device: str | None = None, dtype: str = "float32") -> Model:
    """A model ready to be looked at: `mini` (embedded), a local folder, or a hub id."""
    from headscope.models.load import load as load_model

    return load_model(name, device, dtype)


def run(
    model: Model | str = "mini",
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    measures: Measures = DEFAULT_MEASURES,
    out: str | Path | None = None,
    *,
    device: str | None = None,
    engine: str = "local",
    workers: int = 2,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Measure a model's heads over a corpus in one pass. `settings` are those of a specification: `unit`, `preset`, `limit`, ...

    >>> import headscope as hs
    >>> run = hs.run("mini", "sampler", ["entropy"], limit=8)
    >>> run["entropy"].table.where(quantity="entropy").columns[:5]
    ['kind', 'layer', 'head', 'quantity', 'value']
    """
    from headscope.runs.execute import execute
    from headscope.runs.spec import make_spec

    named = [corpus] if isinstance(corpus, str | Path) else corpus
    paths = [str(path) for path in (named.paths or ("memory",) if isinstance(named, Corpus) else named)]
    name = model if isinstance(model, str) else model.name
    spec = make_spec({"model": name, "corpus": tuple(paths), "measures": _measures(measures), **settings})
    results = execute(
        spec,
        Path(out) if out is not None else None,
        model=None if isinstance(model, str) else model,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        device=device,
        engine=engine,  # type: ignore[arg-type]
        workers=workers,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
    )
    return Run(results)


def measure(
    attention: Float[np.ndarray, "layer head query key"] | Sequence[Float[np.ndarray, "layer head query key"]],
    tokens: Sequence[str] | Sequence[Sequence[str]],
    measures: Measures = DEFAULT_MEASURES,
    *,
    roles: Sequence[Any] | None = None,
    words: Sequence[Any] | None = None,
    annotation: Sequence[Any] | None = None,
    documents: Sequence[str] | None = None,
    **options: Any,
) -> Run:
    """Measure attention maps that are already there: one text [layers, heads, T, T], or a list of texts.

    `roles` (`word`, `cls`, `sep`, `special`), `words` (a number a token, None for special ones), `annotation` (headscope Words)
    and `documents` (what intervals resample) are given like `tokens`: one sequence for one text, a list of them for several.
    """
    from headscope.runs.maps import Maps, measure_maps

    single = not isinstance(attention, list | tuple)
    texts = [attention] if single else list(attention)
    given: dict[str, Sequence[Any] | None] = {
        "tokens": tokens,
        "roles": roles,
        "words": words,
        "annotation": annotation,
        "document": documents,
    }
    lists = {name: [values] if single and name != "document" else values for name, values in given.items() if values is not None}
    for name, values in lists.items():
        if len(values) != len(texts):
            raise MeasureError(f"{len(values)} {name} for {len(texts)} texts", "Give one for each text")

    import numpy as np

    maps = [
        Maps(
            np.asarray(text),
            name=f"text {number + 1}",
            **_one_text(lists, number),
        )
        for number, text in enumerate(texts)
    ]
    return Run(measure_maps(maps, _measures(measures), **options))


def _one_text(lists: Mapping[str, Sequence[Any]], number: int) -> dict[str, Any]:
    return {name: values[number] if name == "document" else tuple(values[number]) for name, values in lists.items()}


def open_run(path: str | Path) -> Run:
    """The run in a folder."""
    return Run(Results.open(Path(path)))


def _measures(measures: Measures) -> dict[str, dict[str, Any]]:
    if isinstance(measures, Mapping):
        return {name: dict(options) for name, options in measures.items()}
    return {name: {} for name in ([measures] if isinstance(measures, str) else measures)}


__all__ = ["Measured", "Run", "Word", "load", "measure", "open_run", "read", "run"]
