"""What studies found, in plain words: for the terminal, notebooks and pages."""

from __future__ import annotations

from collections.abc import Callable

from headscope.ablation import sentences as ablation
from headscope.flows import sentences as flow
from headscope.probes.attention import sentences as attention
from headscope.probes.edge import sentences as edge
from headscope.probes.keywords import sentences as keywords
from headscope.probes.structural import sentences as structural
from headscope.runs.results import Results

_FINDINGS: dict[str, Callable[[Results], list[str]]] = {
    "flow": flow.sentences,
    "ablation": lambda results: ablation.sentences(results, results.manifest["settings"]["score"]),
    "attention_probe": attention.sentences,
    "edge_probe": edge.sentences,
    "keywords": keywords.sentences,
    "structural_probe": lambda results: structural.sentences(results, results.manifest["best_layer"]),
}


def findings(results: Results) -> list[str]:
    """The findings of a study, a sentence or two each."""
    return _FINDINGS[results.study or ""](results)
