"""Figures of similar heads: Clark et al. 2019, Figure 6, the whole matrix of distances, and the tree of heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.comparison.alike import alike
from headscope.core.heads import HeadId, Kind
from headscope.drawing.look import MARKERS, SEQUENTIAL, across, colour_map, fitted, grey, hue, narrow, pt, wide
from headscope.drawing.point_labels import limits, write_names
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.stats.embedding import STRESS

if TYPE_CHECKING:
    from jaxtyping import Float64
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.stats.clusters import Grouping, Linkage
    from headscope.stats.embedding import Method

SURFACE = ("next", "previous", "broad", "[CLS]", "[SEP]", "punctuation")  # heads of any other type are named
_WIDE, _GAP, _ABOVE, _BELOW = 4.75, 0.15, 0.32, 0.9  # inches: a panel, between panels, above, and below for the legend
NAMED = 400  # leaves that have names


@dataclass(frozen=True)
class AlikeChoices:
    """How distances are drawn: the scaling of `clark6`, groups and linkage of trees, the order of the matrix."""

    embedding: Method = "metric"
    sqrt: bool = False
    groups: int | None = None
    linkage: Linkage = "average"
    order: Literal["layer", "tree"] = "layer"

    def __post_init__(self) -> None:
        if self.order not in ("layer", "tree"):
            raise RunError(f"there is no order {self.order!r}", "Use layer or tree")


USUAL = AlikeChoices()
# Which of these choices each figure takes.
FOLLOWED = {
    "clark6": ("embedding", "sqrt"),
    "dendrogram": ("groups", "linkage", "sqrt"),
    "distances": ("order", "linkage", "sqrt"),
}


def clark6(results: Results, kind: Kind | None = None, choices: AlikeChoices = USUAL) -> Drawing:
    """A figure with heads as points, similar heads close together: on the left by behaviour, on the right by layer."""
    likeness = alike(results, kind)
    points, stress = likeness.embed(choices.embedding, choices.sqrt)
    labels, surface = tuple(map(results.spelled, likeness.labels)), tuple(map(results.spelled, SURFACE))
    low, high = limits(points)
    with theme():
        side = across(2)
        width = wide(2 * _WIDE + 3 * _GAP)
        panel = (width - (side + 1) * _GAP) / side
        tall = panel * float((high - low)[1] / (high - low)[0])
        size = np.array([width, (tall + _ABOVE + _BELOW) * (2 // side)])
        figure = new_figure(float(size[0]), float(size[1]), layout=None)
        panels = []
        for number, title in enumerate(("By behaviour", "By layer")):
            left, below = _GAP + (panel + _GAP) * (number % side), _BELOW + (tall + _ABOVE + _BELOW) * ((1 - number) // side)
            axes = figure.add_axes((left / width, below / size[1], panel / width, tall / size[1]))
            axes.set_title(title if results.layout.one_kind else f"{title} ({likeness.kind} attention)", fontsize=pt(9), loc="left")
            axes.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            axes.spines[:].set(visible=True, color=grey(0.8))
            panels.append(axes)
        _behaviours(panels[0], points, labels, surface)
        named = [f"{head} {label}" if label and label not in surface else "" for head, label in zip(likeness.heads, labels, strict=True)]
        write_names(panels[0], points, named)
        bar = (left + 0.05 * panel) / width, (_BELOW - 0.28) / size[1], 0.9 * panel / width, 0.1 / size[1]
        _layers(panels[1], figure.add_axes(bar), points, likeness.heads)
        what = f"{'square roots of ' if choices.sqrt else ''}mean Jensen–Shannon divergence"
        how = f"{what}, {choices.embedding} scaling, {STRESS[choices.embedding]} {stress:.3f}"
        sign(figure, f"{likeness.n:,} rows of attention, {len(likeness.heads)} heads; {how}", results.signature)
    return figure


def _behaviours(axes: Axes, points: Float64[np.ndarray, "head 2"], labels: tuple[str, ...], surface: tuple[str, ...]) -> None:
    """Draw points by behaviour; heads with a label that is not in `surface` have one colour, and are named later."""
    labelled = np.array(labels, dtype=object)
    looks = [(labelled == label, label, 26.0, hue(number), MARKERS[number], 2) for number, label in enumerate(surface)]
    looks.append((~np.isin(labelled, ["", *surface]), "another type, named", 34.0, hue(6), MARKERS[6], 3))
    looks.append((labelled == "", "other", 11.0, grey(0.72), "o", 1))
    for at, label, size, colour, marker, order in looks:
        if at.any():
            x, y = points[at].T
            axes.scatter(x, y, s=size, c=colour, marker=marker, linewidths=0, label=f"{label} ({at.sum()})", zorder=order)
    axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, 0), ncols=4 if not narrow() else 2, fontsize=pt(7.5), handletextpad=0.2, columnspacing=1.0
    )


def _layers(axes: Axes, bar: Axes, points: Float64[np.ndarray, "head 2"], heads: tuple[HeadId, ...]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm
    from matplotlib.figure import Figure

    layers = np.array([head.layer + 1 for head in heads])
    numbers = np.arange(layers.min(), layers.max() + 1)
    norm = BoundaryNorm(np.append(numbers, numbers[-1] + 1) - 0.5, colormaps[SEQUENTIAL].N)
    x, y = points.T
    drawn = axes.scatter(x, y, s=24, c=layers, cmap=colour_map(SEQUENTIAL), norm=norm, edgecolors=grey(0.35), linewidths=0.3)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    legend = figure.colorbar(drawn, cax=bar, orientation="horizontal", label="Layer", ticks=numbers[:: -(-len(numbers) // 24)])
    legend.minorticks_off()
    legend.outline.set_visible(False)
    bar.tick_params(length=0, labelsize=pt(7.5))


def distances(results: Results, kind: Kind | None = None, choices: AlikeChoices = USUAL) -> Drawing:
    """A figure of the distances of every head to every head, by layer or in the order of the tree."""
    likeness = alike(results, kind)
    by_tree = choices.order == "tree"
    order = list(likeness.groups(1, choices.linkage, choices.sqrt).tree.leaves) if by_tree else list(range(len(likeness.heads)))
    heads = [likeness.heads[place] for place in order]
    shown = np.sqrt(likeness.distances) if choices.sqrt else likeness.distances
    side = float(np.clip(0.072 * len(heads), 3, 10.5))
    side = wide(side + 1.6) - 1.6
    with theme():
        figure = new_figure(side + 1.6, side + 0.9)
        axes = figure.subplots()
        image = axes.imshow(shown[np.ix_(order, order)], cmap=colour_map(SEQUENTIAL), vmin=0, interpolation="nearest")
        axes.grid(visible=False)
        if by_tree:
            size = float(np.clip(0.8 * 72 * side / len(heads), 2, 8))
            axes.set_xticks(range(len(heads)), map(str, heads), fontsize=size, rotation=90)
            axes.set_yticks(range(len(heads)), map(str, heads), fontsize=size)
            axes.tick_params(length=0, pad=1)
        else:
            _by_layer(axes, heads)
        axes.spines[:].set_visible(False)
        figure.colorbar(image, ax=axes, shrink=0.7, pad=0.01).set_label(unit(results, choices.sqrt), fontsize=pt(7.5))
        ordered = f"in the order of the tree ({choices.linkage} linkage)" if by_tree else "by layer"
        sign(figure, f"{likeness.n:,} rows of attention, {len(heads)} heads {ordered}", results.signature)
    return figure


def _by_layer(axes: Axes, heads: list[HeadId]) -> None:
    """Draw lines between layers, and their numbers."""
    starts = [place for place, head in enumerate(heads) if place == 0 or heads[place - 1].layer != head.layer]
    for start in starts[1:]:
        axes.axvline(start - 0.5, color="white", linewidth=0.9)
        axes.axhline(start - 0.5, color="white", linewidth=0.9)
    ends = [*starts[1:], len(heads)]
    middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(middles, [str(heads[start].layer + 1) for start in starts])
    axes.tick_params(length=0)
    axes.set_xlabel("Layer" if narrow() else "Layer (its heads from left to right)")
    axes.set_ylabel("Layer" if narrow() else "Layer (its heads from top to bottom)")


def unit(results: Results, sqrt: bool) -> str:
    """The unit of distances."""
    summed = "" if results.measures.get("distances", {}).get("normalise", True) else ", summed over rows"
    return f"√ Jensen–Shannon divergence (√nats{summed})" if sqrt else f"Jensen–Shannon divergence (nats{summed})"


def dendrogram(results: Results, kind: Kind | None = None, choices: AlikeChoices = USUAL) -> Drawing:
    """A figure of the tree of heads, one line per head with its type; the dashed line cuts it into groups."""
    likeness = alike(results, kind)
    grouping = likeness.groups(choices.groups, choices.linkage, choices.sqrt)
    size = len(likeness.heads)
    step = 0.112 if size <= NAMED else 45 / size
    with theme():
        figure = new_figure(6.4, 1.1 + step * size)
        axes = figure.subplots()
        _branches(axes, grouping)
        axes.set_ylim(size - 0.3, -0.7)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0, pad=1)
        leaves = grouping.tree.leaves
        names = [f"{results.spelled(likeness.labels[leaf])}  {likeness.heads[leaf]}".strip() for leaf in leaves]
        axes.set_yticks(range(size) if size <= NAMED else [], names if size <= NAMED else [], fontsize=pt(6))
        axes.set_xlim(left=0)
        axes.set_xlabel(fitted(f"{unit(results, choices.sqrt)}, at which groups are joined ({choices.linkage} linkage)"))
        axes.secondary_xaxis("top")
        sign(figure, f"{likeness.n:,} rows of attention, {size} heads; {grouping.about}", results.signature)
    return figure


def cut_height(grouping: Grouping) -> float | None:
    """The height that cuts a tree into its groups; None for one group, or for as many groups as heads."""
    size, heights = len(grouping.tree.leaves), grouping.tree.heights
    if not 1 < grouping.number < size:
        return None
    return float(heights[size - grouping.number - 1] + heights[size - grouping.number]) / 2


def _branches(axes: Axes, grouping: Grouping) -> None:
    """Draw the tree from left (0) to right: branches within a group in its colour, and the cut."""
    from matplotlib.collections import LineCollection

    tree, size = grouping.tree, len(grouping.tree.leaves)
    y = dict(zip(tree.leaves, map(float, range(size)), strict=True))
    height = dict.fromkeys(range(size), 0.0)
    group_of = dict(enumerate(grouping.groups.tolist()))  # the group of all points of a cluster, -1 if there are several groups
    # Adjacent groups have different colours; a group of a single head has none.
    order = dict.fromkeys(int(grouping.groups[leaf]) for leaf in tree.leaves if (grouping.groups == grouping.groups[leaf]).sum() > 1)
    colours = {group: hue(number % 6) for number, group in enumerate(order)}
    lines, painted = [], []
    for row, (a, b, at, _) in enumerate(tree.merges):
        a, b, new = int(a), int(b), size + row
        lines.append([(height[a], y[a]), (at, y[a]), (at, y[b]), (height[b], y[b])])
        y[new], height[new], group_of[new] = (y[a] + y[b]) / 2, at, group_of[a] if group_of[a] == group_of[b] else -1
        painted.append(colours.get(group_of[new], grey(0.45)))
    axes.add_collection(LineCollection(lines, colors=painted, linewidths=1.1))
    axes.set_xlim(0, 1.04 * (float(tree.heights[-1]) if size > 1 else 1) or 1)
    if (cut := cut_height(grouping)) is not None:
        axes.axvline(cut, color=grey(0.3), linewidth=0.9, linestyle=(0, (4, 3)))
        for group in order:
            places = [place for place, leaf in enumerate(tree.leaves) if grouping.groups[leaf] == group]
            middle = y[max(cluster for cluster in group_of if group_of[cluster] == group)]
            axes.text(cut, middle, f" {group + 1} ({len(places)})", color=colours[group], fontsize=pt(7), weight="bold", va="bottom")
