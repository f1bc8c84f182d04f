"""Figures of curves by layer, as descriptions that static and interactive figures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.drawing.look import pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.figures.panels import available, choose_kind, points, sample_size
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing


@dataclass(frozen=True)
class Panel:
    """One measure's curves: `series` are (quantity, label), `baseline` names the dashed lines, None for none."""

    measure: str
    title: str
    series: Sequence[tuple[str, str]]
    ylabel: str = "Average attention"
    limits: tuple[float, float] | None = (0.0, 1.0)
    baseline: str | None = None


_EVEN = "even attention"
# Clark et al. 2019, Figures 2, 3 and 4; sinks and sequence heads by layer.
CURVES: dict[str, tuple[Panel, ...]] = {
    "clark2": (
        Panel("tokens", "Attention to token types", [("to_cls", "[CLS]"), ("to_sep", "[SEP]"), ("to_punct", ". and ,")], baseline=_EVEN),
        Panel(
            "tokens",
            "Attention to [SEP], by where it comes from",
            [("other_to_sep", "other → [SEP]"), ("sep_to_sep", "[SEP] → [SEP]")],
            baseline=_EVEN,
        ),
        Panel(
            "positions",
            "Attention to neighbouring tokens",
            [("previous", "previous"), ("next", "next"), ("self", "itself")],
            baseline=_EVEN,
        ),
    ),
    "clark3": (
        Panel(
            "saliency",
            "Gradient of the loss, by the token attended to",
            [("to_sep", "[SEP]"), ("to_cls", "[CLS]"), ("to_punct", ". and ,"), ("to_other", "other")],
            "Size of the gradient",
            None,
        ),
    ),
    "clark4": tuple(
        Panel("entropy", title, [(quantity, "mean over heads")], "Entropy ({base})", None, _EVEN)
        for quantity, title in (("entropy", "From all tokens"), ("entropy_cls", "From the opening token, [CLS]"))
    ),
    "sinks": (
        Panel("sinks", "Attention to the first token", [("to_first", "mean over heads")], baseline=_EVEN),
        Panel(
            "sinks",
            "Texts with a sink, by what the sink is",
            [("at_first", "first token"), ("at_sep", "[SEP]"), ("at_punct", ". or ,"), ("at_other", "other")],
            "Share of texts",
        ),
    ),
    "sequences": tuple(
        Panel("sequences", title, series, "Score", baseline=_EVEN)
        for title, series in (
            ("Tokens that occurred before", [("induction", "induction"), ("duplicate", "duplicate token")]),
            ("All tokens", [("previous_token", "previous token")]),
        )
    ),
}


def needs(name: str) -> tuple[str, ...]:
    """The measures that a figure shows; any one of them is enough, and gives its panels."""
    return tuple(dict.fromkeys(panel.measure for panel in CURVES[name]))


def described(name: str, results: Results, kind: str) -> list[Panel]:
    """The panels for which a run has data, each with the curves that it has."""
    panels = []
    for panel in CURVES[name]:
        if series := available(results, panel.measure, kind, panel.series):
            ylabel = panel.ylabel.format(base=results.measures[panel.measure].get("base"))
            named = [(quantity, results.spelled(label)) for quantity, label in series]
            panels.append(Panel(panel.measure, results.spelled(panel.title), named, ylabel, panel.limits, panel.baseline))
    return panels


def sizes(name: str, results: Results, kind: str) -> str:
    """The sample size of a figure: `347 texts`."""
    return sample_size(results, list(dict.fromkeys(panel.measure for panel in described(name, results, kind))), kind)


def draw(name: str, results: Results, kind: str | None = None) -> Drawing:
    """A figure with one panel below the other: each point is a head, each line a layer mean with its 95 % interval."""
    kind = choose_kind(results, [measure for measure in needs(name) if measure in results], kind)
    panels = described(name, results, kind)
    if not panels:
        raise RunError(f"the run has no quantity of {name} for {kind} attention", "List its tables with headscope show")
    with theme():
        figure = new_figure(7.6, 0.4 + 2.6 * len(panels))
        for axes, panel in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True):
            axes.set_title(panel.title, fontsize=pt(9), loc="left")
            points(axes, results, panel.measure, kind, panel.series, panel.baseline)
            axes.set_ylabel(panel.ylabel)
            if panel.limits is not None:
                low, high = panel.limits
                axes.set_ylim(low - 0.02, high + 0.02)
            else:
                axes.set_ylim(bottom=0)
        sign(figure, sizes(name, results, kind), results.signature)
    return figure
