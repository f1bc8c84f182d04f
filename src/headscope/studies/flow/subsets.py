"""Correlation of flow with tree distance among some words of a sentence only (Westera §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headscope.core.document import Word
from headscope.encoding.texts import Encoded
from headscope.results.table import Table
from headscope.studies.flow.attachment import CORE
from headscope.studies.flow.classes import CLOSED, OPEN
from headscope.studies.flow.grouping import Matrices, checked, to_words
from headscope.studies.flow.paths import ARGUMENTS, POSITION, Variant, distances, sentence_chain
from headscope.studies.flow.trees import LAYERS, TreeDistances, correlations, kept_words

NOMINAL = frozenset({"NOUN", "PRON", "PROPN"})
COLUMNS = ("measure", "tokens", *LAYERS[1:])
_VARIANTS: tuple[Variant, ...] = ("undirected", "directed")


class SubsetDistances(TreeDistances):
    """The correlations of `TreeDistances`, without the diagonal, over the pairs of words that both belong to a class of
    words.

    Distances are those in the tree of the whole sentence. A sentence counts in a class if its words have two
    different distances.
    """

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Add a sentence with its matrices between tokens."""
        checked(matrices, len(text))
        kept, heads = kept_words(text, self.punct)
        words = [text.words[place] for place in kept]
        chosen = [choose(words, heads) for choose in SUBSETS.values()]
        gold = [-distances(heads, variant) for variant in _VARIANTS]
        self.kept.add_words("unit", [text.document if self.resample == "document" else text.id])
        chain = sentence_chain([text.annotation.sentences[place] for place in kept], "next word")
        apart = -distances(chain, "undirected")[None]
        flows = {
            name: to_words(matrix, text.word_of, len(text.words), self.grouping)[:, kept][:, :, kept] for name, matrix in matrices.items()
        }
        for name, flow in {**flows, POSITION: apart}.items():
            of_classes = [
                correlations(flow[:, places][:, :, places], [distances_of_pairs[np.ix_(places, places)] for distances_of_pairs in gold])
                for places in chosen
            ]
            self.kept.add(f"values/{name}", np.stack(of_classes)[None])

    def tables(self) -> dict[str, Table]:
        """`tree_distances_subsets`: every measure, class of words, variant, method and layer; `position` has no layer.

        The row without a layer has the best layer, chosen on some documents and scored on the others.
        """
        rows = []
        for name in self.kept.under("values/"):
            values = self.kept.numbers(f"values/{name}")
            for place, tokens in enumerate(SUBSETS):
                made = self.rows(values[:, place], {"measure": name, "tokens": tokens}, _VARIANTS, chosen=name != POSITION)
                rows += [{**row, "layer": None} if name == POSITION else row for row in made]
        return {"tree_distances_subsets": Table.from_rows(rows, COLUMNS)}


def _of(tags: frozenset[str]) -> Callable[[Sequence[Word], Sequence[int]], list[int]]:
    return lambda words, heads: [place for place, word in enumerate(words) if word.upos in tags]


def _arguments(words: Sequence[Word], heads: Sequence[int]) -> list[int]:
    """Verbs that have a core argument, and these arguments."""
    arcs = [
        (place, head)
        for place, head in enumerate(heads)
        if head >= 0 and (words[place].relation or "").partition(":")[0] in CORE and words[head].upos == "VERB"
    ]
    return sorted({place for arc in arcs for place in arc})


# For each class of words by name, a function from the words of a sentence to the places of the class.
SUBSETS: Mapping[str, Callable[[Sequence[Word], Sequence[int]], list[int]]] = {
    "all": lambda words, heads: list(range(len(words))),
    ARGUMENTS: _arguments,
    "nominals": _of(NOMINAL),
    "verbs": _of(frozenset({"VERB"})),
    "open classes": _of(OPEN),
    "closed classes": _of(CLOSED),
}
