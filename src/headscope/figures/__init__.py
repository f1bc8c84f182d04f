"""Figures of runs and comparisons, ready for a paper: SVG, PDF or PNG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headscope.core.heads import Kind
from headscope.core.suggest import choose_from
from headscope.drawing.look import split_look, using
from headscope.errors import RunError
from headscope.figures import alike, clark5, contests, curves, heatmap, stripes
from headscope.figures.alike import FOLLOWED as ALIKE_FOLLOWED
from headscope.figures.alike import AlikeChoices
from headscope.results.results import Results, blame_folder
from headscope.studies.figure_names import RUN_FIGURES, known_figures
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing

_DRAWN: dict[str, tuple[Callable[..., Drawing], tuple[str, ...]]] = {
    **{name: (partial(curves.draw, name), curves.needs(name)) for name in curves.CURVES},
    "table1": (contests.draw, ("relations",)),
    "table2": (contests.draw_table2, ("coreference",)),
    "pronouns": (partial(contests.draw, measure="pronouns"), ("pronouns",)),
    "matrix": (heatmap.draw_matrix, heatmap.NEEDS),
    "clark5": (clark5.draw, clark5.NEEDS),
    "stripes": (stripes.draw, stripes.NEEDS),
}
_ALIKE: dict[str, Callable[[Results, Kind | None, AlikeChoices], Drawing]] = {
    "clark6": alike.clark6,
    "dendrogram": alike.dendrogram,
    "distances": alike.distances,
}
_CHOICES = {**ALIKE_FOLLOWED, "table2": ("direction",)}


@blame_folder
def draw(name: str, results: Results, kind: str | None = None, quantity: str | None = None, **choices: Any) -> Drawing:
    """The figure called `name`, drawn from a run or a study.

    `choices` are those of all figures (the fields of headscope.drawing.look.Look) and those of this figure: figures of
    distances take the fields of headscope.figures.alike.AlikeChoices, table2 the direction of heads, and figures of
    studies the choices that they declare.
    """
    chosen, others = split_look(choices)
    with using(chosen):
        figure = _draw(name, results, kind, quantity, others)
    figure.caption = replace(figure.caption, about=known_figures()[name])
    return figure


def _draw(name: str, results: Results, kind: str | None, quantity: str | None, choices: dict[str, Any]) -> Drawing:
    declared = {figure.name: (study, figure) for study in REGISTRY.values() for figure in study.figures}
    if name not in RUN_FIGURES and name not in declared:
        raise RunError(f"figure {name!r} is unknown", choose_from(name, known_figures()))
    taken = {**_CHOICES, **{figure.name: figure.choices for _, figure in declared.values()}}
    if unknown := [choice for choice in choices if choice not in taken.get(name, ())]:
        takers = [figure for figure, followed in taken.items() if unknown[0] in followed]
        raise RunError(f"{name} has no option {unknown[0]}", f"It is for {', '.join(takers)}" if takers else "Omit it")
    if name in declared:
        study, figure = declared[name]
        if figure.table not in results:
            problem = f"{name} shows {figure.table}, which the run does not have"
            raise RunError(problem, f"Make one with headscope {figure.command}")
        return study.draw(figure, results, quantity if figure.quantity else kind, **choices)
    if name in _ALIKE:
        return _ALIKE[name](results, kind, AlikeChoices(**choices))  # type: ignore[arg-type]
    if name == "heatmap":
        if quantity is None:
            raise RunError("a heatmap needs a quantity", "Name one, as in --quantity to_sep")
        return heatmap.draw(results, quantity, kind)
    drawn, needs = _DRAWN[name]
    if name == "clark5":
        drawn = partial(drawn, named=quantity)
    if not any(need in results for need in needs):
        raise RunError(f"{name} shows {' and '.join(needs)}, which the run does not have", f"Run again with --measures {','.join(needs)}")
    return drawn(results, kind, **choices)


def default_figure(measure: str) -> str:
    """The figure that shows a measure best."""
    best = {"positions": "clark2", "tokens": "clark2", "saliency": "clark3", "entropy": "clark4", "distances": "clark6"}
    best |= {"relations": "table1", "coreference": "table2", "pronouns": "pronouns", "sinks": "sinks", "sequences": "sequences"}
    return best.get(measure, "heatmap")


__all__ = ["RUN_FIGURES", "default_figure", "draw", "known_figures"]
