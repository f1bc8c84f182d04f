"""Figures of runs and comparisons, ready for a paper: SVG, PDF or PNG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headscope.core.heads import Kind
from headscope.drawing.look import split_look, using
from headscope.errors import RunError
from headscope.figures import alike, clark5, contests, curves, heatmap, stripes
from headscope.figures.alike import FOLLOWED as ALIKE_FOLLOWED
from headscope.figures.alike import AlikeChoices
from headscope.results.results import Results, blame_folder
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing

# Of runs; those of studies are declared by the studies.
RUN_FIGURES = {
    "clark2": "Clark et al. 2019, Figure 2: attention to token types and neighbours by layer (positions, tokens)",
    "clark3": "Clark et al. 2019, Figure 3: gradients of the loss with respect to attention, by layer (saliency)",
    "clark4": "Clark et al. 2019, Figure 4: entropy by layer (entropy)",
    "clark5": "Clark et al. 2019, Figure 5: the heads that exceed a simple rule by most, each on a sentence (relations, coreference)",
    "sinks": "attention to the first token and where sinks are, by layer (sinks)",
    "sequences": "induction, duplicate-token and previous-token scores of every head, by layer (sequences)",
    "stripes": "maps of the strongest induction heads on a repeated sequence (sequences, on --corpus repeats:20)",
    "table1": "Clark et al. 2019, Table 1: the best head of each dependency relation beside the best fixed offset (relations)",
    "table2": "Clark et al. 2019, Table 2: rules, one head, and the best head of each kind of mention (coreference)",
    "pronouns": "the best head for each kind of pronoun beside the best rule (pronouns)",
    "matrix": "every dependency relation by every head, above the best fixed offset (relations)",
    "clark6": "Clark et al. 2019, Figure 6: heads as points, those that attend alike close together, by behaviour and by layer (distances)",
    "dendrogram": "the tree of heads, the closest joined first, and the groups that it falls into (distances)",
    "distances": "how differently heads attend, every head by every head (distances)",
    "heatmap": "one quantity of every head, layer by head (any measure)",
}
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


def known_figures() -> dict[str, str]:
    """All figures of runs and studies by name, each with a line that says what it shows and what makes it."""
    studies = {figure.name: f"{figure.line} (headscope {study.verb})" for study in REGISTRY.values() for figure in study.figures}
    return {**RUN_FIGURES, **studies}


@blame_folder
def draw(name: str, results: Results, kind: str | None = None, quantity: str | None = None, **choices: Any) -> Drawing:
    """The figure called `name`, drawn from a run or a study. `choices` are those of all figures, the fields of
    headscope.drawing.look.Look, and those that the figure takes: figures of distances the fields of
    headscope.figures.alike.AlikeChoices, table2 the direction of heads, figures of studies what their declaration says.
    """
    chosen, others = split_look(choices)
    with using(chosen):
        figure = _draw(name, results, kind, quantity, others)
    figure.caption = replace(figure.caption, about=known_figures()[name])
    return figure


def _draw(name: str, results: Results, kind: str | None, quantity: str | None, choices: dict[str, Any]) -> Drawing:
    declared = {figure.name: (study, figure) for study in REGISTRY.values() for figure in study.figures}
    if name not in RUN_FIGURES and name not in declared:
        raise RunError(f"figure {name!r} is unknown", f"Use one of {', '.join(known_figures())}")
    taken = {**_CHOICES, **{figure.name: figure.choices for _, figure in declared.values()}}
    if unknown := [choice for choice in choices if choice not in taken.get(name, ())]:
        takers = [figure for figure, followed in taken.items() if unknown[0] in followed]
        raise RunError(f"{unknown[0]} says nothing about {name}", f"It is for {', '.join(takers)}" if takers else "Leave it out")
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
