"""The Python interface: load, train, read, run, measure, view, twins, flow, open_run, open_study."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.document import Word
from headscope.corpora import Corpus, read
from headscope.errors import MeasureError, ModelError, RunError
from headscope.runs.results import Results
from headscope.runs.table import Table
from headscope.runs.twin_heads import Twins

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from headscope.core.heads import HeadId, Kind
    from headscope.models.model import Model
    from headscope.models.recipe import Trained
    from headscope.runs.alike import Alike
    from headscope.runs.grids import Level, Specials
    from headscope.runs.work import Progress
    from headscope.stats.embedding import Method
    from headscope.widget.run import RunView
    from headscope.widget.view import View

Measures = Sequence[str] | Mapping[str, Mapping[str, Any]]
DEFAULT_MEASURES = ("positions", "tokens", "entropy")  # headscope.measures.DEFAULT, without importing torch


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
        """One row a layer and quantity: the mean over the layer's heads, where the measure has one."""
        return self._results[f"{self.name}_layers"]

    def plot(self, figure: str | None = None, **choices: Any) -> Figure:
        """The measure's figure, as a matplotlib figure; `choices` are those of figures of distances, as `headscope plot` has them."""
        from headscope.figures import default_figure, draw

        return draw(figure or default_figure(self.name), self._results, **choices)

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
        return list(self.results.measures)

    def __getitem__(self, name: str) -> Measured:
        if name not in self.measures:
            raise RunError(f"the run has no measure {name!r}", f"It has {', '.join(self.measures)}")
        return Measured(self.results, name)

    def alike(self, kind: Kind | None = None) -> Alike:
        """How far apart the heads of one kind are, if the run measured `distances`: points, groups, neighbours, near twins."""
        from headscope.runs.alike import alike

        return alike(self.results, kind)

    def report(self, path: str | Path | None = None, studies: Sequence[Study] = ()) -> Path:
        """Write the run as one offline HTML page, by default into its folder, and return where it is. `studies` have their part in it."""
        from headscope.report import write_report

        return write_report(self.results, Path(path) if path is not None else None, [study.results for study in studies])

    def show(self, head: str | None = None) -> RunView:
        """Every head and what is known of the chosen one, to look through in a notebook."""
        from headscope.widget.run import RunView

        return RunView(self.results, head)

    def __repr__(self) -> str:
        return f"Run({self.signature})\n  " + ", ".join(f"{name}: {len(self.results[name])} rows" for name in self.measures)


class Study:
    """What a study found: `study["summary"]` is a table, `study.plot("westera1")` a figure."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def signature(self) -> str:
        """The line that says what was looked at, on what, and how."""
        return self.results.signature

    @property
    def tables(self) -> list[str]:
        """What can be asked for with `study[...]`."""
        return list(self.results)

    def __getitem__(self, name: str) -> Table:
        return self.results[name]

    def plot(self, figure: str, quantity: str | None = None) -> Figure:
        """A figure of the study: of flow `westera1`, `westera2`, `trees` or `agreement`; of ablation `michel1`, `michel3`, `histogram` or
        `importance`.
        """
        from headscope.figures import draw

        return draw(figure, self.results, quantity=quantity)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the study as one offline HTML page, by default into its folder, and return where it is."""
        from headscope.report import write_report

        return write_report(self.results, Path(path) if path is not None else None)

    def __repr__(self) -> str:
        from headscope.report.studies import findings

        return "\n".join([*findings(self.results), self.signature])


def load(
    name: str | Path = "mini", device: str | None = None, dtype: str = "float32", random: int | None = None, head: bool = False
) -> Model:
    """A model ready to be looked at: `mini` (embedded), a local folder, or a hub id; with `random`, a seed, untrained but for its
    embeddings; with `head`, able to predict, which `saliency` needs.
    """
    from headscope.models.load import load as load_model

    return load_model(name, device, dtype, random, head)


def train(
    corpus: Corpus | str | Path | Sequence[str | Path],
    out: str | Path,
    model: str | Path = "mini",
    dev: Corpus | str | Path | Sequence[str | Path] | None = None,
    *,
    device: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **recipe: Any,
) -> Trained:
    """Fine-tune a model on labelled texts and save it into the folder `out`, which `load(out, head=True)` reads.

    `dev` is what it is tested on; without it part of the documents is held out. `recipe` may be `labels`, `epochs`, `batch`, `rate`,
    `warmup`, `weight_decay`, `checks`, `patience`, `held_out`, `metric`, `limit`, `max_length` and `seed` (docs/training.md).
    """
    from headscope.models.recipe import Recipe
    from headscope.models.training import train as train_model

    known = [field.name for field in fields(Recipe)]
    if unknown := [name for name in recipe if name not in known]:
        raise ModelError(f"no setting is called {unknown[0]!r}", f"Use {', '.join(known)}")
    texts = _corpus(corpus)
    return train_model(texts, out, model, None if dev is None else _corpus(dev), Recipe(**recipe), device, overwrite, progress)


def _corpus(named: Corpus | str | Path | Sequence[str | Path]) -> Corpus:
    if isinstance(named, Corpus):
        return named
    return read(named) if isinstance(named, str | Path) else read(*named)


def run(
    model: Model | str | Path = "mini",
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
    gallery: int = 96,
    **settings: Any,
) -> Run:
    """Measure a model's heads over a corpus in one pass. `settings` are those of a specification: `unit`, `preset`, `limit`, ...

    `gallery` is the number of texts looked at again for maps to show (docs/runs.md); it changes no number.

    >>> import headscope as hs
    >>> run = hs.run("mini", "sampler", ["entropy"], limit=8)
    >>> run["entropy"].table.where(quantity="entropy").columns[:5]
    ['kind', 'layer', 'head', 'quantity', 'value']
    """
    from headscope.runs.execute import execute
    from headscope.runs.spec import make_spec

    name, paths = _named(model, corpus)
    spec = make_spec({"model": name, "corpus": paths, "measures": _measures(measures), **settings})
    results = execute(
        spec,
        Path(out) if out is not None else None,
        model=None if isinstance(model, str | Path) else model,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        device=device,
        engine=engine,  # type: ignore[arg-type]
        workers=workers,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
        gallery=gallery,
    )
    return Run(results)


def measure(
    attention: Any,
    tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    measures: Measures = DEFAULT_MEASURES,
    *,
    roles: Sequence[Any] | None = None,
    words: Sequence[Any] | None = None,
    annotation: Sequence[Any] | None = None,
    documents: Sequence[str] | None = None,
    **options: Any,
) -> Run:
    """Measure attention maps that are already there.

    `attention` is one text [layers, heads, T, T] with its T `tokens` (also as the tuple of layers that transformers returns
    for a batch of one), a list of texts with a list of tokens, or one or more files (.npz, .safetensors) that hold both.
    `roles` (`word`, `cls`, `sep`, `special`), `words` (a number a token, None for special ones), `annotation` (headscope Words)
    and `documents` (what intervals resample) are given like `tokens`. `options` are `preset`, `rows`, `causal`, `replicates`,
    `seed`, `gallery`, `out` and `overwrite`.
    """
    from headscope.runs.map_files import read_maps
    from headscope.runs.maps import GivenMaps, measure_maps

    if tokens is None:
        paths = [attention] if isinstance(attention, str | Path) else list(attention)
        if not all(isinstance(path, str | Path) for path in paths):
            raise MeasureError("maps without tokens", "Give the tokens of each text, or files that hold them")
        return Run(measure_maps([read_maps(path) for path in paths], _measures(measures), **options))
    single = bool(tokens) and isinstance(tokens[0], str)
    texts = [attention] if single else list(attention)
    given = {"tokens": tokens, "roles": roles, "words": words, "annotation": annotation, "document": documents}
    lists: dict[str, list[Any]] = {name: [values] if single else list(values) for name, values in given.items() if values is not None}
    for name, values in lists.items():
        if len(values) != len(texts):
            raise MeasureError(f"{len(values)} {name} for {len(texts)} texts", "Give one for each text")
    maps = []
    for number, text in enumerate(texts):
        own: dict[str, Any] = {name: values[number] if name == "document" else tuple(values[number]) for name, values in lists.items()}
        if single and documents is not None and not isinstance(documents, str):
            own["document"] = documents[0]
        maps.append(GivenMaps(_array(text), name=f"text {number + 1}", **own))
    return Run(measure_maps(maps, _measures(measures), **options))


def _array(maps: Any) -> np.ndarray:
    """One text's maps as an array: from an array, a tensor, or transformers' tuple of layers [1, heads, T, T]."""
    import numpy as np

    if isinstance(maps, list | tuple):
        layers = [_array(layer) for layer in maps]
        if len({layer.shape for layer in layers}) != 1:
            raise MeasureError("the layers of a text have different shapes", "Give [layers, heads, T, T] for one text")
        stacked = np.stack(layers)
        return stacked[:, 0] if stacked.ndim == 5 and stacked.shape[1] == 1 else stacked
    return np.asarray(maps.detach().cpu() if hasattr(maps, "detach") else maps)


def view(
    model: Model | str | Path,
    text: str,
    second: str | None = None,
    heads: str | Sequence[str | HeadId] | None = None,
    *,
    level: Level | None = None,
    specials: Specials | None = None,
    max_length: int | None = None,
) -> View:
    """What a model's heads look at in one text: drawn in a notebook, or saved with `.save("page.html")` or `.save("figure.svg")`.

    `second` is the other text of a pair, or what the decoder of an encoder-decoder reads. `heads` are those to show first, as in
    `["8-10", "5-4"]`; without them, the head that links far words most clearly. `level` is `token` or `word`, `specials`
    is `show`, `hide` or `renormalise`.

    >>> import headscope as hs
    >>> hs.view("mini", "The keys to the cabinet are on the table.", heads=["8-11"]).grid("8-11").rows[:3]
    ('[CLS]', 'The', 'keys')
    """
    from headscope.widget.view import View

    named = [heads] if isinstance(heads, str) else heads
    return View(load(model) if isinstance(model, str | Path) else model, text, second, named, level, specials, max_length)


class TwinHeads(Twins):
    """What `twins` found, with its picture."""

    def plot(self, embedding: Method = "metric", sqrt: bool = False) -> Figure:
        """All heads of both models as points, and how far their layers are apart, as a matplotlib figure."""
        from headscope.figures.twins import draw

        return draw(self, embedding, sqrt)

    def save(self, folder: str | Path) -> list[Path]:
        """Write all tables, as CSV and Parquet, and the figure into a folder."""
        from headscope.figures.twins import save

        return save(self, Path(folder))

    def __repr__(self) -> str:
        from headscope.runs.twin_sentences import sentences

        return "\n".join([*sentences(self), self.signature])


def twins(
    first: Model | str | Path,
    second: Model | str | Path,
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    **settings: Any,
) -> TwinHeads:
    """Whether the heads of two models have twins in each other: all heads side by side, over the texts that both can read.

    `settings` are `level` (`word`, or `token` for models that read the same tokens), `kind`, `control`, `epsilons`, `least`, `unit`,
    `max_length`, `limit`, `word_rows`, `replicates`, `seed`, `batch_tokens`, `device`, `dtype`, `format` and `progress` (docs/alike.md).

    >>> import headscope as hs
    >>> found = hs.twins("mini", hs.load("mini", random=0), limit=4, replicates=0)
    >>> found.table("twins_summary").columns
    ['side', 'quantity', 'value', 'low', 'high', 'n']
    """
    from headscope.runs.twins import twins as find

    known = inspect.signature(find).parameters
    if unknown := [name for name in settings if name not in known]:
        raise RunError(f"no setting is called {unknown[0]!r}", f"Use {', '.join(list(known)[3:])}")
    found = find(first, second, corpus, **settings)
    return TwinHeads(**{field.name: getattr(found, field.name) for field in fields(found)})


def flow(
    model: Model | str | Path = "mini",
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    out: str | Path | None = None,
    *,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Study:
    """How much words bear on each other, by attention and by gradients, and whether that goes with coreference, parts of speech and trees.

    `settings` are those of a specification (docs/flow.md): `measures`, `parts`, `norm`, `limit`, `items`, `draw`, `preset`, ...

    >>> import headscope as hs
    >>> study = hs.flow("mini", "sampler", measures=["A", "G"], norm="sum", parts=["trees"], limit=4, replicates=0)
    >>> study["flow_tree_distances"].columns[:5]
    ['measure', 'variant', 'method', 'layer', 'value']
    """
    from headscope.flows.spec import make_flow_spec
    from headscope.flows.study import study

    name, paths = _named(model, corpus)
    spec = make_flow_spec({"model": name, "corpus": paths, **settings})
    results = study(
        spec,
        Path(out) if out is not None else None,
        model=None if isinstance(model, str | Path) else model,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        device=device,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
    )
    return Study(results)


def ablate(
    model: Model | str | Path = "mini",
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    out: str | Path | None = None,
    *,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Study:
    """What a model loses without some of its heads: one by one, all but one, layer by layer, more and more of them.

    `settings` are those of a specification (docs/ablation.md): `score`, `parts`, `how`, `limit`, ... A loaded model needs `head=True`.
    `score` may be a function of your own: from an array [example, number], the numbers being `loss`, `right`, `count`, `found` and
    `truth` of each text, to a score of which more is better.

    >>> import headscope as hs
    >>> study = hs.ablate("mini", "sampler", parts=["layers"], limit=2, replicates=0)
    >>> study["ablation_layers"].columns[:4]
    ['kind', 'layer', 'score', 'difference']
    """
    from headscope.ablation.spec import make_ablation_spec
    from headscope.ablation.study import ablate as study

    name, paths = _named(model, corpus)
    function = settings["score"] if callable(settings.get("score")) else None
    if function is not None:
        settings["score"] = "own"
    results = study(
        make_ablation_spec({"model": name, "corpus": paths, **settings}),
        Path(out) if out is not None else None,
        model=None if isinstance(model, str | Path) else model,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        device=device,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
        function=function,
    )
    return Study(results)


def probe_edge(
    model: Model | str | Path = "mini",
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    dev: Corpus | str | Path | Sequence[str | Path] | None = None,
    out: str | Path | None = None,
    *,
    look: Corpus | str | Path | Sequence[str | Path] | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Study:
    """In which layers of a model labels of words and of pairs of words are to be found: edge probing (Tenney et al. 2019).

    Probes are trained on `corpus` and scored on `dev`, without it on a part of the documents; targets of `look` are shown one by one.
    `settings` are those of a specification (docs/edge-probing.md): `tasks`, `seeds`, `control`, `single`, `limit`, `preset`, ...

    >>> import headscope as hs
    >>> study = hs.probe_edge(tasks=["pos"], limit=20, seeds=1, checks=1, hidden=8, control=False, replicates=0)
    >>> study["summary"].columns[:5]
    ['task', 'n', 'embeddings', 'all_layers', 'expected_layer']
    """
    from headscope.probes.edge.spec import make_edge_spec
    from headscope.probes.edge.study import probe_edge as study

    name, paths = _named(model, corpus)
    others = {key: _named("", given)[1] for key, given in (("dev", dev), ("look", look)) if given is not None}
    results = study(
        make_edge_spec({"model": name, "corpus": paths, **others, **settings}),
        Path(out) if out is not None else None,
        model=None if isinstance(model, str | Path) else model,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        dev=dev if isinstance(dev, Corpus) else None,
        look=look if isinstance(look, Corpus) else None,
        device=device,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
    )
    return Study(results)


def _named(model: Model | str | Path, corpus: Corpus | str | Path | Sequence[str | Path]) -> tuple[str, tuple[str, ...]]:
    """What a model and a corpus are called in a specification."""
    named = [corpus] if isinstance(corpus, str | Path) else corpus
    paths = tuple(str(path) for path in (named.paths or ("memory",) if isinstance(named, Corpus) else named))
    return str(model) if isinstance(model, str | Path) else model.name, paths


def open_run(path: str | Path) -> Run:
    """The run in a folder."""
    return Run(Results.open_run(Path(path)))


def open_study(path: str | Path) -> Study:
    """The study in a folder."""
    results = Results.open(Path(path))
    if results.study is None:
        raise RunError(f"{path} holds a run", "Open it with headscope.open_run")
    return Study(results)


def _measures(measures: Measures) -> dict[str, dict[str, Any]]:
    if isinstance(measures, Mapping):
        return {name: dict(options) for name, options in measures.items()}
    return {name: {} for name in ([measures] if isinstance(measures, str) else measures)}


__all__ = [
    "Measured",
    "Run",
    "Study",
    "TwinHeads",
    "Word",
    "ablate",
    "flow",
    "load",
    "measure",
    "open_run",
    "open_study",
    "probe_edge",
    "read",
    "run",
    "twins",
    "view",
]
