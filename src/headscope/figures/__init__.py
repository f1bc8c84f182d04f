"""Figures from finished runs, one file each, ready for a paper: SVG, PDF or PNG."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from headscope.core.heads import Kind
from headscope.errors import RunError
from headscope.figures import alike, contests, curves, dendrogram, heatmap, matrix, table2
from headscope.figures.alike import FOLLOWED as ALIKE_FOLLOWED
from headscope.figures.alike import Choices
from headscope.results.errors import of_runs
from headscope.results.results import Results
from headscope.studies.ablation import figures as ablation
from headscope.studies.attention_probe import figures as probe_attention
from headscope.studies.edge_probe import figures as probe_edge
from headscope.studies.flow import figures as flow
from headscope.studies.keywords import figures as keywords
from headscope.studies.structural_probe import figures as probe_structural
from headscope.studies.twins import figures as twins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "clark2": "Clark et al. 2019, Figure 2: attention to token types and neighbours by layer (positions, tokens)",
    "clark3": "Clark et al. 2019, Figure 3: gradients of the loss with respect to attention, by layer (saliency)",
    "clark4": "Clark et al. 2019, Figure 4: entropy by layer (entropy)",
    "table1": "Clark et al. 2019, Table 1: the best head of each dependency relation beside the best fixed offset (relations)",
    "table2": "Clark et al. 2019, Table 2: rules, one head, and the best head of each kind of mention (coreference)",
    "pronouns": "the best head for each kind of pronoun beside the best rule (pronouns)",
    "matrix": "every dependency relation by every head, above the best fixed offset (relations)",
    "clark6": "Clark et al. 2019, Figure 6: heads as points, those that attend alike close together, by behaviour and by layer (distances)",
    "dendrogram": "the tree of heads, the closest joined first, and the groups that it falls into (distances)",
    "distances": "how differently heads attend, every head by every head (distances)",
    "westera1": "Westera, Figure 1: flow from a noun to a pronoun of the same entity and of another, by layer (headscope flow)",
    "westera2": "Westera, Figure 2: what words of open and closed classes contribute, by layer (headscope flow)",
    "trees": "flow and the dependency tree: correlation with distance, and arcs of spanning trees, by layer (headscope flow)",
    "agreement": "whether attention and gradients agree, by layer (headscope flow)",
    "michel1": "Michel et al. 2019, Table 1: how the score changes without each head (headscope ablate)",
    "histogram": "how many heads change the score by how much (headscope ablate)",
    "michel3": "Michel et al. 2019, Figure 3: the score with more and more heads gone (headscope ablate)",
    "importance": "importance of heads beside what the score loses without them (headscope ablate)",
    "table3": "Clark et al. 2019, Table 3: governors found by attention probes and what they are compared with (headscope probe attention)",
    "probe_heads": "the weight of each head in an attention probe, and how far it pulls towards the governor (headscope probe attention)",
    "probe_relations": "governors found by attention probes, relation by relation (headscope probe attention)",
    "tenney1": "Tenney et al. 2019, Figure 1: tasks by expected layer and centre of gravity (headscope probe edge)",
    "tenney2": "Tenney et al. 2019, Figure 2: mixing weights and what each layer adds to the score, a row a task (headscope probe edge)",
    "tenney3": "Tenney et al. 2019, Figure 3: belief by layer for single examples; --quantity pos/2 names one (headscope probe edge)",
    "layerscores": "F1 by layer: cumulative, single layers, and labels by lot (headscope probe edge)",
    "keywords": "which heads look at the words of keyphrases (headscope probe keywords)",
    "keyword_losses": "heads ranked by the cross-entropy of a regression on one head, and what that saves (headscope probe keywords)",
    "keyword_curves": "F1 of the regression on heads by threshold and by the number of heads kept (headscope probe keywords)",
    "keyword_scores": "how well heads find keywords, beside baselines (headscope probe keywords)",
    "structural": "Hewitt & Manning 2019: trees in vectors, by layer, beside baselines (headscope probe structural)",
    "structural_trees": "Hewitt & Manning 2019: some trees, and what distances make of them; --quantity 2,5 (headscope probe structural)",
    "structural_ranks": "Hewitt & Manning 2019: trees in vectors, by the rank of the probe (headscope probe structural)",
    "twins": "all heads of two models as points, twins of each other joined, and how far their layers are apart (headscope twins)",
    "heatmap": "one quantity of every head, layer by head (any measure)",
}
# Of studies: what draws it, the table it needs, and the command that makes that.
_STUDIES: dict[str, tuple[Callable[..., Figure], str, str]] = {
    "westera1": (flow.coreference, "flow_coreference", "flow --parts coreference"),
    "westera2": (flow.classes, "flow_classes", "flow --parts classes"),
    "trees": (flow.trees, "flow_tree_distances", "flow --parts trees"),
    "agreement": (flow.agreement, "flow_agreement", "flow --parts agreement"),
    "michel1": (ablation.heads, "ablation", "ablate --parts heads"),
    "histogram": (ablation.histogram, "ablation", "ablate --parts heads"),
    "michel3": (ablation.pruning, "pruning", "ablate --parts heads,importance,pruning"),
    "importance": (ablation.importance, "importance_foretells", "ablate --parts heads,importance"),
    "table3": (probe_attention.bars, "attention_probe", "probe attention"),
    "probe_heads": (probe_attention.weights, "attention_probe_heads", "probe attention --probes attention"),
    "probe_relations": (probe_attention.relations, "attention_probe_relations", "probe attention"),
    "tenney1": (probe_edge.order, "edge_mix", "probe edge"),
    "tenney2": (probe_edge.layers, "edge_mix", "probe edge"),
    "tenney3": (probe_edge.beliefs, "edge_beliefs", "probe edge"),
    "keywords": (keywords.heads, "keywords_heads", "probe keywords"),
    "keyword_losses": (keywords.losses, "keywords_heads", "probe keywords"),
    "keyword_curves": (keywords.curves, "keywords_curves", "probe keywords"),
    "keyword_scores": (keywords.scores, "keywords_scores", "probe keywords"),
    "layerscores": (probe_edge.scores, "edge_scores", "probe edge"),
    "structural": (probe_structural.layers, "structural", "probe structural"),
    "structural_trees": (probe_structural.trees, "structural_trees", "probe structural"),
    "structural_ranks": (probe_structural.ranks, "structural_ranks", "probe structural"),
    "twins": (twins.heads_and_layers, "twins_matrix", "twins A B"),
}
_DRAWN: dict[str, tuple[Callable[..., Figure], tuple[str, ...]]] = {
    **{name: (partial(curves.draw, name), curves.needs(name)) for name in curves.CURVES},
    **{name: (drawn, (needed,)) for name, (drawn, needed, _) in _STUDIES.items()},
    "table1": (contests.draw, ("relations",)),
    "table2": (table2.draw, ("coreference",)),
    "pronouns": (partial(contests.draw, measure="pronouns"), ("pronouns",)),
    "matrix": (matrix.draw, matrix.NEEDS),
}
_ALIKE: dict[str, Callable[[Results, Kind | None, Choices], Figure]] = {
    "clark6": alike.clark6,
    "dendrogram": dendrogram.draw,
    "distances": alike.distances,
}
# The choices that figures follow, beside the kind of attention and the quantity.
FOLLOWED = {**ALIKE_FOLLOWED, "table2": ("direction",), "table3": ("structural",), "tenney3": ("bars",), "twins": ("embedding", "sqrt")}


@of_runs
def draw(name: str, results: Results, kind: str | None = None, quantity: str | None = None, **choices: Any) -> Figure:
    """The figure called `name`, drawn from a run. `choices` are those that FOLLOWED names: of figures of distances the fields of
    headscope.figures.alike.Choices, of table2 the direction of heads, of table3 a study of a structural probe, of tenney3
    whether beliefs are bars.
    """
    if name not in FIGURES:
        raise RunError(f"figure {name!r} is unknown", f"Use one of {', '.join(FIGURES)}")
    if unknown := [choice for choice in choices if choice not in FOLLOWED.get(name, ())]:
        takers = [figure for figure, followed in FOLLOWED.items() if unknown[0] in followed]
        raise RunError(f"{unknown[0]} says nothing about {name}", f"It is for {', '.join(takers)}" if takers else "Leave it out")
    if name in _ALIKE:
        return _ALIKE[name](results, kind, Choices(**choices))  # type: ignore[arg-type]
    if name == "heatmap":
        if quantity is None:
            raise RunError("a heatmap needs a quantity", "Name one, as in --quantity to_sep")
        return heatmap.draw(results, quantity, kind)
    drawn, needs = _DRAWN[name]
    if not any(need in results for need in needs):
        made = f"Make one with headscope {_STUDIES[name][2]}" if name in _STUDIES else ""
        remedy = made or f"Run again with --measures {','.join(needs)}"
        raise RunError(f"{name} shows {' and '.join(needs)}, which the run does not have", remedy)
    return drawn(results, quantity if name in ("tenney3", "structural_trees") else kind, **choices)


def default_figure(measure: str) -> str:
    """The figure that shows a measure best."""
    best = {"positions": "clark2", "tokens": "clark2", "saliency": "clark3", "entropy": "clark4", "distances": "clark6"}
    return {**best, "relations": "table1", "coreference": "table2", "pronouns": "pronouns"}.get(measure, "heatmap")
