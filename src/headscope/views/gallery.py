"""The texts that a run kept, and its map of heads, as the views read them (frontend/src/types.ts, Run)."""

from __future__ import annotations

from typing import Any

from headscope.errors import RunError, StaleError
from headscope.gallery.texts import packed
from headscope.results.gallery import Gallery, Points
from headscope.results.results import Results
from headscope.views.numbers import rounded


def readable(results: Results) -> tuple[Gallery | None, str]:
    """A run's gallery, or none and a line that says so where its file is damaged: the run is whole without it."""
    try:
        return results.gallery, ""
    except StaleError:
        raise
    except RunError:
        return None, "its gallery cannot be read"


def gallery_data(gallery: Gallery | None) -> dict[str, Any]:
    """Texts with maps of all heads, texts in which a head does what it is best at, and heads as points; all may be
    missing.
    """
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
