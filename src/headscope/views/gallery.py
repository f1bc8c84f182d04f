"""The texts that a run kept, and its map of heads, as the views read them (frontend/src/types.ts, Run)."""

from __future__ import annotations

from typing import Any

from headscope.runs.gallery import Gallery, Points
from headscope.runs.texts import packed
from headscope.views.numbers import rounded


def gallery_data(gallery: Gallery | None) -> dict[str, Any]:
    """Texts with maps of all heads, texts in which a head does what it is best at, and heads as points; all may be missing."""
    if gallery is None:
        return {"texts": [], "stacks": [], "examples": [], "map": None}
    return {
        "texts": gallery.texts,
        "stacks": [{"text": text, "maps": {str(head): packed(map) for head, map in maps.items()}} for text, maps in gallery.stacks],
        "examples": [
            {
                **{"head": str(example.head), "measure": example.measure, "quantity": example.quantity},
                **{"value": rounded(example.value), "n": example.n, "text": example.text, "map": packed(example.map)},
            }
            for example in gallery.examples
        ],
        "map": _map(gallery.points) if gallery.points is not None else None,
    }


def _map(points: Points) -> dict[str, Any]:
    return {
        "x": list(map(rounded, points.x.tolist())),
        "y": list(map(rounded, points.y.tolist())),
        "behaviour": points.behaviour,
        "stress": rounded(points.stress),
        "about": f"mean Jensen–Shannon divergence in nats over {points.rows:,} rows of attention of texts that the run kept",
        "neighbours": [[[head, rounded(distance)] for head, distance in nearest] for nearest in points.neighbours],
    }
