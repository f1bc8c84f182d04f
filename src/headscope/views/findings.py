"""What studies found, in plain words: for the terminal, notebooks and pages."""

from __future__ import annotations

from importlib import import_module

from headscope.core.automatic import sentence
from headscope.results.results import Results
from headscope.studies.registry import REGISTRY

# Where the sentences of each kind of study are made; imported when they are asked for.
_MODULES = {
    "ablation": "headscope.studies.ablation.findings",
    "attention_probe": "headscope.studies.attention_probe.findings",
    "keywords": "headscope.studies.keywords.findings",
}


def findings(results: Results) -> list[str]:
    """The findings of a study, a sentence or two each; before them whose annotation it is, where a parser made it."""
    study, manifest = results.study or "", results.manifest
    if "findings" in manifest:  # said when it was made
        return list(manifest["findings"])
    if study in REGISTRY:
        return [*whose(results), *REGISTRY[study].findings(results)]
    further = {"ablation": lambda: manifest["settings"]["score"]}
    found: list[str] = import_module(_MODULES[study]).sentences(results, *([further[study]()] if study in further else []))
    return [*whose(results), *found]


def whose(results: Results) -> list[str]:
    """A sentence that says whose annotation it is, where a parser made it."""
    return [sentence(results.annotation)] if results.annotation is not None else []
