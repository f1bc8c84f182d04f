"""What the numbers of studies become where documents are drawn again: of those kinds that keep what they found of each document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.measures.base import Resampled
from headscope.runs.kept import Kept
from headscope.runs.results import Results

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
    from headscope.probes.attention.tables import Answers

    settings = results.manifest["settings"]
    answers = Answers(Kept(results.state("probe")), settings["replicates"], settings["seed"])
    one = _maker(answers.kept.words("document"), settings["seed"])
    relations = np.array(answers.relations)
    name = "attention_probe_relations"
    rows = [(row["probe"], row["relation"]) for row in results[name]] if name in results else []
    right: Mapping[str, Float64[np.ndarray, "word"]] = {name: answers.right(name).mean(1) for name in answers.names}
    return {
        "summary": {(name,): one(answers.share(own, answers.counts)) for name, own in right.items()},
        name: {(probe, of): one(answers.share(right[probe], relations == of)) for probe, of in rows},
    }


def _keywords(results: Results) -> Tables:
    from headscope.probes.keywords.learning import LEVELS
    from headscope.probes.keywords.tables import NAMES
    from headscope.stats.bootstrap import poisson_weights
    from headscope.stats.keyphrases import KeyphraseF1

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


_MADE: dict[str, Callable[[Results], Tables]] = {"attention_probe": _attention, "keywords": _keywords}


def _maker(documents: Sequence[str], seed: int) -> Callable[[Float64[np.ndarray, "replicate+1"]], Replicated]:
    """What makes replicates of these documents out of values."""
    known = frozenset(documents)
    usable, n = np.array([len(known) > 1]), np.array([float(len(documents))])
    return lambda values: Replicated(Resampled("", values[:, None], usable, n), (known, seed))
