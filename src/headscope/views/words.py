"""What pages say of the quantities. The names are documented in docs/quantities.md."""

from __future__ import annotations

QUANTITIES = {
    "previous": "to the previous token",
    "next": "to the next token",
    "self": "to the token itself",
    "to_cls": "to the opening special token ([CLS])",
    "to_sep": "to the closing or parting special tokens ([SEP])",
    "to_punct": "to periods and commas",
    "sep_to_sep": "from [SEP] to [SEP]",
    "other_to_sep": "from all other tokens to [SEP]",
    "entropy": "entropy of the rows, in nats: low is focused, high is broad",
    "entropy_cls": "entropy of the [CLS] row",
    "max_weight": "largest weight of a row",
    "sink_mass": "weight that goes to no token",
    "uuas": "share of annotated edges, directions aside, that the maximum spanning tree of the head has",
}
# Quantities that are not between 0 and 1.
UNBOUNDED = frozenset({"entropy", "entropy_cls"})


def about(measure: str, label: str, direction: str) -> str:
    """A phrase that says what a quantity is."""
    if not direction:
        return QUANTITIES.get(label, "")
    asks, _, answers = direction.partition("-to-")
    what = {"relations": f"{label}: from the {asks} to the {answers}"}.get(measure, f"{label}: {asks} to {answers}")
    return what.replace("dep", "dependent") if measure == "relations" else what
