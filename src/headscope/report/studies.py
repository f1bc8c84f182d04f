"""The parts of a report about studies: what each found, its figures, and its summary beside what was published."""

from __future__ import annotations

import base64
from typing import Any

from headscope.drawing.saving import render
from headscope.figures import draw
from headscope.report import keywords, probe_attention, probe_edge, probe_structural
from headscope.results.few import counted
from headscope.results.results import Results
from headscope.results.table import display
from headscope.studies.twins import TwinsStudy
from headscope.views.findings import findings

Figures = tuple[tuple[str, str, str, str], ...]
# Of each part of a study: its figure, the table that must be there, a heading, and how to read it.
_FLOW: Figures = (
    (
        "westera1",
        "flow_coreference",
        "From nouns to pronouns",
        "Does more flow from a noun to a later pronoun if both mean the same thing? Pairs of two entities are the comparison. Near words "
        "bear more on each other than far ones, so the tests that count are those at equal distance.",
    ),
    (
        "westera2",
        "flow_classes",
        "Open and closed classes",
        "How much does a word bear on all tokens of its sentence, itself included? The mean over the words of a class.",
    ),
    (
        "trees",
        "flow_tree_distances",
        "Dependency trees",
        "Is flow stronger between words that are near in the tree? Words near in the tree are mostly near in the sentence, too: the dashed "
        "lines say what that alone would give.",
    ),
    (
        "agreement",
        "flow_agreement",
        "Attention and gradients",
        "If attention were all that mattered, the measures would agree. All entries count, also each token's flow to itself.",
    ),
)


_ABLATION: Figures = (
    (
        "michel1",
        "ablation",
        "Each head switched off",
        "How the score changes if one head gives nothing and all others are as they were. A frame marks what could hardly be chance, head "
        "by head; of a hundred heads that do nothing, one has a frame.",
    ),
    (
        "histogram",
        "ablation",
        "How many heads change the score by how much",
        "Most heads lie near 0: the others can do without them, one at a time.",
    ),
    (
        "importance",
        "importance_foretells",
        "Importance and loss",
        "Importance is the size of the gradient of the loss with respect to a gate on the head, found for all heads at once; beside it "
        "what switching the head off really does.",
    ),
    (
        "michel3",
        "pruning",
        "More and more heads switched off",
        "Heads go in the order of their importance, of the loss that was measured for each alone, or by chance. Orders are found on one "
        "half of the documents and tried on the other.",
    ),
)
# Of each kind of study: a title, what it is about, its figures, and what was published.
_STUDIES: dict[str, tuple[str, str, Figures, str]] = {
    "flow": (
        "How words bear on each other",
        "Attention (A) is what the model's heads give; G is how strongly a token's state after a layer depends on another token's state "
        "before it, and G* on the other token at the input: sizes of Jacobians (Westera).",
        _FLOW,
        "Published: Westera, for BERT-base; t over layers pooled as if they were independent, which “layers pooled” repeats. Compare "
        "shapes, not decimals: the model and the texts are others, and t grows with their number. A best layer is chosen on other "
        "documents than those it is scored on.",
    ),
    "ablation": (
        "Which heads are needed",
        "What a model loses without some of its heads (Michel et al. 2019).",
        _ABLATION,
        "Published: Michel et al. 2019, for translation (8 of 96 encoder heads made a difference, half of them for the better) and for "
        "BERT. Compare shapes, not decimals: the model, the task and the texts are others.",
    ),
    "keywords": (keywords.TITLE, keywords.ABOUT, keywords.FIGURES, keywords.PUBLISHED),
    "attention_probe": (probe_attention.TITLE, probe_attention.ABOUT, probe_attention.FIGURES, probe_attention.PUBLISHED),
    "edge_probe": (probe_edge.TITLE, probe_edge.ABOUT, probe_edge.FIGURES, probe_edge.PUBLISHED),
    "structural_probe": (probe_structural.TITLE, probe_structural.ABOUT, probe_structural.FIGURES, probe_structural.PUBLISHED),
    "twins": (
        TwinsStudy.title,
        TwinsStudy.about,
        tuple((figure.name, figure.table, figure.title, figure.about) for figure in TwinsStudy.figures),
        TwinsStudy.published,
    ),
}


def study_title(results: Results) -> str:
    """What a study is called on pages."""
    return _STUDIES[results.study or ""][0]


def study_section(results: Results) -> dict[str, Any]:
    """What a page says of a study."""
    title, about, figures, published = _STUDIES[results.study or ""]
    table = results["summary"]
    columns = [name for name in table.columns if any(value is not None for value in table[name])]
    return {
        "name": results.study,
        "title": title,
        "about": about,
        "published": published,
        "signature": results.signature,
        "findings": findings(results),
        "figures": [
            {"name": name, "title": title, "about": about, "picture": picture(results, name)}
            for name, needed, title, about in figures
            if needed in results and len(results[needed])
        ],
        "columns": columns,
        "told": [isinstance(next((value for value in table[name] if value is not None), None), str) for name in columns],
        "rows": [[counted(row[name]) if name == "documents" else display(row[name]) for name in columns] for row in table],
        "notes": [*results.manifest.get("notes", ()), *results.manifest.get("read", ()), *results.manifest["dropped"]],
    }


def picture(results: Results, name: str) -> str:
    """A figure as the address of an image that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(render(draw(name, results), "svg")).decode("ascii")
