"""Every label by every head: what each head is good at, in one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.theme import sign, theme
from headscope.errors import RunError
from headscope.results.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("relations",)


def draw(results: Results, kind: str | None = None, measure: str = "relations") -> Figure:
    """Accuracy above the best simple rule, of the better direction; layers are parted by lines."""
    from matplotlib.figure import Figure

    table = results[measure]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds or (kind is not None and kind not in kinds):
        raise RunError(f"{measure} has nothing to draw for {kind or 'any'} attention", f"It has {', '.join(kinds) or 'no label'}")
    table = table.where(kind=kind or kinds[0])
    labels = list(dict.fromkeys(table["label"]))
    heads = sorted(set(zip(table["layer"], table["head"], strict=True)))
    place = {head: column for column, head in enumerate(heads)}
    lift = np.full((len(labels), len(heads)), -np.inf)
    for row in table:
        at = labels.index(row["label"]), place[row["layer"], row["head"]]
        lift[at] = max(lift[at], row["lift"])
    bound = float(np.clip(np.abs(lift[np.isfinite(lift)]).max(), 0.01, 0.5))  # far below the rule is all the same
    with theme():
        figure = Figure(figsize=(9.6, 1.4 + 0.2 * len(labels)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(lift, aspect="auto", cmap="PuOr_r", vmin=-bound, vmax=bound, interpolation="nearest")
        starts = [column for column, (layer, _) in enumerate(heads) if column == 0 or heads[column - 1][0] != layer]
        for start in starts[1:]:
            axes.axvline(start - 0.5, color="white", linewidth=1.2)
        ends = [*starts[1:], len(heads)]
        axes.set_xticks(
            [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)], [str(heads[start][0]) for start in starts]
        )
        axes.set_xlabel("Layer (its heads from left to right)")
        axes.set_yticks(range(len(labels)), labels)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, label="accuracy − best fixed offset", pad=0.01, extend="both")
        sign(figure, f"{max(table['n']):,} words", results.signature)
    return figure
