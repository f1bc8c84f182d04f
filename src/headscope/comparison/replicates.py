"""What the numbers of studies become where documents are drawn again: of those kinds that keep what they found of each document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.results.columns import Kept
from headscope.results.results import Results
from headscope.stats.inference import Support
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Float64

    Tables = dict[str, dict[tuple[Any, ...], "Replicated"]]


@dataclass(frozen=True)
class Replicated:
    """One number and its replicates. `drawn` is what the draws follow from: the documents and the seed."""

    numbers: Resampled
    drawn: tuple[frozenset[str], int]

    def paired_with(self, other: Replicated) -> bool:
        """Whether the same documents were drawn in each replicate of both."""
        return self.drawn == other.drawn


def replicated(results: Results) -> Tables:
    """By table and by what its rows are of; empty for studies that keep nothing of single documents."""
    made = _MADE.get(results.study or "")
    return made(results) if made is not None and results.manifest["settings"]["replicates"] else {}


def _attention(results: Results) -> Tables:
    from headscope.studies.attention_probe.tables import Answers

    settings = results.manifest["settings"]
    answers = Answers(Kept(results.state("probe")), settings["replicates"], settings["seed"])
    one = _maker(answers.kept.words("document"), settings["seed"])
    relations = np.array(answers.relations)
    name = "attention_probe_relations"
    rows = [(row["probe"], row["relation"]) for row in results[name]] if name in results else []
    right: Mapping[str, Float64[np.ndarray, "word"]] = {name: answers.right(name).mean(1) for name in answers.names}
    return {
        "summary": {(name,): one(answers.share(own, answers.counts), answers.counts) for name, own in right.items()},
        name: {(probe, of): one(answers.share(right[probe], relations == of), relations == of) for probe, of in rows},
    }


def _keywords(results: Results) -> Tables:
    from headscope.stats.bootstrap import poisson_weights
    from headscope.stats.keyphrases import KeyphraseF1
    from headscope.studies.keywords.learning import LEVELS
    from headscope.studies.keywords.tables import NAMES

    settings = results.manifest["settings"]
    kept = Kept(results.state("fold"))
    documents = kept.words("document")
    place = {name: number for number, name in enumerate(dict.fromkeys(documents))}
    units, weights = np.array([place[name] for name in documents]), poisson_weights(list(place), settings["replicates"], settings["seed"])
    one = _maker(documents, settings["seed"])
    return {
        "keywords_scores": {
            (NAMES[level], system): one(KeyphraseF1(level).resampled(kept.numbers(f"counts/{system}")[:, number], units, weights))
            for number, level in enumerate(LEVELS)
            for system in kept.under("counts/")
        }
    }


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


_MADE: dict[str, Callable[[Results], Tables]] = {"attention_probe": _attention, "keywords": _keywords, "ablation": _ablation}


def _maker(documents: Sequence[str], seed: int) -> Callable[..., Replicated]:
    """What makes replicates out of values, and of how much each item weighs in them; `documents` are those of the items."""
    known, unit = np.unique(documents, return_inverse=True)

    def made(values: Float64[np.ndarray, "replicate+1"], sizes: np.ndarray | None = None) -> Replicated:
        support = Support.of(np.bincount(unit, sizes, len(known))[:, None])
        n = np.array([float(len(documents) if sizes is None else np.count_nonzero(sizes))])
        return Replicated(Resampled("", values[:, None], support, n), (frozenset(known.tolist()), seed))

    return made
