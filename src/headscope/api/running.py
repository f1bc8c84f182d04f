"""Training models, and running measures over texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.api.corpora import Texts, corpus_or_names
from headscope.api.models import given_model, load, loaded_model, name_of
from headscope.api.results import Run, StudyResult, warn
from headscope.core.profile import profiling
from headscope.core.suggest import choose_from
from headscope.corpora import Corpus, read
from headscope.errors import MeasureError, ModelError

if TYPE_CHECKING:
    from headscope.api.models import GivenModel
    from headscope.core.document import Document
    from headscope.core.heads import HeadId
    from headscope.engine.shards import Progress
    from headscope.engine.spec import RunSpec
    from headscope.gallery.grids import Level, Specials
    from headscope.measures.own import Named
    from headscope.models.finetuning.recipe import TrainedModel
    from headscope.models.inspection.summary import ModelDescription
    from headscope.models.loading.in_memory import ModelInMemory
    from headscope.models.model import Model
    from headscope.results.results import Results
    from headscope.runs.estimate import RunEstimate
    from headscope.studies.flow.influence import Layer
    from headscope.studies.keywords.finder import Finder
    from headscope.widget.keywords import KeywordView
    from headscope.widget.view import View

    Measures = Named | Sequence[Named] | Mapping[str, Mapping[str, Any]]

DEFAULT_MEASURES = ("positions", "tokens", "entropy")  # headscope.measures.DEFAULT, without importing torch


def inspect(
    model: GivenModel = "mini",
    device: str | None = None,
    dtype: str | None = None,
    *,
    lengths: Sequence[int] = (),
    batch: int = 1,
) -> ModelDescription:
    """What a model is, how its attention is read, what it predicts, and the memory of a batch of texts by their length,
    on one screen when printed. `lengths` are further rows of the table of memory.

    >>> import headscope as hs
    >>> summary = hs.inspect("mini")
    >>> summary.facts["attention"], summary.facts["positions"]
    ('encoder, 12 layers × 12 heads, 144 heads in all', 'learned, absolute')
    """
    from headscope.models.inspection.summary import ModelDescription

    return ModelDescription.of(load(model, device=device, dtype=dtype), lengths, batch)


def train(
    corpus: Texts,
    out: str | Path,
    model: GivenModel = "mini",
    dev: Texts | None = None,
    *,
    device: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **recipe: Any,
) -> TrainedModel:
    """Fine-tune a model on labelled texts and save it into the folder `out`, which `load(out, head=True)` reads.

    `dev` is the corpus that the model is tested on; without it a part of the documents is held out. `recipe` may have
    `labels`, `epochs`, `batch`, `rate`, `warmup`, `weight_decay`, `checks`, `patience`, `held_out`, `metric`, `limit`,
    `max_length` and `seed` (docs/training.md).

    >>> import headscope as hs
    >>> hs.train("train.tsv", "sst2", dev="dev.tsv", epochs=2)  # doctest: +SKIP
    >>> study = hs.ablate("sst2", "dev.tsv")  # doctest: +SKIP
    """
    from headscope.models.finetuning.recipe import TrainingRecipe
    from headscope.models.finetuning.training import train as train_model

    known = [field.name for field in fields(TrainingRecipe)]
    if unknown := [name for name in recipe if name not in known]:
        raise ModelError(f"there is no setting {unknown[0]!r}", choose_from(unknown[0], known, "Use"))
    texts, tried = read(corpus), None if dev is None else read(dev)
    return train_model(texts, out, given_model(model), tried, TrainingRecipe(**recipe), device, overwrite, progress)


def run(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    measures: Measures = DEFAULT_MEASURES,
    out: str | Path | None = None,
    *,
    device: str | None = None,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    gpus_per_worker: float | None = None,
    readers: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    gallery: int = 96,
    profile: bool = False,
    **settings: Any,
) -> Run:
    """Measure a model's heads over a corpus in one pass.

    `corpus` is what `read` takes: names of files, a list of texts, a table, a dataset, ... `settings` are those of a
    specification: `unit`, `preset`, `limit`, ...

    `measures` are names, names with options (`{"entropy": {"level": "word"}}`), or your own measures: classes, or their
    places, as in `"reach.py:Reach"` (docs/adding-a-measure.md). `gallery` is the number of texts from which the gallery
    is chosen (docs/runs.md); it changes no number. `by` is a column of the documents, whose values divide the corpus
    into slices (docs/slices.md). `map` is what is measured: attention `weights`, the `norm` of what heads carry, or
    `value-zeroing` (docs/maps.md). `readers` processes read and encode texts ahead of the model. With `profile`, a
    table says where the time went.

    >>> import headscope as hs
    >>> run = hs.run("mini", "sampler", ["entropy"], limit=8)
    >>> run["entropy"].table.where(quantity="entropy").columns[:5]
    ['kind', 'layer', 'head', 'quantity', 'value']
    """
    from headscope.runs.execute import execute

    corpus = corpus_or_names(corpus, settings.get("on_error", "raise"))
    given = given_model(model)
    spec = _spec(given, corpus, measures, settings)
    if engine != "local" and (typed := [name for name in spec.own if name.startswith("__main__:")]):
        raise MeasureError(
            f"{typed[0].partition(':')[2]} is only known to this process", "For other processes put it into a file: reach.py:Reach"
        )
    with profiling() if profile else nullcontext() as times:
        results = execute(
            spec,
            Path(out) if out is not None else None,
            model=None if isinstance(given, str) else given,
            corpus=corpus if isinstance(corpus, Corpus) else None,
            device=device,
            engine=engine,  # type: ignore[arg-type]
            workers=workers,
            address=address,
            gpus_per_worker=gpus_per_worker,
            readers=readers,
            resume=resume,
            overwrite=overwrite,
            progress=progress,
            gallery=gallery,
        )
        if times is not None:
            print("\n".join(times.lines()))
    return _warned(results)


def plan(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    measures: Measures = DEFAULT_MEASURES,
    *,
    device: str | None = None,
    tried: int = 3,
    readers: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> RunEstimate:
    """What `run` with the same arguments would read, skip and cost. The corpus is read and cut into texts, and `tried`
    shards are timed.

    >>> import headscope as hs
    >>> estimate = hs.plan("mini", "sampler", ["entropy"], limit=4, tried=0)
    >>> estimate.shards, estimate.longest
    (1, 43)
    """
    from headscope.runs.estimate import plan_run

    corpus = corpus_or_names(corpus, settings.get("on_error", "raise"))
    given = given_model(model)
    return plan_run(
        _spec(given, corpus, measures, settings),
        model=None if isinstance(given, str) else given,
        corpus=corpus if isinstance(corpus, Corpus) else None,
        device=device,
        tried=tried,
        readers=readers,
        progress=progress,
    )


def _spec(model: Model | ModelInMemory | str, corpus: Texts, measures: Measures, settings: Mapping[str, Any]) -> RunSpec:
    """The specification of a run."""
    from headscope.engine.spec import make_spec

    name, paths = named(model, corpus)
    chosen, own_measures = _measures(measures)
    return make_spec({"model": name, "corpus": paths, "measures": chosen, **settings}, own=own_measures)


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
    """Measure given attention maps, without a model.

    `attention` is one text [layers, heads, T, T] with its T `tokens`; a list of texts, which may differ in length, with
    a list of tokens for each; the tuple of layers that transformers returns (`outputs.attentions`), for one text or for
    a batch, whose padding is cut off; or one or more files (.npz, .safetensors) that hold maps and tokens. Arrays can
    be of NumPy, torch (any float type and device), JAX, or of anything with `__dlpack__` or `__array__`.

    `roles` (`word`, `cls`, `sep`, `special`), `words` (one number per token, None for special ones), `annotation`
    (headscope Words) and `documents` (what intervals resample) are given like `tokens`. `options` are `preset`, `rows`,
    `causal`, `replicates`, `seed`, `gallery`, `out` and `overwrite`.

    >>> import numpy as np, headscope as hs
    >>> attention = np.full((2, 2, 3, 3), 1 / 3)  # two layers of two heads that attend evenly to three tokens
    >>> run = hs.measure(attention, ["[CLS]", "yes", "[SEP]"], ["tokens"])
    >>> [round(value, 3) for value in run["tokens"].table.where(quantity="to_sep")["value"]]
    [0.333, 0.333, 0.333, 0.333]
    """
    from headscope.runs.given_maps import GivenMaps, measure_maps, read_maps
    from headscope.runs.map_arrays import map_array, text_arrays

    if "by" in options:
        raise MeasureError(f"maps have no column {options['by']!r}, since they have no corpus", "Omit by, or run on a corpus")
    if tokens is None:
        paths = [attention] if isinstance(attention, str | Path) else list(attention)
        if not all(isinstance(path, str | Path) for path in paths):
            raise MeasureError("maps were given without tokens", "Give the tokens of each text, or files that hold them")
        return _warned(measure_maps([read_maps(path) for path in paths], _measures(measures)[0], **options))
    single = bool(tokens) and isinstance(tokens[0], str)
    texts = [map_array(attention)] if single else text_arrays(attention, tokens)
    parts = {"tokens": tokens, "roles": roles, "words": words, "annotation": annotation, "document": documents}
    lists: dict[str, list[Any]] = {name: [values] if single else list(values) for name, values in parts.items() if values is not None}
    for name, values in lists.items():
        if len(values) != len(texts):
            raise MeasureError(f"{len(values)} {name} for {len(texts)} texts", "Give one for each text")
    maps = []
    for number, (array, dtype) in enumerate(texts):
        parts_of_text: dict[str, Any] = {
            name: values[number] if name == "document" else tuple(values[number]) for name, values in lists.items()
        }
        if single and documents is not None and not isinstance(documents, str):
            parts_of_text["document"] = documents[0]
        maps.append(GivenMaps(array, dtype=dtype, name=f"text {number + 1}", **parts_of_text))
    return _warned(measure_maps(maps, _measures(measures)[0], **options))


def _warned(results: Results) -> Run:
    """The results as a run, after their warnings are issued as Python warnings."""
    warn(results.warnings)
    return Run(results)


def view(
    model: GivenModel,
    text: str | Document,
    second: str | None = None,
    heads: str | Sequence[str | HeadId] | None = None,
    *,
    level: Level | None = None,
    specials: Specials | None = None,
    max_length: int | None = None,
    measure: str | Sequence[str] | None = None,
    layer: Layer | Sequence[Layer] | None = None,
    highlight: str | Sequence[str] = (),
    relation: str | None = None,
    generate: int | None = None,
    temperature: float = 0.0,
    seed: int = 0,
) -> View:
    """What a model's heads look at in one text: drawn in a notebook, or saved with `.save("page.html")` or
    `.save("figure.svg")`.

    `text` is plain text, or an annotated document of a corpus. `second` is the other text of a pair, or what the
    decoder of an encoder-decoder reads. `heads` are those to show first, as in `["8-10", "5-4"]`, or `"all"` for
    thumbnails of all heads; without them, the head that links far words most clearly. `level` is `token` or `word`,
    `specials` is `show`, `hide` or `renormalise`.

    `measure` (`A`, `G`, `G*`, `rollout`, `norms`, or several) shows the influence between words as a heatmap, of a
    `layer` or, without one or with `"mean"`, as the mean over layers; `.influence("G", 3)` has the numbers. `highlight`
    names links and words to show in red, as in `["opened→door", "the:2"]`; `relation` names a relation of an annotated
    text, as in `"obj"`.

    With `generate` the text is a prompt that a decoder continues by this many tokens, greedily or, with a
    `temperature`, by seeded sampling; `.generated` is the generated text, `.step(3, "5-3")` a head's attention when the
    third token was chosen (docs/generation.md). A loaded model needs `head=True`.

    >>> import headscope as hs
    >>> hs.view("mini", "The keys to the cabinet are on the table.", heads=["8-11"]).grid("8-11").rows[:3]
    ('[CLS]', 'The', 'keys')
    >>> hs.view("mini-decoder", "The keys to the cabinet are on the", generate=4).generated
    ' right hand, and'
    """
    from headscope.widget.view import ALL, View

    decoding = None
    if generate is not None:
        from headscope.models.generation import Decoding

        decoding = Decoding(generate, temperature, seed)
    return View(
        loaded_model(model, head=generate is not None),
        text,
        second,
        None if heads is None else ALL if heads == ALL else _list(heads),
        level,
        specials,
        max_length,
        _list(measure) if measure is not None else None,
        _list(layer) if layer is not None else None,
        _list(highlight),
        relation,
        decoding,
    )


def _list(values: Any) -> list[Any]:
    """Several values, or one, which may be a string, as a list."""
    return list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]


def keywords(
    text: str | Sequence[str],
    model: GivenModel | None = None,
    learned: str | Path | StudyResult | Corpus | Finder | None = None,
    *,
    top: int = 15,
    device: str | None = None,
    progress: Progress | None = None,
) -> KeywordView:
    """The keyphrases of a text, ranked by weights of attention that were learnt from other texts.

    `learned` is a study of keywords (its folder, or the result of `probe_keywords`), or a corpus with keyphrases; by
    default the embedded sampler, from which learning takes some seconds. `model` is by default that of the study, or
    `mini`. The `finder` of the result can be given as `learned` again. The result is drawn in a notebook, or saved with
    `.save("page.html")` or `.save("figure.svg")`.

    >>> import headscope as hs
    >>> found = hs.keywords("The ferry was late again, and the harbour was full of lorries.")  # doctest: +SKIP
    >>> found.phrases[0].text, found.words[1]  # doctest: +SKIP
    ('harbour', ('ferry', 0.896971309122279))
    """
    from headscope.studies.keywords.finder import Finder, plain
    from headscope.widget.keywords import KeywordView

    loaded = None if model is None else loaded_model(model, device=device)
    finder = learned if isinstance(learned, Finder) else _finder(loaded, learned, device, progress)
    if loaded is not None and finder.model.fingerprint != loaded.fingerprint:
        raise ModelError(f"the finder was trained with {finder.model.name}, not with {loaded.name}", "Omit the model, or learn from it")
    texts = [text] if isinstance(text, str) else list(text)
    names = ["text"] if isinstance(text, str) else [f"text {number}" for number in range(1, len(texts) + 1)]
    documents = [replace(plain(content), id=name) for name, content in zip(names, texts, strict=True)]
    return KeywordView([finder.find(document) for document in documents], finder, top)


def _finder(
    model: Model | None, learned: str | Path | StudyResult | Corpus | None, device: str | None, progress: Progress | None
) -> Finder:
    from headscope.studies.keywords.finder import Finder, learn

    if isinstance(learned, str | Path):
        return Finder.open(learned, model, device)
    if isinstance(learned, StudyResult):
        return Finder.of(learned.results, model, device)
    model = model or load("mini", device=device)
    if learned is None:
        return learn(model, progress=progress)
    return learn(model, learned, ", ".join(Path(name).name for name in learned.names), progress=progress)


def named(model: Model | ModelInMemory | str, corpus: Texts) -> tuple[str, tuple[str, ...]]:
    """The names of a model and of a corpus in a specification."""
    named = [corpus] if isinstance(corpus, str | Path) else corpus
    paths = tuple(str(path) for path in (named.names if isinstance(named, Corpus) else named))
    return name_of(model), paths


def _measures(measures: Measures) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    from headscope.measures import REGISTRY
    from headscope.measures.own import named

    return named(measures, REGISTRY)
