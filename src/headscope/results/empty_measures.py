"""Measures that counted nothing: without a warning their empty tables look like results."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.core.heads import HeadLayout
from headscope.core.state import States
from headscope.measures import Measure
from headscope.measures.base import Columns


def uncounted(measures: Sequence[Measure], states: States, layout: HeadLayout, tables: dict[str, Columns]) -> list[str]:
    """A sentence for each measure whose table of heads has no row with an n above 0, with what to check."""
    found = []
    for measure in measures:
        columns = tables.get(measure.name, {})
        if "n" not in columns or any(columns["n"]):
            continue
        most = max((int(n.max()) for _, n in measure.glimpse(states[measure.name], layout).values() if len(n)), default=0)
        least = measure.options().get("least")
        if most and least is not None:
            remedy = f"Use more texts, or a smaller -O {measure.name}.least"
            found.append(f"{measure.name} lists nothing: no label has {least} cases (the most frequent has {most}). {remedy}.")
        else:
            where = f"at level {measure.level}" + (f", by {measure.unit}" if measure.unit is not None else "")
            found.append(
                f"{measure.name} counted nothing: n is 0 for every head. Check that the texts have what it looks for ({where}), and "
                "that none of it is cut off or left out."
            )
    return found
