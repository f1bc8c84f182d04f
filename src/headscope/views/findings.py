"""What studies found, in plain words: for the terminal, notebooks and pages."""

from __future__ import annotations

from headscope.core.automatic import sentence
from headscope.results.results import Results
from headscope.studies.registry import REGISTRY


def findings(results: Results) -> list[str]:
    """The findings of a study, a sentence or two each; before them whose annotation it is, where a parser made it."""
    if "findings" in results.manifest:  # said when it was made
        return list(results.manifest["findings"])
    return [*whose(results), *REGISTRY[results.study or ""].findings(results)]


def whose(results: Results) -> list[str]:
    """A sentence that says whose annotation it is, where a parser made it."""
    return [sentence(results.annotation)] if results.annotation is not None else []
