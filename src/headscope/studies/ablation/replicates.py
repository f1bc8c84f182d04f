"""Differences of the score, with what they become where documents are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results.columns import StateColumns
from headscope.stats import contrast
from headscope.stats.scores import Mean, make_score
from headscope.studies.ablation.systems import Systems
from headscope.studies.replicates import replicate_maker

if TYPE_CHECKING:
    from headscope.results.results import Results
    from headscope.studies.replicates import ReplicatedTables


def replicated_differences(results: Results) -> ReplicatedTables:
    """How the score differs without a head, or a layer. Scores other than means need what only the model knows, and
    are left out.
    """
    settings, layout = results.manifest["settings"], results.layout
    name = settings["score"]
    if not settings["replicates"] or name not in ("loss", "perplexity", "accuracy", "masked_accuracy"):
        return {}
    score = make_score(name) if name in ("loss", "perplexity") else Mean(name)
    columns = [0 if name in ("loss", "perplexity") else 1, 2]  # of loss, right, count
    kept = StateColumns(results.state("single"))
    documents, base, table = kept.words("document"), kept.numbers("base")[:, columns], kept.numbers("systems").swapaxes(0, 1)
    replicated, systems = replicate_maker(documents, settings["seed"]), Systems(layout, tuple(settings["parts"]))
    keys: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
        "ablation": ("heads", [(head.kind, head.layer + 1, head.head + 1) for head in layout.ids()]),
        "ablation_layers": ("layers", [(site.kind, site.layer + 1) for site in layout.sites]),
    }
    tables: ReplicatedTables = {}
    for made, (part, places) in keys.items():
        if made in results:
            others = table[systems.places(part)][..., columns]
            drawn = contrast.replicated_differences(score, base, others, documents, settings["replicates"], settings["seed"])
            values = np.concatenate([(score.of(others) - score.of(base))[None], drawn])
            tables[made] = {place: replicated(values[:, number], score.sizes(base)) for number, place in enumerate(places)}
    return tables
