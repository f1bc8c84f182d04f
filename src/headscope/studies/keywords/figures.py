"""Figures of keywords: heads, losses, curves, scores, and one text shaded by the weight of its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.document import Word
from headscope.drawing.cells import Scale, write
from headscope.drawing.look import MARKERS, across, grey, hue, legend_beside, pt, style
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label, width_of
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.studies.keywords.spec import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.studies.keywords.finder import KeywordResult

_RANKED = 20
MOST = 1500  # words of a figure
DEPTH = 0.75  # how dark a word of weight 1 is, so that its letters can be read; as in the browser
_SIZE, _STEP, _PARAGRAPH = 9.0, 0.225, 0.09  # points of a word; inches between lines, and more between paragraphs
_WIDTH, _EDGE, _LIST = 5.6, 0.15, 2.6  # inches of the text, around it, and of the list of phrases


def heads(results: Results, kind: str | None = None) -> Drawing:
    """How much more attention keywords receive than other words, in units of spread; dots mark significant heads."""
    table = results["keywords_heads"].where(received="mean")
    layers, width = max(table["layer"]), max(table["head"])
    grid, sure = np.full((layers, width), np.nan), []
    for row in table:
        grid[row["layer"] - 1, row["head"] - 1] = row["effect"]
        if row["p_holm"] < 0.05:
            sure.append((row["head"] - 1, row["layer"] - 1))
    with theme():
        figure = new_figure(1.8 + 0.38 * width, 1.4 + 0.3 * layers)
        axes = figure.subplots()
        image = Scale.around(grid).draw(axes, grid, range(1, layers + 1))
        for column, row in sure:
            write(image, {(row, column): "•"}, 7)
        axes.set_title("Attention to words of keyphrases, minus to others, by its spread", fontsize=pt(9), loc="left")
        figure.colorbar(image, ax=axes, shrink=0.8).set_label("effect, in units of spread", fontsize=pt(8))
        sign(figure, f"{max(table['n']):,} texts. Dots: p < .05 by a paired t-test over texts, corrected (Holm)", results.signature)
    return figure


def losses(results: Results, kind: str | None = None) -> Drawing:
    """The heads of lowest cross-entropy with intervals, and the cross-entropy with only the share of keywords."""
    if "keywords_ranking" not in results:
        raise RunError("the study has no keywords_ranking: an earlier version made it", "Make it again with headscope probe keywords")
    best = list(results["keywords_ranking"].head(_RANKED))
    constant = best[0]["constant"]
    with theme():
        figure = new_figure(6.4, 1.3 + 0.2 * len(best))
        axes = figure.subplots()
        for number, (colour, name, marker) in enumerate(((hue(1), "keywords receive more", "o"), (hue(0), "keywords receive less", "s"))):
            ranked = [(place, row) for place, row in enumerate(best) if (row["effect"] <= 0) == bool(number)]
            axes.hlines(
                [place for place, _ in ranked],
                [row["low"] for _, row in ranked],
                [row["high"] for _, row in ranked],
                color=colour,
                alpha=0.5,
            )
            axes.plot([], [], marker, color=colour, markersize=5, linestyle="none", label=name)
            for place, row in ranked:
                fill = style().paper if row["gain_low"] <= 0 else colour
                axes.plot([row["cross_entropy"]], [place], marker, color=colour, markerfacecolor=fill, markersize=5)
        axes.axvline(constant, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)), label="the share of keywords alone")
        names = [f"{row['rank']}. {row['layer']}-{row['head']} {row['received']}" for row in best]
        axes.set_yticks(range(len(best)), names, fontsize=pt(7))
        axes.invert_yaxis()
        axes.set_xlabel("Cross-entropy on other documents (nats per word)")
        saved = axes.secondary_xaxis("top", functions=(partial(_saved, constant), partial(_spent, constant)))
        saved.set_xlabel("Saved compared with the share of keywords alone (1/1000 nats per word)", fontsize=pt(8))
        legend_beside(axes, 7)
        sign(figure, f"{best[0]['n']:,} texts. Bars: 95% intervals over documents. Open: saving not significant", results.signature)
    return figure


def _saved(constant: float, loss: Any) -> Any:
    """What a cross-entropy saves, in thousandths of a nat."""
    return 1000 * (constant - np.asarray(loss))


def _spent(constant: float, saved: Any) -> Any:
    return constant - np.asarray(saved) / 1000


def curves(results: Results, kind: str | None = None) -> Drawing:
    """F1 of the logistic regression by threshold and by number of heads kept; lines for words and for phrases."""
    table = results["keywords_curves"]
    panels = (("threshold", "Threshold: least probability of being in a keyphrase"), ("heads", "Heads kept, lowest cross-entropy first"))
    with theme():
        side = across(2)
        figure = new_figure(7.6, 3.2 * (2 // side))
        for axes, (by, xlabel) in zip(figure.subplots(2 // side, side, sharey=True, squeeze=False).flat, panels, strict=True):
            for number, level in enumerate(dict.fromkeys(table["level"])):
                rows = table.where(by=by, level=level)
                axes.fill_between(rows[by], rows["low"], rows["high"], color=hue(number), alpha=0.2, linewidth=0)
                marker = MARKERS[number] if by == "heads" else ""
                axes.plot(rows[by], rows["f1"], color=hue(number), marker=marker, markersize=4, linewidth=1.6, label=f"F1 of {level}")
                if by == "threshold":
                    best = max(rows, key=lambda row: row["f1"])
                    axes.plot([best[by]], [best["f1"]], MARKERS[number], color=hue(number), markersize=6, markerfacecolor=style().paper)
            axes.set_xlabel(xlabel, fontsize=pt(8))
            axes.set_ylim(bottom=0)
        last = figure.axes[1]
        last.set_xscale("log", base=2)
        steps = sorted(set(table.where(by="heads")["heads"]))
        near = [step * 1.4 > after for step, after in zip(steps, [*steps[1:], np.inf], strict=True)]  # labels would overlap
        last.set_xticks(steps, ["" if skipped else str(step) for step, skipped in zip(steps, near, strict=True)])
        last.minorticks_off()
        figure.axes[0].set_ylabel("F1 on other documents")
        figure.legend(*last.get_legend_handles_labels(), loc="outside upper right", ncols=across(2), fontsize=pt(8))
        note = "Bands: 95% intervals over documents. Left: all heads, the best threshold marked; right: thresholds tuned on other documents"
        sign(figure, f"{max(table['n']):,} texts. {note}", results.signature)
    return figure


def scores(results: Results, kind: str | None = None) -> Drawing:
    """F1 of every way to find keywords, of words and of phrases; baselines in grey."""
    table = results["keywords_scores"]
    levels = list(dict.fromkeys(table["level"]))
    with theme():
        side = across(len(levels))
        figure = new_figure(6.8, 2.8 * (len(levels) // side))
        for axes, level in zip(figure.subplots(len(levels) // side, side, sharey=True, squeeze=False).flat, levels, strict=True):
            _bars(axes, results, level, levels[0])
        sign(figure, f"{max(table['n']):,} held-out texts", results.signature)
    return figure


def _bars(axes: Axes, results: Results, level: str, first: str) -> None:
    """The bars of one level, in the order of the first."""
    by_system = {row["system"]: row for row in results["keywords_scores"].where(level=level)}
    rows = [by_system[row["system"]] for row in sorted(results["keywords_scores"].where(level=first), key=lambda row: row["f1"])]
    values = [row["f1"] for row in rows]
    errors = np.abs(np.array([[row["f1"] - row["low"], row["high"] - row["f1"]] for row in rows]).T)
    colours = [grey(0.7) if row["system"] in BASELINES else hue(0) for row in rows]
    axes.barh(range(len(rows)), values, color=colours, xerr=np.nan_to_num(errors), error_kw={"linewidth": 1, "ecolor": grey(0.3)})
    axes.set_yticks(range(len(rows)), [row["system"] for row in rows], fontsize=pt(8))
    for place, row in enumerate(rows):
        axes.plot([row["precision"]], [place], marker="|", color=style().ink, markersize=7)
        axes.plot([row["recall"]], [place], marker="x", color=style().ink, markersize=4)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"F1 of {level} (| precision, × recall)")


def shaded_text(result: KeywordResult, top: int, signature: str) -> Drawing:
    """A figure with the text on the left and its best phrases on the right."""
    words = result.document.words
    if len(words) > MOST:
        raise RunError(f"a figure has room for {MOST:,} words, not {len(words):,}", "Write a page: -o page.html")
    with theme():
        places, lowest = _places(result)
        shown = result.phrases[:top]
        tall = max(lowest + 0.2, _STEP * (len(shown) + 2)) + 0.3
        wide_all = _WIDTH + _LIST + 3 * _EDGE
        figure = new_figure(wide_all, tall, layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, wide_all)
        axes.set_ylim(tall, 0)
        _shade(axes, result, places, top)
        _list(axes, result, top)
        f1 = result.trained
        learnt = f"learnt from {f1.texts:,} documents of {f1.corpus}, F1 of words {f1.f1:.2f}"
        sign(figure, f"{len(words):,} words; {learnt}", signature)
    return figure


def _places(result: KeywordResult) -> tuple[list[tuple[float, float, float]], float]:
    """The place of each word in inches from the upper left (left, middle, width), and the place of the last line."""
    space = width_of("n n", _SIZE) - width_of("nn", _SIZE)
    places: list[tuple[float, float, float]] = []
    x, y = _EDGE, _EDGE + _STEP / 2
    for number, sentences in enumerate(result.document.paragraphs()):
        if number:
            x, y = _EDGE, y + _STEP + _PARAGRAPH
        for together in _together(word for sentence in sentences for word in sentence.words):
            widths = [width_of(label(word.form), _SIZE) for word in together]
            if x + sum(widths) > _EDGE + _WIDTH and x > _EDGE:
                x, y = _EDGE, y + _STEP
            for width in widths:
                places.append((x, y, width))
                x += width
            x += space
    return places, y


def _together(words: Iterable[Word]) -> Iterator[list[Word]]:
    """Groups of words with no space between them, which stay on one line."""
    group: list[Word] = []
    for word in words:
        group.append(word)
        if word.space_after:
            yield group
            group = []
    if group:
        yield group


def _shade(axes: Axes, result: KeywordResult, places: list[tuple[float, float, float]], top: int) -> None:
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    boxes = [Rectangle((x, y - 0.42 * _STEP), width, 0.78 * _STEP) for x, y, width in places]
    colours = np.column_stack([np.tile(to_rgb(hue(0)), (len(boxes), 1)), np.clip(result.weights, 0, 1) * DEPTH])
    axes.add_collection(PatchCollection(boxes, facecolors=colours, linewidths=0), autolim=False)
    for word, (x, y, _) in zip(result.document.words, places, strict=True):
        axes.text(x, y, label(word.form), fontsize=_SIZE, color=style().ink, ha="left", va="center_baseline", parse_math=False)
    lines = []
    for start, end in (place for phrase in result.phrases[:top] for place in phrase.places):
        rows: dict[float, list[float]] = {}
        for x, y, width in places[start:end]:
            rows.setdefault(y, []).extend([x, x + width])
        lines += [((min(xs), y + 0.42 * _STEP), (max(xs), y + 0.42 * _STEP)) for y, xs in rows.items()]
    axes.add_collection(LineCollection(lines, colors=hue(1), linewidths=1.6), autolim=False)


def _list(axes: Axes, result: KeywordResult, top: int) -> None:
    left, right = _WIDTH + 2 * _EDGE, _WIDTH + 2 * _EDGE + _LIST
    axes.plot([left - _EDGE / 2] * 2, [_EDGE, _EDGE + _STEP * (len(result.phrases[:top]) + 1)], color=grey(0.8), linewidth=0.6)
    for x, text, side in ((left, "best phrases", "left"), (right - 0.42, "score", "right"), (right, "places", "right")):
        axes.text(x, _EDGE + _STEP / 2, text, fontsize=pt(7), color=grey(0.4), ha=side, va="center_baseline")
    for number, phrase in enumerate(result.phrases[:top], 1):
        y = _EDGE + _STEP * (number + 0.5)
        text = label(phrase.text)
        while width_of(text, 8) > _LIST - 0.85 and len(text) > 1:
            text = text[:-2] + "…"
        axes.text(left, y, text, fontsize=pt(8), color=style().ink, va="center_baseline", parse_math=False)
        axes.text(right - 0.42, y, f"{phrase.score:.2f}", fontsize=pt(8), color=style().ink, ha="right", va="center_baseline")
        axes.text(right, y, str(len(phrase.places)), fontsize=pt(8), color=style().ink, ha="right", va="center_baseline")
