"""Pruning: heads are ordered on one half of the documents and removed, and the smaller model is tested on the other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.core.heads import HeadLayout
from headscope.core.suggest import choose_from
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.models.gates import gated
from headscope.models.importance import importance
from headscope.models.load import load_given
from headscope.models.loading.in_memory import ModelInMemory
from headscope.models.model import Model
from headscope.models.prune import prune
from headscope.models.saving import require_room
from headscope.results.columns import StateColumns
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.results.specification import validated
from headscope.results.table import Table
from headscope.studies.ablation.pruning_curves import MOST_FIRST, step_sizes
from headscope.studies.ablation.spec import AblationSpec
from headscope.studies.ablation.tables import removal
from headscope.studies.ablation.trial import Trial, completed

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.engine.shards import Progress

ORDERS = ("importance", "drop", "random")  # orders that need no run
SIZES = (1, 4, 16, 64)


@dataclass(frozen=True)
class PruneResult:
    """A model, the smaller one, a table of the scores of both, and the texts that they were scored on."""

    whole: Model
    smaller: Model
    scores: Table
    texts: Sequence[Encoded]


def prune_model(
    settings: Mapping[str, Any],
    keep: float,
    by: str = "importance",
    run: Path | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    corpus: Corpus | None = None,
    model: Model | ModelInMemory | None = None,
) -> PruneResult:
    """Prune the heads that matter least and score the rest; `settings` are those of a study of ablation. A given
    `model` replaces the one that they name.
    """
    if by not in ORDERS and run is None:
        raise RunError(
            f"heads cannot be ordered by {by!r}", choose_from(by, ORDERS, "Use") + ", or name a run that has this quantity with --run"
        )
    spec = validated(AblationSpec, {**settings, "parts": "heads" if by == "drop" else "importance"}, "the options")
    corpus = corpus or read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    whole = load_given(model, spec.model, device, spec.dtype, head=True)
    whole.require_plain_weights("heads that can be removed")
    trial = Trial(completed(spec, whole, corpus), whole, corpus)
    gone = whole_groups(_order(trial, by, run, progress), whole.layout, removed_heads(whole.layout.size, keep))
    ids = whole.layout.ids()
    smaller = prune(whole, [ids[place] for place in gone])
    texts = trial.testing_texts(trial.texts)
    return PruneResult(whole, smaller, _score_table(trial, texts, gone), texts)


def require_new_folder(out: Path) -> None:
    """Raise an error if a model cannot be saved in a folder: it must not exist yet, or must be empty."""
    require_room(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} already exists", "Choose another folder with --out")


def parse_share(text: str) -> float:
    """`60%` or `0.6` as a share of the heads."""
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise RunError(f"{text!r} is not a share of the heads", "Write 60% or 0.6") from None
    if not 0 <= value <= 1:
        raise RunError(f"{text} is not a share of heads that can be kept", "Write a share from 0% to 100%")
    return value


def removed_heads(heads: int, keep: float) -> int:
    """How many heads to remove so that a share of them, rounded up, is kept."""
    return heads - int(np.ceil(keep * heads - 1e-9))


def whole_groups(order: Sequence[int], layout: HeadLayout, most: int) -> list[int]:
    """The first heads of an order, at most `most`. Heads that share a key and value are removed together, and such
    groups follow the mean places of their heads in the order.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for number, site in enumerate(layout.sites):
        first = layout.slice(number).start
        for head in range(site.heads):
            groups.setdefault((number, head * site.kv_heads // site.heads), []).append(first + head)
    at = {head: number for number, head in enumerate(order)}
    gone: list[int] = []
    for members in sorted(groups.values(), key=lambda heads: sum(at[head] for head in heads) / len(heads)):
        if len(gone) + len(members) > most:
            break
        gone += members
    return gone


def _order(trial: Trial, by: str, run: Path | None, progress: Progress | None) -> list[int]:
    """The heads in the order of their removal."""
    layout = trial.model.layout
    if by == "random":
        return shuffled(layout, trial.spec.seed)
    if by not in ORDERS:
        assert run is not None
        return ascending(quantity_values(run, by, layout))
    return ascending(_weighed(trial, by, progress))


def _weighed(trial: Trial, by: str, progress: Progress | None) -> Float64[np.ndarray, "head"]:
    """Importance of each head, or the loss without it, on the half of the documents by which heads are ordered."""
    texts, kept, seen = trial.ordering_texts(), StateColumns(), 0
    for shard in trial.shards(texts):
        trial.answer_systems(shard, kept)
        seen += len(shard)
        if progress is not None:
            progress(seen / len(texts), seen, sum(map(len, texts[:seen])))
    everything = np.ones(len(kept.words("document")), dtype=bool)
    return trial.scores(kept).harm("heads", everything) if by == "drop" else trial.importance(kept, everything, 0)[0]


def _score_table(trial: Trial, texts: Sequence[Encoded], gone: Sequence[int]) -> Table:
    """One row: the scores of the whole model and of the model without the removed heads."""
    scores = trial.scores(trial.answer_cuts(texts, [removal(trial.model.layout, gone)]))
    contrast = scores.contrasted(scores.table)
    return Table.of(
        {
            "score": [trial.spec.score],
            "whole": [contrast.base],
            "pruned": contrast.score.tolist(),
            "difference": contrast.difference.tolist(),
            "low": contrast.low.tolist(),
            "high": contrast.high.tolist(),
            "p": contrast.p.tolist(),
            "n": [contrast.n],
            "documents": [contrast.units],
        }
    )


def ascending(values: Float64[np.ndarray, "head"]) -> list[int]:
    """Heads in ascending order of value, the order of their removal; ties by layer and head, NaN last."""
    return [int(place) for place in np.argsort(values, kind="stable")]


def shuffled(layout: HeadLayout, seed: int) -> list[int]:
    """Heads in random order."""
    return [int(place) for place in np.random.default_rng(seed).permutation(layout.size)]


def quantity_values(run: Path, name: str, layout: HeadLayout) -> Float64[np.ndarray, "head"]:
    """A quantity of a run for each head, to order heads by; negated if the name begins with -, so that the highest go
    first.
    """
    values = by_head(Results.open_run(run), name.removeprefix("-"), layout)
    return -values if name.startswith("-") else values


def pruning_orders(trial: Trial, kept: StateColumns) -> dict[str, list[int]]:
    """The orders of a study by name, from one half of the documents; `kept` has the answers to all texts."""
    spec, layout = trial.spec, trial.model.layout
    scores = trial.scores(kept)
    half = scores.fold == 0 if trial.has_halves else np.ones(len(scores.documents), dtype=bool)
    orders = {"importance": ascending(trial.importance(kept, half, 0)[0])}
    if "heads" in spec.parts:
        orders["drop"] = ascending(scores.harm("heads", half))
    if spec.most_first:
        orders |= {f"{name}{MOST_FIRST}": order[::-1] for name, order in orders.items()}
    if spec.reestimate:
        orders["importance, re-estimated"] = _reestimated(trial)
    if spec.run is not None:
        orders |= {name: ascending(quantity_values(Path(spec.run), name, layout)) for name in spec.by}
    orders |= {f"random {number + 1}": shuffled(layout, spec.seed + number) for number in range(spec.orders)}
    return orders


def _reestimated(trial: Trial) -> list[int]:
    """Heads by an importance that is estimated again after each step, without the heads that are already off."""
    spec, layout, texts = trial.spec, trial.model.layout, trial.ordering_texts()
    gone: list[int] = []
    for size in step_sizes(layout.size, spec.steps):
        with gated(trial.model, {site: torch.from_numpy(gate).float() for site, gate in removal(layout, gone).items()}):
            slopes = importance(trial.model, texts, trial.batch_tokens, share=spec.mask_share, key=f"{spec.seed}/0")
        order = ascending(slopes.of(spec.abs_over, spec.normalise, spec.batch_texts))
        gone += [place for place in order if place not in gone][: size - len(gone)]
    return gone


def size_table(whole: Model, smaller: Model) -> Table:
    """How many heads, weights and bytes there are before and after: one row per model."""
    models = (whole, smaller)
    return Table.of(
        {
            "model": ["whole", "pruned"],
            "heads": [model.layout.size for model in models],
            "weights": [_weights(model) for model in models],
            "megabytes": [_weights(model, True) / 1e6 for model in models],
        }
    )


def _weights(model: Model, in_bytes: bool = False) -> int:
    return sum(weight.numel() * (weight.element_size() if in_bytes else 1) for weight in (model.whole or model.network).parameters())


def speed_table(whole: Model, smaller: Model, texts: Sequence[Encoded], batches: Sequence[int] = SIZES, rounds: int = 5) -> Table:
    """Texts per second of both models, the median over rounds, and the ratio: one row per batch size."""
    rows = []
    for size in batches:
        batch = list(islice(cycle(texts), size))
        taken: tuple[list[float], list[float]] = ([], [])
        for turn in range(rounds + 1):
            for model, times in zip((whole, smaller), taken, strict=True):
                inputs = model.inputs(batch)
                began = time.perf_counter()
                with torch.inference_mode():
                    (model.whole or model.network)(**inputs, use_cache=False)
                if model.device.type == "cuda":
                    torch.cuda.synchronize()
                if turn:  # the first is for warming up
                    times.append(time.perf_counter() - began)
        before, after = (size / float(np.median(times)) for times in taken)
        rows.append({"batch": size, "whole": before, "pruned": after, "faster": after / before - 1})
    return Table.from_rows(rows)
