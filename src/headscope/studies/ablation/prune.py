"""From a model to a smaller one: heads weighed on one half of the documents, cut out, and the result tried on the other half."""

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
from headscope.results.columns import Kept
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.ablation.cutting import least
from headscope.studies.ablation.pruning import shuffled
from headscope.studies.ablation.spec import make_ablation_spec
from headscope.studies.ablation.systems import removal
from headscope.studies.ablation.trial import Trial

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.engine.shards import Progress

OWN = ("importance", "drop", "random")


@dataclass(frozen=True)
class Pruned:
    """A model, the smaller one, what the smaller one scores beside it, and texts that they were tried on."""

    whole: Model
    smaller: Model
    tried: Table
    texts: Sequence[Encoded]


def pruned(
    settings: Mapping[str, Any],
    keep: float,
    by: str = "importance",
    run: Path | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Pruned:
    """Weigh the heads, cut out those that matter least, and try the rest. `settings` are those of a study of ablation."""
    if by not in OWN and run is None:
        raise RunError(f"heads cannot be ordered by {by!r}", f"Use {', '.join(OWN)}, or name a run that has this quantity with --run")
    parts = ["heads"] if by == "drop" else ["importance"]
    spec = make_ablation_spec({**settings, "parts": parts}, "the options")
    corpus = read(*spec.corpus, format=spec.format)
    model = load(spec.model, device, head=True)
    trial = Trial.of(spec, model, corpus, progress)
    values = _values(trial, by, run)
    gone = least(values, keep)
    ids = model.layout.ids()
    smaller = prune(model, [ids[place] for place in gone])
    texts = trial.tried(trial.texts)
    kept = trial.answered(texts, [removal(model.layout, gone)])
    found = trial.scores(kept).contrasted(kept.numbers("systems").swapaxes(0, 1))
    tried = Table.of(
        {
            "score": [trial.spec.score],
            "whole": [found.base],
            "pruned": found.score.tolist(),
            "difference": found.difference.tolist(),
            "low": found.low.tolist(),
            "high": found.high.tolist(),
            "p": found.p.tolist(),
            "n": [found.n],
            "documents": [found.units],
        }
    )
    return Pruned(model, smaller, tried, texts)


def _values(trial: Trial, by: str, run: Path | None) -> Float64[np.ndarray, "head"]:
    """What heads are ordered by, the lowest to go first."""
    layout = trial.model.layout
    if by == "random":
        order = shuffled(layout, trial.spec.seed)
        return np.argsort(order).astype(np.float64)
    if by not in OWN:
        assert run is not None
        values = by_head(Results.open_run(run), by.removeprefix("-"), layout)
        return -values if by.startswith("-") else values
    weighed: Kept = trial.weighed()
    scores = trial.scores(weighed)
    everything = np.ones(len(scores.documents), dtype=bool)
    return scores.harm("heads", everything) if by == "drop" else trial.importance(weighed, everything, 0)[0]
