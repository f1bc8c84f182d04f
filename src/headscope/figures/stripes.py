"""Maps of the strongest sequence heads on a text with repeated tokens: induction heads show a stripe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.drawing.look import across, colour_map, pt, wide
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label
from headscope.errors import RunError
from headscope.figures.panels import choose_kind
from headscope.measures.sequences import earlier_copies
from headscope.results.gallery import Example
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing

NEEDS = ("sequences",)
MOST = 3  # heads
LABELLED = 60  # most tokens of a map with labels
_REMEDY = "Run again with --measures sequences --corpus repeats:20, whose sequences fit on a page"


def draw(results: Results, kind: str | None = None, quantity: str = "induction") -> Drawing:
    """A figure of the maps of the heads with the highest scores, each on the text of the gallery that shows it best."""
    kind = choose_kind(results, list(NEEDS), kind)
    rows = sorted((row for row in results["sequences"].where(kind=kind, quantity=quantity) if row["n"]), key=lambda row: -row["value"])
    values = {HeadId(row["kind"], row["layer"] - 1, row["head"] - 1): row["value"] for row in rows}
    called = dict(zip(values, map(results.head_of, rows), strict=True))
    examples = {head: example for head in values for example in _examples(results, head, quantity)}
    shown = list(examples.items())[:MOST]
    if not shown:
        raise RunError(f"the gallery of the run has no text that shows {quantity}", _REMEDY)
    with theme():
        side = across(len(shown))
        down = len(shown) // side
        figure = new_figure(0.6 + 3.2 * len(shown), min(3.9, 0.7 + wide(9.6) / side) * down)
        for axes, (head, example) in zip(figure.subplots(down, side, squeeze=False).flat, shown, strict=True):
            weights = example.map / 65535
            image = axes.imshow(weights, cmap=colour_map("Blues"), vmin=0, vmax=1, interpolation="nearest")
            tokens = results.gallery.texts[example.text]["source"]["tokens"] if results.gallery is not None else []
            if len(tokens) <= LABELLED:
                names = [label(token) for token in tokens]
                axes.set_xticks(range(len(names)), names, rotation=90, fontsize=pt(3.5), parse_math=False)
                axes.set_yticks(range(len(names)), names, fontsize=pt(3.5), parse_math=False)
            axes.tick_params(length=0)
            axes.grid(visible=False)
            axes.set_xlabel("attended to")
            axes.set_title(f"Head {called[head]}: {quantity} {values[head]:.2f}", fontsize=pt(9), loc="left")
        figure.axes[0].set_ylabel("attending")
        figure.colorbar(image, ax=figure.axes, shrink=0.7, label="attention weight")
        sign(figure, f"{len({example.text for _, example in shown})} of {rows[0]['n']} texts", results.signature)
    return figure


def _examples(results: Results, head: HeadId, quantity: str) -> list[Example]:
    """The first example of the gallery for a head's score whose text has a token and an earlier copy of it, if any."""
    if results.gallery is None:
        return []
    examples = [example for example in results.gallery.examples if (example.head, example.quantity) == (head, quantity)]
    return [example for example in examples if _repeats(results.gallery.texts[example.text]["source"])][:1]


def _repeats(side: dict[str, list[str]]) -> bool:
    tokens = np.unique(side["tokens"], return_inverse=True)[1][None]
    return len(earlier_copies(tokens, np.array([side["roles"]]) == WORD).row) > 0
