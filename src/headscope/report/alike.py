"""The part of a report about heads that are alike: what was found, groups of heads, and how many heads do what."""

from __future__ import annotations

from typing import Any

from headscope.comparison.alike import Alike, alike
from headscope.comparison.alike_findings import STRUCTURE, group_table, groups_sentence, layers_sentence, pairs_sentence, twins_sentence
from headscope.report.published import BEHAVIOURS, BEHAVIOURS_SOURCE
from headscope.results.results import Results
from headscope.results.table import interval
from headscope.views.alike import measured

LISTED = 36  # heads of a group; the tree has all
# The measure that tells each of the paper's labels.
_TOLD = {"next": "positions", "previous": "positions", "broad": "entropy", "[CLS]": "tokens", "[SEP]": "tokens", "punctuation": "tokens"}


def alike_section(results: Results) -> dict[str, Any] | None:
    """Findings, groups and counts; None for a run that did not measure distances."""
    if not measured(results):
        return None
    found = alike(results)
    grouping = found.groups()
    kinds = list(dict.fromkeys(results[STRUCTURE]["kind"]))
    findings = []
    for kind in kinds:
        told = (layers_sentence(results, kind), twins_sentence(results, kind), pairs_sentence(results, kind))
        findings += [line if len(kinds) == 1 else f"{kind.capitalize()} attention: {line}" for line in filter(None, told)]
    groups = [
        {
            **row,
            "silhouette": interval(row["silhouette"]) if row["heads"] > 1 else "–",
            "behaviours": results.spelled(row["behaviours"]),
            "members": _some(row["members"].split()),
        }
        for row in group_table(found, grouping)
    ]
    return {
        "findings": [*findings, results.spelled(groups_sentence(found, grouping))],
        "kind": found.kind if len(kinds) > 1 else "",
        "groups": groups,
        "counts": _counts(results, found),
        "source": BEHAVIOURS_SOURCE,
    }


def _counts(results: Results, found: Alike) -> list[dict[str, str]]:
    """How many heads are called what, and how many the paper's figure shows; of labels that the run can give."""
    if found.kind != "encoder":
        return []
    return [
        {
            "label": results.spelled(label),
            "shown": str(found.labels.count(label)),
            "any": str(sum(label in labels for labels in found.behaviours)),
            "published": published,
        }
        for label, published in BEHAVIOURS.items()
        if _TOLD[label] in results
    ]


def _some(members: list[str]) -> str:
    return " ".join(members) if len(members) <= LISTED else f"{' '.join(members[:LISTED])} and {len(members) - LISTED} more"
