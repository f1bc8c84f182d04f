"""Studies: a question asked of a model and a corpus, answered by tables, figures and a part of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.api.corpora import Texts, corpus_or_names
from headscope.api.models import given_model, loaded_model, name_of
from headscope.api.results import StudyResult, TwinHeads, warn
from headscope.api.running import named
from headscope.corpora import Corpus
from headscope.corpora.inputs import names_files
from headscope.errors import RunError
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.api.models import GivenModel
    from headscope.engine.shards import Progress
    from headscope.studies.ablation.prune import PruneResult
    from headscope.studies.base import Study
    from headscope.studies.plan import StudyEstimate
    from headscope.studies.spec import StudySpec


def flow(model: GivenModel = "mini", corpus: Texts = "sampler", out: str | Path | None = None, **settings: Any) -> StudyResult:
    """Influence between words, by attention and by gradients, and whether it goes with coreference, parts of speech and
    trees.

    `settings` are those of a specification (docs/flow.md): `measures`, `parts`, `norm`, `limit`, `items`, `draw`,
    `preset`, ...

    >>> import headscope as hs
    >>> study = hs.flow("mini", "sampler", measures=["A", "G"], norm="sum", parts=["trees"], limit=4, replicates=0)
    >>> study["flow_tree_distances"].columns[:5]
    ['measure', 'variant', 'method', 'layer', 'value']
    """
    return study("flow", model, out, corpus=corpus, **settings)


def twins(
    first: GivenModel,
    second: GivenModel,
    corpus: Texts = "sampler",
    out: str | Path | None = None,
    **settings: Any,
) -> TwinHeads:
    """The twins of the heads of two models: for each head the nearest head of the other model, over the texts that both
    models can read.

    `settings` are those of a specification (docs/alike.md): `level` (`word`, or `token` for models that read the same
    tokens), `kind` (one, or one for each model), `control`, `epsilons`, `least`, `unit`, `word_rows`, `limit`, ...

    >>> import headscope as hs
    >>> found = hs.twins("mini", hs.load("mini", random=0), limit=4, replicates=0)
    >>> found.table("twins_summary").columns
    ['side', 'quantity', 'value', 'low', 'high', 'n', 'documents']
    """
    if not isinstance(first, str | Path):
        first = loaded_model(first)
    if isinstance(second, str | Path) and not isinstance(first, str | Path):
        # A loaded model may have the name of another one: the one that is named here is loaded.
        from headscope.models.load import load

        second = load(second, settings.get("device") or str(first.device), settings.get("dtype", "float32"))
    if not isinstance(second, str | Path):
        settings["other_model"] = second = loaded_model(second)
    return TwinHeads.of_study(study("twins", first, out, corpus=corpus, other=name_of(given_model(second)), **settings).results)


def study(
    name: str,
    model: GivenModel = "mini",
    out: str | Path | None = None,
    *,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> StudyResult:
    """The results of a study, which is named as in `run.json`: `flow`, or a study of yours that was added to
    `headscope.studies.registry.REGISTRY`.

    A model and corpora may be names or objects. `out` is a folder for the results; `resume` continues the study in it,
    and `overwrite` replaces it. `progress` is called with the share that is done, and the numbers of texts and tokens.
    All other arguments are settings.

    >>> import headscope as hs
    >>> result = hs.study("flow", corpus="sampler", measures=["A"], parts=["trees"], limit=2, replicates=0)
    >>> result["flow_tree_distances"]["measure"][0]
    'A'
    """
    from headscope.studies.execute import execute

    kind, spec, in_hand = _given(name, model, settings)
    how: dict[str, Any] = {"device": device, "resume": resume, "overwrite": overwrite, "progress": progress}
    return _warned(execute(kind, spec, Path(out) if out is not None else None, **how, **in_hand))


def plan_study(name: str, model: GivenModel = "mini", *, device: str | None = None, tried: float = 15.0, **settings: Any) -> StudyEstimate:
    """What `study` with the same arguments would read and cost. Its corpora are read, the study runs for about `tried`
    seconds, and the rest is estimated from that. No folder is written.

    >>> import headscope as hs
    >>> estimate = hs.plan_study("flow", corpus="sampler", measures=["A"], parts=["trees"], limit=2, replicates=0)
    >>> estimate.jobs, estimate.counts.texts, estimate.complete
    (1, 2, True)
    """
    from headscope.studies.plan import plan_study

    kind, spec, in_hand = _given(name, model, settings)
    return plan_study(kind, spec, device=device, tried=tried, **in_hand)


def _given(name: str, model: GivenModel, settings: dict[str, Any]) -> tuple[Study, StudySpec, dict[str, Any]]:
    """A study, its specification, and its arguments that are objects: the model, corpora, and those the study takes."""
    from headscope.studies.registry import REGISTRY

    kind, given = REGISTRY[name], given_model(model)
    on_error = settings.get("on_error", "raise")
    texts = {corpus: corpus_or_names(read, on_error) for corpus in kind.corpora if (read := settings.pop(corpus, None)) is not None}
    names = {corpus: named(given, read)[1] for corpus, read in texts.items()}
    in_hand: dict[str, Any] = {corpus: read for corpus, read in texts.items() if isinstance(read, Corpus)}
    options = {option: settings.pop(option) for option in [*settings] if option not in kind.spec.model_fields and option in kind.takes}
    spec = kind.make({"model": name_of(given), **names, **settings})
    return kind, spec, {"model": None if isinstance(given, str) else given, **in_hand, **options}


def ablate(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    out: str | Path | None = None,
    **settings: Any,
) -> StudyResult:
    """What a model loses without some of its heads: one by one, all but one, layer by layer, more and more of them.

    `settings` are those of a specification (docs/ablation.md): `score`, `parts`, `how`, `limit`, ... A loaded model
    needs `head=True`. `score` may be your own function of an array [example, number]; it returns a score of which more
    is better. The numbers of each text are `loss`, `right` and `count`, and for a classifier also `found` and `truth`.

    >>> import headscope as hs
    >>> study = hs.ablate("mini", "sampler", parts=["layers"], limit=2, replicates=0)
    >>> study["ablation_layers"].columns[:4]
    ['kind', 'layer', 'score', 'difference']
    """
    if callable(settings.get("score")):
        settings |= {"score": "own", "function": settings["score"]}
    return study("ablation", model, out, corpus=corpus, **settings)


def in_context(
    model: GivenModel = "mini-decoder",
    corpus: Texts = "repeats:50",
    chosen_on: Texts = "repeats:50@1",
    out: str | Path | None = None,
    **settings: Any,
) -> StudyResult:
    """What a language model gains from its context, with and without its strongest induction heads (Olsson et al.
    2022).

    Heads are chosen on the texts of `chosen_on` and scored on those of `corpus`. `settings` are those of a
    specification (docs/in-context.md): `heads`, `draws`, `by`, `how`, `early`, `late`, `width`, `max_length`, `limit`,
    ... A loaded model needs `head=True`.

    >>> import headscope as hs
    >>> study = hs.in_context("mini-decoder", "repeats:10x4", "repeats:10x4@1", heads=1, draws=1, replicates=0)
    >>> study["in_context_effects"].columns[:4]
    ['quantity', 'heads', 'effect', 'difference']
    """
    return study("in_context", model, out, corpus=corpus, chosen_on=chosen_on, **settings)


def probe_attention(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    dev: Texts | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> StudyResult:
    """How many governors of words can be found from the attention of all heads together: attention probes (Clark et al.
    2019, §5).

    Probes are trained on `corpus` and scored on `dev`, by default on held-out documents. `settings` are those of a
    specification (docs/attention-probe.md): `probes`, `words`, `vectors`, `seeds`, `root`, `decode`, `preset`, ...

    >>> import headscope as hs
    >>> small = {"limit": 20, "epochs": 1, "seeds": 1, "max_length": 24, "replicates": 0}
    >>> study = hs.probe_attention(probes=["attention", "right-branching"], **small)
    >>> study["summary"]["probe"]
    ['attention', 'right-branching']
    """
    return study("attention_probe", model, out, corpus=corpus, dev=dev, **settings)


def probe_edge(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    dev: Texts | None = None,
    out: str | Path | None = None,
    *,
    look: Texts | None = None,
    **settings: Any,
) -> StudyResult:
    """Which layers of a model encode labels of words and of pairs of words: edge probing (Tenney et al. 2019).

    Probes are trained on `corpus` and scored on `dev`, by default on held-out documents; targets of `look` are shown
    one by one. `settings` are those of a specification (docs/edge-probing.md): `tasks`, `seeds`, `control`, `single`,
    `limit`, `preset`, ...

    >>> import headscope as hs
    >>> study = hs.probe_edge(tasks=["pos"], seeds=1)  # doctest: +SKIP
    >>> study["summary"].columns[:5]  # doctest: +SKIP
    ['task', 'n', 'documents', 'embeddings', 'all_layers']
    """
    return study("edge_probe", model, out, corpus=corpus, dev=dev, look=look, **settings)


def probe_keywords(
    model: GivenModel = "mini",
    corpus: Texts = "sampler",
    dev: Texts | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> StudyResult:
    """Which heads attend to the words of keyphrases, and how well all heads together find these words (Štefánik).

    Weights are learnt from `corpus` and tested on `dev`, by default by cross-validation over documents. `settings` are
    those of a specification (docs/keywords.md): `source`, `folds`, `penalty`, `limit`, `max_length`, ...

    >>> import headscope as hs
    >>> study = hs.probe_keywords(max_length=32, folds=2, replicates=0)
    >>> study["keywords_scores"].columns[:5]
    ['level', 'system', 'precision', 'recall', 'f1']
    """
    return study("keywords", model, out, corpus=corpus, dev=dev, **settings)


def probe_structural(
    model: GivenModel = "mini", corpus: Texts = "sampler", dev: Texts | None = None, out: str | Path | None = None, **settings: Any
) -> StudyResult:
    """Whether the vectors of each layer encode trees, as distances and as depths: the structural probe (Hewitt &
    Manning 2019).

    Probes are trained on `corpus` and scored on `dev`, by default on held-out documents. `settings` are those of a
    specification (docs/structural-probe.md): `layers` (0: embeddings), `rank`, `ranks`, `baselines`, `seeds`, `limit`,
    `epochs`, `preset`, ...; hidden states are kept in a folder `cache` if one is named, and take `cache_limit` GiB at
    most.

    >>> import headscope as hs
    >>> study = hs.probe_structural(layers=[0, 7], ranks=[], baselines=["linear"], limit=20, epochs=1, replicates=0)
    >>> study["structural"].where(metric="UUAS")["source"]
    ['model', 'model', 'linear']
    """
    return study("structural_probe", model, out, corpus=corpus, dev=dev, **settings)


def retrieval(
    model: GivenModel = "mini-decoder", corpus: Texts = "needles:96x40", out: str | Path | None = None, **settings: Any
) -> StudyResult:
    """Which heads copy from a passage while a language model answers, and whether answers depend on them (Wu et al.
    2024).

    `corpus` has a question, a passage and an answer in each text: `needles:96x40` makes such texts, and JSON lines hold
    your own. `settings` are those of a specification (docs/retrieval.md): `decoding`, `top`, `draws`, `weights`,
    `limit`, `max_length`, ...

    >>> import headscope as hs
    >>> study = hs.retrieval(corpus="needles:32x4", top=1, draws=1, replicates=0)
    >>> study["retrieval_heads"].columns[:6]
    ['decoding', 'rank', 'kind', 'layer', 'head', 'score']
    """
    return study("retrieval", model, out, corpus=corpus, **settings)


def prune(
    model: GivenModel,
    keep: float,
    out: str | Path | None = None,
    corpus: Texts = "sampler",
    *,
    by: str = "importance",
    run: str | Path | None = None,
    keep_shape: bool = False,
    device: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> PruneResult:
    """A smaller model without the heads that matter least, and its scores beside those of the whole model on documents
    that were not used for the choice (docs/ablation.md).

    `keep` is the share of heads to keep. The order of removal is by `importance`, `drop`, `random`, or a quantity of a
    `run`. The smaller model is saved into the folder `out`, if one is named; with `keep_shape`, it has zeros in place
    of the removed heads. `settings` are those of `ablate`: `score`, `limit`, `max_length`, `seed`, ...

    >>> import headscope as hs
    >>> result = hs.prune("mini", 0.9, limit=6, replicates=0)
    >>> result.smaller.layout.size
    130
    """
    from headscope.models.prune import save
    from headscope.studies.ablation.prune import prune_model, require_new_folder

    texts = corpus_or_names(corpus, settings.get("on_error", "raise"))
    given = given_model(model)
    asked = {"model": name_of(given), "corpus": named(given, texts)[1], **settings}
    if out is not None:
        require_new_folder(Path(out))
    corpus = texts if isinstance(texts, Corpus) else None
    loaded = None if isinstance(given, str) else given
    result = prune_model(asked, keep, by, Path(run) if run is not None else None, device, progress, corpus, loaded)
    if out is not None:
        save(result.smaller, Path(out), keep_shape)
    return result


def replicate(
    recipe: str | Path,
    model: GivenModel = "mini",
    corpus: str | Path | Sequence[str | Path] | Mapping[str, Any] = (),
    out: str | Path | None = None,
    *,
    full: bool = False,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> StudyResult:
    """A replication of a paper: its steps on the given data, our number beside each published one, and the differences
    (docs/replication.md).

    `recipe` is `clark2019`, `hewitt2019`, `michel2019`, `stefanik`, `tenney2019`, `westera` or a TOML file; `corpus`
    files for all steps, or files by role: `{"treebank": "train.conllu", "treebank-dev": "dev.conllu"}`. Everything is
    written to the folder `out`, by default under `runs`; `full` removes the recipe's limits on texts and training.
    `study["claims"]` is the table, `study.report()` the page.

    >>> import headscope as hs
    >>> study = hs.replicate("clark2019", "mini", "en.conllu", "CLARK")  # doctest: +SKIP
    >>> study["claims"].head(5)  # doctest: +SKIP
    """
    from headscope.replication.study import replicate as study
    from headscope.replication.study import usual_folder

    by_role = dict(corpus) if isinstance(corpus, Mapping) else {"": corpus}
    named_by = [given for given in by_role.values() if not isinstance(given, list | tuple) or given]
    if in_memory := [given for given in named_by if not names_files(given)]:
        raise RunError(
            f"a replication reads its corpora from files, and {type(in_memory[0]).__name__} is not a file", "Save it, and name the file"
        )
    files = {role: [str(one) for one in ([given] if isinstance(given, str | Path) else given)] for role, given in by_role.items()}
    files = {role: paths for role, paths in files.items() if paths}
    given = given_model(model)
    folder = Path(out) if out is not None else usual_folder(recipe, name_of(given), files)
    how: dict[str, Any] = {"device": device, "full": full, "resume": resume, "overwrite": overwrite}
    return _warned(study(recipe, folder, model=given, corpora=files, **how))


def _warned(results: Results) -> StudyResult:
    """The results as a study, after their warnings are issued as Python warnings."""
    warn(results.warnings)
    return StudyResult(results)
