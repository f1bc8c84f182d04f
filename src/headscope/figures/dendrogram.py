"""The tree of heads: which are joined first, and what groups they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.comparison.alike import alike
from headscope.core.heads import Kind
from headscope.drawing.theme import COLOURS, sign, theme
from headscope.figures.alike import USUAL, AlikeChoices, unit
from headscope.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.stats.clusters import Grouping

NAMED = 400  # leaves that have names


def draw(results: Results, kind: Kind | None = None, choices: AlikeChoices = USUAL) -> Figure:
    """The tree of heads, a head a line with what it does; where the dashed line cuts it, it falls into groups."""
    from matplotlib.figure import Figure

    found = alike(results, kind)
    grouping = found.groups(choices.groups, choices.linkage, choices.sqrt)
    size = len(found.heads)
    step = 0.112 if size <= NAMED else 45 / size
    with theme():
        figure = Figure(figsize=(6.4, 1.1 + step * size), layout="constrained")
        axes = figure.subplots()
        _branches(axes, grouping)
        axes.set_ylim(size - 0.3, -0.7)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0, pad=1)
        leaves = grouping.tree.leaves
        names = [f"{results.spelled(found.labels[leaf])}  {found.heads[leaf]}".strip() for leaf in leaves]
        axes.set_yticks(range(size) if size <= NAMED else [], names if size <= NAMED else [], fontsize=6)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{unit(results, choices.sqrt)}, at which groups are joined ({choices.linkage} linkage)")
        axes.secondary_xaxis("top")
        sign(figure, f"{found.n:,} rows of attention, {size} heads; {grouping.about}", results.signature)
    return figure


def cut_height(grouping: Grouping) -> float | None:
    """The height at which a tree falls into its groups; none for one group, or for as many as points."""
    size, heights = len(grouping.tree.leaves), grouping.tree.heights
    if not 1 < grouping.number < size:
        return None
    return float(heights[size - grouping.number - 1] + heights[size - grouping.number]) / 2


def _branches(axes: Axes, grouping: Grouping) -> None:
    """The tree from left (0) to right: branches within a group in its colour, and where they are cut."""
    from matplotlib.collections import LineCollection

    tree, size = grouping.tree, len(grouping.tree.leaves)
    y = dict(zip(tree.leaves, map(float, range(size)), strict=True))
    height = dict.fromkeys(range(size), 0.0)
    one = dict(enumerate(grouping.groups.tolist()))  # the group that all points of a cluster are of, -1 if there are several
    # Groups side by side have different colours; one of a single head has none.
    order = dict.fromkeys(int(grouping.groups[leaf]) for leaf in tree.leaves if (grouping.groups == grouping.groups[leaf]).sum() > 1)
    colours = {group: COLOURS[number % 6] for number, group in enumerate(order)}
    lines, painted = [], []
    for row, (a, b, at, _) in enumerate(tree.merges):
        a, b, new = int(a), int(b), size + row
        lines.append([(height[a], y[a]), (at, y[a]), (at, y[b]), (height[b], y[b])])
        y[new], height[new], one[new] = (y[a] + y[b]) / 2, at, one[a] if one[a] == one[b] else -1
        painted.append(colours.get(one[new], "0.45"))
    axes.add_collection(LineCollection(lines, colors=painted, linewidths=1.1))
    axes.set_xlim(0, 1.04 * (float(tree.heights[-1]) if size > 1 else 1) or 1)
    if (cut := cut_height(grouping)) is not None:
        axes.axvline(cut, color="0.3", linewidth=0.9, linestyle=(0, (4, 3)))
        for group in order:
            places = [place for place, leaf in enumerate(tree.leaves) if grouping.groups[leaf] == group]
            middle = y[max(cluster for cluster in one if one[cluster] == group)]
            axes.text(cut, middle, f" {group + 1} ({len(places)})", color=colours[group], fontsize=7, weight="bold", va="bottom")
