"""From a model to a smaller one: heads weighed on one half of the documents, cut out, and the result tried on the
other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.corpora import read
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.prune import prune
from headscope.models.saving import require_room
from headscope.results.columns import StateColumns
from headscope.results.specification import validated
from headscope.results.table import Table
from headscope.studies.ablation.completion import completed
from headscope.studies.ablation.orders import ascending, quantity_values, shuffled
from headscope.studies.ablation.spec import AblationSpec
from headscope.studies.ablation.systems import removal
from headscope.studies.ablation.trial import Trial

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.engine.shards import Progress

ORDERS = ("importance", "drop", "random")  # that need no run


@dataclass(frozen=True)
class PruneResult:
    """A model, the smaller one, a table of what both score, and the texts that they were scored on."""

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
) -> PruneResult:
    """Weigh the heads, cut out those that matter least, and try the rest. `settings` are those of a study of
    ablation.
    """
    if by not in ORDERS and run is None:
        raise RunError(f"heads cannot be ordered by {by!r}", f"Use {', '.join(ORDERS)}, or name a run that has this quantity with --run")
    spec = validated(AblationSpec, {**settings, "parts": "heads" if by == "drop" else "importance"}, "the options")
    corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    model = load(spec.model, device, spec.dtype, head=True)
    trial = Trial(completed(spec, model, corpus), model, corpus)
    gone = _order(trial, by, run, progress)[: removed_heads(model.layout.size, keep)]
    ids = model.layout.ids()
    smaller = prune(model, [ids[place] for place in gone])
    texts = trial.testing_texts(trial.texts)
    return PruneResult(model, smaller, _score_table(trial, texts, gone), texts)


def require_new_folder(out: Path) -> None:
    """An error if a model cannot be saved there: the folder must not exist yet, or be empty."""
    require_room(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} is there already", "Choose another folder with --out")


def parse_share(text: str) -> float:
    """`60%` or `0.6` as a share of the heads."""
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise RunError(f"{text!r} is no share of the heads", "Write 60% or 0.6") from None
    if not 0 <= value <= 1:
        raise RunError(f"{text} of the heads cannot be kept", "Write a share from 0% to 100%")
    return value


def removed_heads(heads: int, keep: float) -> int:
    """How many of the heads are to go so that a share is kept, rounded up."""
    return heads - int(np.ceil(keep * heads - 1e-9))


def _order(trial: Trial, by: str, run: Path | None, progress: Progress | None) -> list[int]:
    """The heads in the order in which they are to go."""
    layout = trial.model.layout
    if by == "random":
        return shuffled(layout, trial.spec.seed)
    if by not in ORDERS:
        assert run is not None
        return ascending(quantity_values(run, by, layout))
    return ascending(_weighed(trial, by, progress))


def _weighed(trial: Trial, by: str, progress: Progress | None) -> Float64[np.ndarray, "head"]:
    """Importance of each head, or what is lost without it, by the half of the documents that heads are ordered by."""
    texts, kept, seen = trial.ordering_texts(), StateColumns(), 0
    for shard in trial.shards(texts):
        trial.answer_systems(shard, kept)
        seen += len(shard)
        if progress is not None:
            progress(seen / len(texts), seen, sum(map(len, texts[:seen])))
    everything = np.ones(len(kept.words("document")), dtype=bool)
    return trial.scores(kept).harm("heads", everything) if by == "drop" else trial.importance(kept, everything, 0)[0]


def _score_table(trial: Trial, texts: Sequence[Encoded], gone: Sequence[int]) -> Table:
    """What the model scores as it is and without the heads that are gone, in one row."""
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
