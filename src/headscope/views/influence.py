"""Influence between the tokens of a text as pages read it: what frontend/src/types.ts calls InfluenceData."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headscope.errors import MeasureError
from headscope.gallery.texts import packed, quantised
from headscope.models.jacobian.choices import Kind
from headscope.studies.flow.influence import ABOUT, CHEAP, Influence, Layer

OFFERED: tuple[Kind, ...] = ("A", "G", "G*", "rollout", "norms")  # in a list to choose from


def pack_influence(influence: Influence, measure: Kind) -> dict[str, Any]:
    """One measure: every layer as 16-bit numbers, row by row, rows being what is influenced; 65535 is the layer's
    scale.
    """
    values = influence.values(measure).transpose(0, 2, 1)
    scales = values.max((1, 2))
    shares = values / np.where(scales > 0, scales, 1)[:, None, None]
    flat = quantised(shares.reshape(-1, shares.shape[-1]))
    return {"scales": scales.tolist(), "values": packed(flat), "note": influence.note(measure), "settings": influence.settings(measure)}


def first_shown(measures: Iterable[Kind], layers: Iterable[Layer]) -> dict[str, Any]:
    """The measure and the layer that a page begins with."""
    return {"measure": next(iter(measures), "A"), "layer": next(iter(layers), "mean")}


def offered(asked: Iterable[Kind] = ()) -> dict[Kind, str]:
    """The measures of a host that computes them when they are chosen, with what each is."""
    return {kind: ABOUT[kind] for kind in dict.fromkeys((*OFFERED, *asked))}


def held_influence(influence: Influence, asked: Iterable[Kind], room: int) -> dict[str, Any]:
    """The measures that a page can hold: those asked for, and those that need one forward pass if they fit into
    `room` bytes.
    """
    asked = tuple(asked)
    held: dict[Kind, Any] = {}
    missing: dict[Kind, str] = {}
    for kind in offered(asked):
        if kind not in asked and kind not in CHEAP:
            missing[kind] = f"takes longer to compute: make the page with --measure {kind}, or use headscope serve"
            continue
        if kind not in asked and room < influence.size:
            missing[kind] = f"the text is long: make the page with --measure {kind}"
            continue
        try:
            held[kind] = pack_influence(influence, kind)
            room -= influence.size
        except MeasureError as error:
            if kind in asked:
                raise
            missing[kind] = error.problem
    return {"measures": {kind: ABOUT[kind] for kind in held}, "missing": missing, "held": held}
