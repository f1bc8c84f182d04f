"""Do the heads of one model have twins in another? Two models over the same texts, all heads side by side (beyond Clark et al. §6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

from headscope.core.heads import Kind
from headscope.core.names import title
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.choices import Unit
from headscope.encoding.words import Rows
from headscope.engine.shards import Progress, encoder_for
from headscope.engine.spec import RunSpec
from headscope.errors import RunError
from headscope.measures.base import Level
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.random import untrained
from headscope.results.signature import annotation_of, identity, signature
from headscope.results.specification import Role, validated
from headscope.results.unknown import warning
from headscope.studies.twins.heads import Heads, Twins
from headscope.studies.twins.sums import Beside, Watched
from headscope.studies.twins.texts import Matcher, Names, Shared

EPSILONS = (0.02, 0.05, 0.1)
LEAST = 0.1


class TwinSpec(RunSpec):
    """The settings of a comparison of two models, `a` and `b`: those of a run, and what is particular to it."""

    a: Annotated[str, Role.CONTENT]
    b: Annotated[str, Role.CONTENT]
    level: Level = "word"
    kinds: tuple[Kind, Kind] | None = None
    control: bool = False
    epsilons: tuple[float, ...] = EPSILONS
    least: float = LEAST


def twins(
    first: Model | str | Path,
    second: Model | str | Path,
    corpus: Corpus | str | Path | Sequence[str | Path] = "sampler",
    *,
    level: Level = "word",
    kind: Kind | tuple[Kind, Kind] | None = None,
    control: bool = False,
    epsilons: Sequence[float] = EPSILONS,
    least: float = LEAST,
    unit: Unit | None = None,
    max_length: int = 128,
    limit: int | None = None,
    word_rows: Rows = "mean",
    replicates: int = 500,
    seed: int = 0,
    batch_tokens: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    format: str | None = None,
    progress: Progress | None = None,
) -> Twins:
    """How far the heads of two models are from each other, over the texts of a corpus that both can read.

    `level` is `word`, or `token` for models that read the same tokens. `kind` is the kind of self-attention, of both or of each; by
    default that with the most heads. `control` compares each model with an untrained copy of the other, too. `epsilons` are how close
    heads must be to count as the same, in nats; heads that give less than `least` of their attention to words are marked as faint.
    """
    _check(level, epsilons, least)
    paths = [str(path) for path in ([corpus] if isinstance(corpus, str | Path) else [] if isinstance(corpus, Corpus) else corpus)]
    documents = corpus if isinstance(corpus, Corpus) else read(*paths, format=format)
    named = paths or [str(path) for path in documents.paths] or ["memory"]
    settings = {
        **{"unit": unit, "max_length": max_length, "limit": limit, "replicates": replicates, "seed": seed, "word_rows": word_rows},
        **{"corpus": tuple(named), "format": format, "dtype": dtype, "batch_tokens": batch_tokens, "level": level, "control": control},
        **{"epsilons": tuple(epsilons), "least": least},
    }
    validated(TwinSpec, {**settings, "a": "a", "b": "b"})  # before models are loaded
    models = _load(first, second, device, dtype)
    kinds = _kinds(models, kind)
    spec = validated(TwinSpec, {**settings, "a": models[0].name, "b": models[1].name, "kinds": kinds})
    spec = spec.resolved(documents.pairs, models[0].device.type)
    for model in models:
        if model.max_length is not None and spec.max_length > model.max_length:
            remedy = f"Use --max-length {model.max_length}"
            raise RunError(f"max_length is {spec.max_length}, but {model.name} ends at {model.max_length} tokens", remedy)
    watched = Watched(models[0], kinds[0], 0), Watched(models[1], kinds[1], 1)
    copies = None
    if control:
        copies = Watched(untrained(models[0], seed), kinds[0], 0), Watched(untrained(models[1], seed), kinds[1], 1)
    beside = Beside(*watched, level, word_rows, spec.batch_tokens or 1, copies)
    names = _names(models)
    encoders = [encoder_for(spec, model.tokenizer, model.decoder_start) for model in models]
    matcher = Matcher((encoders[0], encoders[1]), kinds, level, names, Tally())
    texts, count = _stream(documents, matcher, beside, spec, progress)
    matcher.dropped.update(documents.skipped)
    dropped = tuple(matcher.dropped.lines(read=False))
    warnings = tuple(line for counts, name in zip(matcher.counts, names, strict=True) for line in warning(counts, name))
    if not texts:
        raise RunError(f"nothing to compare: no text of {', '.join(named)} is left that both models read", "; ".join(dropped))
    heads = [Heads(name, one.kind, tuple(one.plan.layout.ids())) for name, one in zip(names, watched, strict=True)]
    contents = {"a": models[0].fingerprint, "b": models[1].fingerprint, "corpus": documents.hash()}
    now = identity(spec, models[0].device.type, contents) | annotation_of(documents)
    return Twins(
        heads[0],
        heads[1],
        beside.sums,
        level,
        tuple(epsilons),
        least,
        replicates,
        seed,
        texts,
        count,
        signature(spec, now),
        dropped,
        tuple(matcher.dropped.lines(read=True)),
        warnings,
    )


def _check(level: str, epsilons: Sequence[float], least: float) -> None:
    if level not in ("word", "token"):
        raise RunError(f"no level is called {level!r}", "Use word or token")
    if any(not epsilon > 0 for epsilon in epsilons):
        raise RunError(f"an epsilon of {min(epsilons):g}", "Name distances above 0, in nats")
    if not 0 <= least <= 1:
        raise RunError(f"least is {least:g}", "Name a share of attention, from 0 to 1")


def _load(first: Model | str | Path, second: Model | str | Path, device: str | None, dtype: str) -> tuple[Model, Model]:
    """Both models; one that is named twice is loaded once."""
    one = load(first, device, dtype) if isinstance(first, str | Path) else first
    if isinstance(second, str | Path):
        same = isinstance(first, str | Path) and str(first) == str(second)
        return one, one if same else load(second, device, dtype)
    return one, second


def _names(models: tuple[Model, Model]) -> Names:
    first, second = (title(model.name) or "model" for model in models)
    return Names(first, second) if first != second else Names(f"{first} (a)", f"{second} (b)")


def _kinds(models: tuple[Model, Model], kind: Kind | tuple[Kind, Kind] | None) -> tuple[Kind, Kind]:
    """The kinds of self-attention to look at: as asked for, or those with the most heads. Cross attention joins two texts."""
    asked = tuple(kind) if isinstance(kind, list | tuple) else (kind, kind)
    if len(asked) != 2:
        raise RunError(f"{len(asked)} kinds for two models", "Name one, or one for each")
    found: list[Kind] = []
    for model, wanted in zip(models, asked, strict=True):
        heads: dict[Kind, int] = {name: number for name, number in model.layout.heads().items() if name != "cross"}
        if wanted is not None and wanted not in heads:
            raise RunError(f"{model.name} has no {wanted} self-attention", f"It has {' and '.join(heads)} attention")
        found.append(wanted if wanted is not None else max(heads, key=lambda name: heads[name]))
    return found[0], found[1]


def _stream(corpus: Corpus, matcher: Matcher, beside: Beside, spec: RunSpec, progress: Progress | None) -> tuple[int, int]:
    """Read the corpus and compare, some texts at a time; how many texts there were, and of how many documents."""
    texts = tokens = size = documents = 0
    held: list[Shared] = []
    last: str | None = None

    def compare() -> None:
        beside.add(held)
        held.clear()
        if progress is not None:
            shares = [share for share in (corpus.share, texts / spec.limit if spec.limit is not None else None) if share is not None]
            progress(max(shares, default=None), texts, tokens)

    for text in islice(matcher.texts(corpus), spec.limit):
        held.append(text)
        texts += 1
        documents += text.document != last
        last = text.document
        tokens += text.cost
        size += text.cost
        if size >= (spec.shard_tokens or 1):
            compare()
            size = 0
    if held:
        compare()
    return texts, documents
