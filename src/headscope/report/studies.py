"""The parts of a report about studies: what each found, its figures, and its summary beside what was published."""

from __future__ import annotations

import base64
from typing import Any

from headscope.figures import draw, render
from headscope.flows.sentences import sentences
from headscope.runs.results import Results
from headscope.runs.table import display

# Of each part of a study of flow: its figure, the table that must be there, a heading, and how to read it.
_FLOW = (
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


def study_section(results: Results) -> dict[str, Any]:
    """What a page says of a study."""
    table = results["summary"]
    columns = [name for name in table.columns if any(value is not None for value in table[name])]
    return {
        "name": "flow",
        "title": "How words bear on each other",
        "about": "Attention (A) is what the model's heads give; G is how strongly a token's state after a layer depends on another token's "
        "state before it, and G* on the other token at the input: sizes of Jacobians (Westera).",
        "signature": results.signature,
        "findings": sentences(results),
        "figures": [
            {"name": name, "title": title, "about": about, "picture": _picture(results, name)}
            for name, needed, title, about in _FLOW
            if needed in results and len(results[needed])
        ],
        "columns": columns,
        "rows": [[display(row[name]) for name in columns] for row in table],
        "notes": [*results.manifest.get("notes", ()), *results.manifest["dropped"]],
    }


def _picture(results: Results, name: str) -> str:
    """A figure as the address of an image that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(render(draw(name, results), "svg")).decode("ascii")
