"""Targets one by one: what probes believe of them with each layer more, and a search for those whose decision turns
(Figure 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Edge
from headscope.encoding.texts import Encoded

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

SHOWN, WORTH = 4, 0.1  # labels of an example that are shown, and the least belief that another than the true ones must have had
AROUND = 10  # words shown before and after spans


@dataclass(frozen=True)
class Turn:
    """A decision that turns: `before` is ahead at layer `first` and `after` at layer `last`, both by `margin` or more.

    Where a target may have several labels, a label is set against its absence: `before` or `after` is then "not" it.
    """

    margin: float
    before: str
    after: str
    first: int
    last: int


def turn(beliefs: Float[np.ndarray, "layer label"], names: Sequence[str], several: bool = False) -> Turn:
    """The clearest turn of a decision from one layer to a later one; a margin of 0 or less says that it never turns."""
    belief = np.asarray(beliefs, dtype=np.float64)
    if several:
        lead: Float64[np.ndarray, "layer choice"] = np.concatenate([belief - 0.5, 0.5 - belief], axis=1)
        back = -lead
        pairs = [(name, f"not {name}") for name in names] + [(f"not {name}", name) for name in names]
    else:
        ahead = belief[:, :, None] - belief[:, None, :]
        ahead[:, np.arange(len(names)), np.arange(len(names))] = -np.inf
        lead, back = ahead.reshape(len(belief), -1), ahead.swapaxes(1, 2).reshape(len(belief), -1)
        pairs = [(first, second) for first in names for second in names]
    so_far = np.maximum.accumulate(lead[:-1])
    both = np.minimum(so_far, back[1:])
    last, choice = np.unravel_index(int(both.argmax()), both.shape)
    first = int(lead[: last + 1, choice].argmax())
    return Turn(float(both[last, choice]), *pairs[int(choice)], first, int(last) + 1)


def verdict(turned: Turn, gold: Sequence[str], several: bool = False) -> str:
    """What the turn was for: `corrected`, `spoiled`, or `changed` from one wrong label to another."""
    if several:
        right = [(name in gold) if not name.startswith("not ") else (name[4:] not in gold) for name in (turned.before, turned.after)]
    else:
        right = [name in gold for name in (turned.before, turned.after)]
    return "corrected" if right[1] and not right[0] else "spoiled" if right[0] and not right[1] else "changed"


def settled(beliefs: Float[np.ndarray, "layer label"], several: bool = False) -> int:
    """The layer from which on the decision stays what it is in the end."""
    decided = (beliefs >= 0.5) if several else beliefs.argmax(1)[:, None]
    same = (decided == decided[-1]).all(1)
    return int(len(same) - np.argmin(same[::-1])) if not same.all() else 0


def shown_labels(
    beliefs: Float[np.ndarray, "layer label"], gold: Bool[np.ndarray, "label"], turned: Turn, names: Sequence[str]
) -> list[int]:
    """The labels worth showing: those of the turn, the true ones, and those that are ever believed most."""
    labels = [name.removeprefix("not ") if name not in names else name for name in (turned.before, turned.after)]
    wanted = [names.index(name) for name in labels if name in names]
    wanted += np.flatnonzero(gold).tolist()
    highest = beliefs.max(0)
    wanted += [label for label in np.argsort(-highest, kind="stable").tolist() if highest[label] >= WORTH]
    return list(dict.fromkeys(wanted))[:SHOWN]


def marked(text: Encoded, edge: Edge) -> str:
    """The words around the spans of a target, spans in brackets; those of a pair are numbered."""
    spans = [edge.first] if edge.second is None else [edge.first, edge.second]
    near = {place for start, end in spans for place in range(start - AROUND, end + AROUND) if 0 <= place < len(text.words)}
    words = []
    for place in sorted(near):
        if place and place - 1 not in near:
            words.append("…")
        word = text.words[place].form
        for number, span in enumerate(spans, 1):
            word = "[" * (span[0] == place) + word + (f"]{number if len(spans) > 1 else ''}" if span[1] - 1 == place else "")
        words.append(word)
    return " ".join(words) + " …" * (len(text.words) - 1 not in near)
