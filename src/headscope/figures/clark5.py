"""Clark et al. 2019, Figure 5: heads that pick a relation, each on a sentence of the gallery, the relation in red."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.errors import RunError
from headscope.figures import lines
from headscope.figures.panels import choose_kind
from headscope.gallery.grids import Grid
from headscope.gallery.highlight import DIRECTIONS, Highlight
from headscope.measures.coreference import DIRECTIONS as COREFERENT_DIRECTIONS
from headscope.results.gallery import Example
from headscope.results.results import Results

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.drawing.figure import Drawing

NEEDS = ("relations", "coreference")
SHOWN = 6  # heads, as in the paper
_LEAST = 0.5  # least accuracy of a head that is shown by default: more right than wrong
_USUAL = {"relations": DIRECTIONS[0], "coreference": COREFERENT_DIRECTIONS[0]}  # directions that names of quantities omit


@dataclass(frozen=True)
class Choice:
    """The best head of a label, and the text of the gallery in which its links are darkest."""

    lift: float
    label: str
    row: dict[str, Any]
    example: Example


def draw(results: Results, kind: str | None = None, named: str | None = None) -> Drawing:
    """A figure of the six heads that are mostly right and exceed a simple rule by most, each for another label; or of
    the heads of the labels that are `named`, as in `obj,det`.
    """
    kind = choose_kind(results, [f"{measure}_best" for measure in NEEDS if measure in results], kind)
    found = sorted(_choices(results, kind), key=lambda choice: -choice.lift)
    if named is not None:
        labels = [part.strip() for part in named.split(",")]
        if missing := [label for label in labels if label not in {choice.label for choice in found}]:
            known = ", ".join(dict.fromkeys(choice.label for choice in found)) or "none"
            raise RunError(f"the gallery of the run has no text that shows {missing[0]}", f"It has texts for {known}")
        found = [choice for label in labels for choice in found if choice.label == label]
    shown: dict[HeadId, Choice] = {}
    for choice in found:
        if choice.label not in {other.label for other in shown.values()} and (
            named is not None or (choice.lift > 0 and choice.row["value"] >= _LEAST)
        ):
            shown.setdefault(choice.example.head, choice)
    if not shown:
        remedy = "Run again with --measures relations, with a gallery, on more texts"
        raise RunError("the gallery of the run has no text with a relation", remedy)
    shown = dict(list(shown.items())[: lines.MOST if named is not None else SHOWN])
    grids = {head: _drawn(results, choice)[0] for head, choice in shown.items()}
    highlights = {head: _drawn(results, choice)[1] for head, choice in shown.items()}
    notes = {head: _note(choice) for head, choice in shown.items()}
    fair = all(results.measures[choice.example.measure].get("selection") == "crossfit" for choice in shown.values())
    chosen = f"Heads are chosen and scored on {'different' if fair else 'the same'} documents"
    n = f"{len(shown)} sentences, selected automatically. In red: the annotated relation. {chosen}"
    return lines.draw(grids, n, results.signature, highlights, notes)


def _drawn(results: Results, choice: Choice) -> tuple[Grid, Highlight]:
    """The map of an example between words, and the links that are red in it."""
    assert results.gallery is not None
    text = results.gallery.texts[choice.example.text]
    return grid_of(text, choice.example.head, choice.example.map / 65535), _highlight(text, choice)


def _choices(results: Results, kind: str) -> Iterator[Choice]:
    """The best heads of all labels for which the gallery has a text, each with the text in which it shows best."""
    examples: dict[tuple[str, str, str], list[Example]] = {}
    for example in results.gallery.examples if results.gallery is not None else ():
        examples.setdefault((example.measure, example.quantity, str(example.head)), []).append(example)
    for measure in NEEDS:
        for row in results[f"{measure}_best"].where(kind=kind) if measure in results else ():
            for head, direction in zip(row["heads"].split(" | "), _twice(row["direction"], row["heads"]), strict=True):
                quantity = row["label"] if direction == _USUAL[measure] else f"{row['label']} ({direction})"
                if row["label"] != "all" and (found := examples.get((measure, quantity, head))):
                    choices = [Choice(row["lift"], row["label"], {**row, "direction": direction}, example) for example in found]
                    yield max(choices, key=lambda choice: _darkness(*_drawn(results, choice)))


def _darkness(grid: Grid, highlight: Highlight) -> float:
    """The mean weight of the links in red."""
    links = highlight.links(grid)
    return float(grid.weights[links].mean()) if links.any() else 0.0


def _twice(directions: str, heads: str) -> list[str]:
    """The direction of each head; all heads may share one."""
    split = directions.split(" | ")
    return split * len(heads.split(" | ")) if len(split) == 1 else split


def _note(choice: Choice) -> str:
    towards = choice.row["direction"].replace("-to-", " → ")
    return f"{choice.label}, {towards}: {100 * choice.row['value']:.0f}% (rule {100 * choice.row['baseline']:.0f}%)"


def _highlight(text: dict[str, Any], choice: Choice) -> Highlight:
    """The links of the relation that a head picks, or those between mentions of one entity."""
    side = text["source"]
    if choice.example.measure == "coreference":
        spans = [(range(start, end + 1), entity) for start, end, entity in side.get("mentions", ())]
        same = [(a, b) for number, (a, one) in enumerate(spans) for other, (b, two) in enumerate(spans) if number != other and one == two]
        return Highlight(frozenset((i, j) for a, b in same for i in a for j in b if i != j))
    arcs = [(word, head) for word, head, name in side.get("relations", ()) if f"{name}:".startswith(f"{choice.label}:")]
    return Highlight(frozenset((head, word) if choice.row["direction"] == DIRECTIONS[1] else (word, head) for word, head in arcs))


def grid_of(text: dict[str, Any], head: HeadId, weights: Float[np.ndarray, "query key"]) -> Grid:
    """A map of the gallery between words: sums over the tokens attended to, means over those that attend."""
    target = text.get("target") or text["source"]
    queries, keys = (text["source"] if head.kind == "encoder" else target), (target if head.kind == "decoder" else text["source"])
    (rows, row_words, pooled), (columns, column_words, summed) = _grouped(queries), _grouped(keys)
    return Grid(pooled / pooled.sum(1, keepdims=True) @ weights @ summed.T, rows, columns, row_words, column_words)


def _grouped(side: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...], Float[np.ndarray, "group token"]]:
    """The words and special tokens of a side, the number of the word of each, and the tokens of each."""
    keys = [("word", word) if word >= 0 else ("token", place) for place, word in enumerate(side["words"])]
    groups = list(dict.fromkeys(keys))
    forms = tuple(side["forms"][number] if of == "word" else side["tokens"][number] for of, number in groups)
    return (
        forms,
        tuple(number if of == "word" else -1 for of, number in groups),
        np.array([[key == group for key in keys] for group in groups], dtype=float),
    )
