"""Names of points in a figure, placed so that they cover neither each other nor other points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.look import grey, pt

if TYPE_CHECKING:
    from jaxtyping import Float, Float64
    from matplotlib.axes import Axes

    Place = Float[np.ndarray, "2"]
    Box = Float[np.ndarray, "4"]  # left, bottom, right, top

_WIDE, _HIGH = 0.58, 1.2  # width and height of a letter, as shares of the font size
_TURNS, _RINGS = 24, (0.9, 1.6, 2.6, 3.8, 5.2, 7.0)  # candidate places around a point: directions, and distances in heights of a name
_POINT, _NEAR = 2.5, 4.0  # points: half the size of a mark, and the distance up to which a name needs no line
_FAR = 0.06  # cost of a place per height of distance; covering another name costs its width in heights


def write_names(axes: Axes, points: Float[np.ndarray, "point 2"], names: Sequence[str]) -> None:
    """Write a name beside each point that has one ("" for none), and a thin line to a name that is further away.

    The place of the axes and their limits must be final, because distances on the page are used.
    """
    size = pt(6.5)
    figure = axes.get_figure(root=True)
    assert figure is not None
    unit = figure.dpi / 72
    at = axes.transData.transform(points)
    room = np.ravel(axes.get_window_extent().get_points())
    taken = [np.concatenate([point - _POINT * unit, point + _POINT * unit]) for point in at]
    written: list[Box] = []
    high = _HIGH * size * unit
    for place in sorted(filter(names.__getitem__, range(len(names))), key=lambda place: (-_neighbours(at, place), place)):
        others = np.stack(taken)
        wide = len(names[place]) * _WIDE * size * unit

        def cost(box: Box, point: Place = at[place], others: Float[np.ndarray, "box 4"] = others) -> float:
            covered = (
                _covered(box, others)
                + _outside(box, room)
                + sum(_covered(step, np.stack(written)) for step in _line(point, box, unit) if written)
            )
            return covered / high**2 + _FAR * float(np.hypot(*(_nearest(box, point) - point))) / high

        box = min(_around(at[place], wide, high), key=cost)
        written.append(box)
        line = _line(at[place], box, unit)
        taken += [box, *line]
        axes.annotate(
            names[place],
            points[place],
            xytext=tuple(axes.transData.inverted().transform((box[:2] + box[2:]) / 2)),
            ha="center",
            va="center",
            fontsize=size,
            arrowprops={"arrowstyle": "-", "color": grey(0.5), "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2} if line else None,
            zorder=4,
        )


def _neighbours(at: Float[np.ndarray, "point 2"], place: int) -> int:
    """How many points are near a point: points with the most neighbours are named first."""
    return int(np.count_nonzero(np.hypot(*(at - at[place]).T) < np.ptp(at, 0).max(initial=1) / 12))


def _around(point: Place, wide: float, high: float) -> Iterator[Box]:
    """Boxes for a name around a point, the nearest first."""
    half = np.array([wide, high]) / 2
    for ring in _RINGS:
        for turn in range(_TURNS):
            angle = 2 * np.pi * turn / _TURNS
            middle = point + np.array([np.cos(angle), np.sin(angle)]) * (half + (ring - 0.4) * high * np.array([0.8, 1.0]))
            yield np.concatenate([middle - half, middle + half])


def _nearest(box: Box, point: Place) -> Place:
    nearest: Place = np.clip(point, box[:2], box[2:])
    return nearest


def _line(point: Place, box: Box, unit: float) -> list[Box]:
    """Small boxes along the line from a point to its name; none if the name is so close that it needs no line."""
    end = _nearest(box, point)
    length = float(np.hypot(*(end - point)))
    if length <= _NEAR * unit:
        return []
    steps = np.linspace(point, end, 2 + int(length / (2 * unit)))[1:-1]
    return [np.concatenate([step - unit / 2, step + unit / 2]) for step in steps]


def _covered(box: Box, others: Float[np.ndarray, "box 4"]) -> float:
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return float(sides.clip(0).prod(1).sum())


def _outside(box: Box, room: Box) -> float:
    inside = (np.minimum(box[2:], room[2:]) - np.maximum(box[:2], room[:2])).clip(0).prod()
    return float((box[2:] - box[:2]).prod() - inside)


def limits(points: Float64[np.ndarray, "head 2"]) -> tuple[Float64[np.ndarray, "2"], Float64[np.ndarray, "2"]]:
    """The corners of a panel: one scale for both directions, not too flat, not too tall."""
    low, high = points.min(0), points.max(0)
    wide, tall = 1.16 * np.maximum(high - low, 1e-9)
    wide, tall = max(wide, tall / 1.15), max(tall, wide * 0.6)
    middle, half = (low + high) / 2, np.array([wide, tall]) / 2
    return middle - half, middle + half
