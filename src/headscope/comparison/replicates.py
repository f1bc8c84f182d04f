"""What the numbers of studies become where documents are drawn again: of those kinds that keep what they found of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results.columns import Kept
from headscope.results.results import Results
from headscope.stats.inference import Support
from headscope.stats.resampled import Resampled
from headscope.studies.registry import REGISTRY
from headscope.studies.replicates import Replicated as Replicated

if TYPE_CHECKING:
    from jaxtyping import Float64

    Tables = dict[str, dict[tuple[Any, ...], Replicated]]


def replicated(results: Results) -> Tables:
    """By table and by what its rows are of; empty for studies that keep nothing of single documents."""
    made = _MADE.get(results.study or "")
    return made(results) if made is not None and results.manifest["settings"]["replicates"] else {}


def _ablation(results: Results) -> Tables:
    """How the score differs without a head, or a layer. Scores other than means need what only the model knows, and are left out."""
    from headscope.comparison.runs import layout_of
    from headscope.stats.contrast import replicated_differences
    from headscope.stats.scores import Mean, make_score
    from headscope.studies.ablation.systems import Systems

    settings = results.manifest["settings"]
    name, layout = settings["score"], layout_of(results)
    if name not in ("loss", "perplexity", "accuracy", "masked_accuracy"):
        return {}
    score = make_score(name) if name in ("loss", "perplexity") else Mean(name)
    column = 0 if name in ("loss", "perplexity") else 1  # of loss, right, count
    kept = Kept(results.state("single"))
    documents, base, table = kept.words("document"), kept.numbers("base"), kept.numbers("systems").swapaxes(0, 1)
    one, systems = _maker(documents, settings["seed"]), Systems(layout, tuple(settings["parts"]))
    keys: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
        "ablation": ("heads", [(head.kind, head.layer + 1, head.head + 1) for head in layout.ids()]),
        "ablation_layers": ("layers", [(site.kind, site.layer + 1) for site in layout.sites]),
    }
    found: Tables = {}
    for told, (part, places) in keys.items():
        if told in results:
            start, others = (numbers[..., [column, 2]] for numbers in (base, table[systems.places(part)]))
            drawn = replicated_differences(score, start, others, documents, settings["replicates"], settings["seed"])
            values = np.concatenate([(score.of(others) - score.of(start))[None], drawn])
            found[told] = {place: one(values[:, number], score.sizes(start)) for number, place in enumerate(places)}
    return found


_MADE: dict[str, Callable[[Results], Tables]] = {
    "attention_probe": lambda results: REGISTRY["attention_probe"].replicates(results),
    "keywords": lambda results: REGISTRY["keywords"].replicates(results),
    "ablation": _ablation,
}


def _maker(documents: Sequence[str], seed: int) -> Callable[..., Replicated]:
    """What makes replicates out of values, and of how much each item weighs in them; `documents` are those of the items."""
    known, unit = np.unique(documents, return_inverse=True)

    def made(values: Float64[np.ndarray, "replicate+1"], sizes: np.ndarray | None = None) -> Replicated:
        support = Support.of(np.bincount(unit, sizes, len(known))[:, None])
        n = np.array([float(len(documents) if sizes is None else np.count_nonzero(sizes))])
        return Replicated(Resampled("", values[:, None], support, n), (frozenset(known.tolist()), seed))

    return made
