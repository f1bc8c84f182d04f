"""The figures of runs and studies by name, for help and errors. Help must be quick: nothing slow is imported here."""

from __future__ import annotations

from headscope.studies.registry import REGISTRY

# What each figure shows, and the measures that it needs. Studies declare their own figures.
RUN_FIGURES = {
    "clark2": "Clark et al. 2019, Figure 2: attention to token types and neighbours by layer (positions, tokens)",
    "clark3": "Clark et al. 2019, Figure 3: gradients of the loss with respect to attention, by layer (saliency)",
    "clark4": "Clark et al. 2019, Figure 4: entropy by layer (entropy)",
    "clark5": "Clark et al. 2019, Figure 5: the heads that exceed a simple rule by most, each on a sentence (relations, coreference)",
    "sinks": "attention to the first token and where sinks are, by layer (sinks)",
    "sequences": "induction, duplicate-token and previous-token scores of every head, by layer (sequences)",
    "stripes": "maps of the strongest induction heads on a repeated sequence (sequences, on --corpus repeats:20)",
    "table1": "Clark et al. 2019, Table 1: the best head of each dependency relation beside the best fixed offset (relations)",
    "table2": "Clark et al. 2019, Table 2: rules, one head, and the best head of each kind of mention (coreference)",
    "pronouns": "the best head for each kind of pronoun beside the best rule (pronouns)",
    "matrix": "every dependency relation by every head, above the best fixed offset (relations)",
    "clark6": "Clark et al. 2019, Figure 6: heads as points, those that attend alike close together, by behaviour and by layer (distances)",
    "dendrogram": "the tree of heads, the closest joined first, and the groups that it falls into (distances)",
    "distances": "how differently heads attend, every head by every head (distances)",
    "heatmap": "one quantity of every head, layer by head (any measure)",
}


def known_figures() -> dict[str, str]:
    """All figures of runs and studies by name, each with a line that says what it shows and which command makes it."""
    studies = {figure.name: f"{figure.line} (headscope {study.verb})" for study in REGISTRY.values() for figure in study.figures}
    return {**RUN_FIGURES, **studies}
