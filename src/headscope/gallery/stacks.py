"""Which texts of a gallery come with the maps of all heads."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from headscope.core.heads import HeadLayout
from headscope.encoding.texts import Encoded
from headscope.gallery.windows import Window, window

MOST = 3
BYTES = 1_200_000  # of all stacks together
NICE = range(8, 25)  # tokens
LONGEST = 32


def chosen_stacks(texts: Sequence[Encoded], layout: HeadLayout) -> dict[str, Window]:
    """By id, the texts and what part of them is shown: of good length and of different documents, as far as there are any.

    Models of many heads get fewer stacks, and smaller ones.
    """
    size = max(1, layout.size) * 2
    count = max(1, min(MOST, BYTES // (size * NICE[-1] ** 2)))
    longest = min(LONGEST, isqrt(BYTES // (size * count)))
    usable = [text for text in texts if text.target is None or len(text.target) <= longest]  # a target is never cut
    ranked = sorted(usable, key=lambda text: 0 if text.cost in NICE and text.cost <= longest else text.cost)
    taken: dict[str, Encoded] = {}
    for again in (False, True):
        for text in ranked:
            if len(taken) < count and (again or all(text.document != other.document for other in taken.values())):
                taken[text.id] = text
    return {id: window(text, longest=longest) for id, text in taken.items()}
