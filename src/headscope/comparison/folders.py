"""Folders side by side, whatever they hold: runs, or studies of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headscope.comparison.base import Comparison
from headscope.comparison.runs import compare
from headscope.comparison.studies import compare_studies
from headscope.errors import RunError
from headscope.results.results import Results


def compare_any(given: Sequence[Results | Path], to: int = 1, pairs: bool = False) -> Comparison:
    """What these have in common, and how it differs: each minus the one that `to` names, counted from 1, or all
    pairs.
    """
    results = [one if isinstance(one, Results) else Results.open(one) for one in given]
    kinds = dict.fromkeys(one.study for one in results)
    if None in kinds and len(kinds) > 1:
        raise RunError("runs and studies are named", "Compare runs with runs, and studies with studies of the same kind")
    return compare(results, to, pairs) if None in kinds else compare_studies(results, to, pairs)
