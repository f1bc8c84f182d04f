"""The kinds of maps that measures can read (docs/maps.md): attention weights, norms of values, value zeroing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

MapName = Literal["weights", "norm", "value-zeroing"]
MAPS: tuple[MapName, ...] = get_args(MapName)
WEIGHTS: MapName = "weights"
# The note on the numbers of a run, if they are not of attention weights.
_SENTENCES: Mapping[str, str] = {
    "norm": (
        "All numbers are of norm maps, not of attention weights: where attention is named, read the norm of what a head carries from a "
        "token, ‖α f(x)‖, as a share of its row (Kobayashi et al. 2020). The maps of examples are norm maps, too; a text typed in shows "
        "weights."
    ),
    "value-zeroing": (
        "All numbers are of value zeroing, not of attention weights: where attention is named, read how far the output of a layer turns "
        "when a token's value vector is set to 0, as a share of its row (Mohebbi et al. 2023). A layer has one such map, named as its "
        "first head. The maps of examples are the same; a text typed in shows weights."
    ),
}


def map_sentence(name: str) -> str | None:
    """A note for readers about the numbers of a run over this map; None for attention weights."""
    return _SENTENCES.get(name)
