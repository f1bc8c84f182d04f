"""How much words of open and closed classes, and of each part of speech, influence all tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.suggest import choose_from
from headscope.corpora.tags import UPOS
from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.resampled import mean
from headscope.studies.flow.comparisons import LayerSample, by_layer, headline
from headscope.studies.flow.grouping import Matrices, checked, contributions, group_means
from headscope.studies.flow.spec import DELETIONS, Deletion

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

OPEN = frozenset({"ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"})
CLOSED = frozenset({"ADP", "AUX", "CCONJ", "DET", "NUM", "PART", "PRON", "SCONJ"})  # as in Universal Dependencies
CLOSED_RELEASED = frozenset({"ADP", "AUX", "CCONJ", "DET", "NUM"})  # as in Westera's code
CLASSES = {"open": OPEN, "closed": CLOSED, "closed (released)": CLOSED_RELEASED, **{tag: frozenset({tag}) for tag in sorted(UPOS)}}
CONTRASTS = (("open", "closed"), ("open", "closed (released)"))
PAIRS = (("NOUN", "VERB"), ("NOUN", "DET"), ("NOUN", "PRON"), ("VERB", "DET"), ("ADJ", "NOUN"), ("DET", "PROPN"))  # Westera's

_NUMBERS = ("mean_first", "mean_second", "difference", "low", "high", "p_documents", "t", "df", "p")
_COUNTS = ("d", "n_first", "n_second", "documents", "reason")
LAYERS = ("measure", "first", "second", "test", "layer", *_NUMBERS, "p_holm", "p_bh", *_COUNTS)
HEADLINE = ("measure", "first", "second", "preset", "test", *_NUMBERS, *_COUNTS)
VALUES = ("measure", "sentence", "document", "class", "layer", "value")
MEANS = ("measure", "class", "layer", "value", "low", "high", "n", "documents")


class PartsOfSpeech:
    """One value per sentence, class and layer: the mean, over the class's pieces, of the influence of a piece on all
    tokens.

    With the deletion `comparison`, a sentence without a class is omitted only from the comparisons of that class.
    With `listwise`, as released for the tests by layer (but not for the one over all layers), it is omitted from all
    comparisons if it lacks any class that is compared. Welch's test treats the two classes as independent; the paired
    test uses the sentences that have both.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]] = (*CONTRASTS, *PAIRS),
        deletion: Deletion = "comparison",
        replicates: int = 1000,
        seed: int = 0,
        kept: StateColumns | None = None,
    ) -> None:
        for name in (name for pair in pairs for name in pair):
            if name not in CLASSES:
                raise MeasureError(f"unknown class of words {name!r}", choose_from(name, CLASSES, "Use two of"))
        if deletion not in DELETIONS:
            raise MeasureError(f"deletion is {deletion!r}", choose_from(deletion, DELETIONS))
        self.pairs, self.deletion, self.replicates, self.seed = tuple(pairs), deletion, replicates, seed
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Add a sentence with its matrices between tokens. Texts without parts of speech are an error."""
        layers = checked(matrices, len(text))
        tags = [word.upos for word in text.words]
        if tags and not any(tags):
            raise MeasureError(f"{text.id} has no parts of speech", "Use a corpus with universal tags, such as a CoNLL-U file")
        tag_of = [tags[word] if word >= 0 else None for word in text.word_of]
        self.kept.add_words("document", [text.document])
        self.kept.add_words("sentence", [text.id])
        for name, matrix in matrices.items():
            sums = contributions(matrix)
            values = np.empty((len(CLASSES), layers))
            for row, members in enumerate(CLASSES.values()):
                values[row] = group_means(sums, [0 if tag in members else -1 for tag in tag_of], 1)[:, 0]
            self.kept.add(f"values/{name}", values[None])

    def tables(self) -> dict[str, Table]:
        """`classes`: means of every class and layer; `class_contrasts`: pairs of classes by layer; `class_headlines`:
        over all layers; `class_values`: the value of every sentence, class and layer, from which the others follow.
        """
        means, layers, heads = [], [], []
        documents = self.kept.words("document")
        for name in self.kept.under("values/"):
            values = self.kept.numbers(f"values/{name}")
            means += self._means(name, values, documents)
            kept = values if self.deletion == "comparison" else values[self._complete(values)]
            owners = documents if self.deletion == "comparison" else np.array(documents)[self._complete(values)].tolist()
            for first, second in self.pairs:
                sample, other = (LayerSample(kept[:, list(CLASSES).index(side)], owners) for side in (first, second))
                whole, rest = (LayerSample(values[:, list(CLASSES).index(side)], documents) for side in (first, second))
                pair_of_classes = {"measure": name, "first": first, "second": second}
                for test in ("welch", "paired"):
                    layers += [{**pair_of_classes, **_named(row)} for row in by_layer(sample, other, test, self.replicates, self.seed)]
                    tests = headline(whole, rest, test, self.replicates, self.seed)
                    heads += [{**pair_of_classes, "preset": preset, **_named(row)} for preset, row in tests]
        return {
            "classes": Table.from_rows(means, MEANS),
            "class_contrasts": Table.from_rows(layers, LAYERS),
            "class_headlines": Table.from_rows(heads, HEADLINE),
            "class_values": self._values(),
        }

    def _values(self) -> Table:
        """One row per measure, sentence, class that the sentence has, and layer."""
        names, documents, sentences = np.array(list(CLASSES)), np.array(self.kept.words("document")), np.array(self.kept.words("sentence"))
        columns: dict[str, list[object]] = {name: [] for name in VALUES}
        for name in self.kept.under("values/"):
            values = self.kept.numbers(f"values/{name}")
            sentence, label, layer = np.nonzero(np.isfinite(values))
            where = (sentences[sentence], documents[sentence], names[label], layer + 1, values[sentence, label, layer])
            for column, part in zip(columns.values(), (np.full(len(layer), name), *where), strict=True):
                column.extend(part.tolist())
        return Table.of(columns)

    def _complete(self, values: Float[np.ndarray, "sentence class layer"]) -> Bool[np.ndarray, "sentence"]:
        """Whether a sentence has all classes that are compared."""
        used = [list(CLASSES).index(name) for name in dict.fromkeys(name for pair in self.pairs for name in pair)]
        complete: Bool[np.ndarray, "sentence"] = np.isfinite(values[:, used]).all((1, 2))
        return complete

    def _means(self, name: str, values: Float[np.ndarray, "sentence class layer"], documents: Sequence[str]) -> list[dict[str, object]]:
        means = mean(values, documents, self.replicates, self.seed)
        return [
            {
                "measure": name,
                "class": label,
                "layer": layer + 1,
                "value": float(means.value[row, layer]),
                "low": float(means.low[row, layer]),
                "high": float(means.high[row, layer]),
                "n": int(means.n[row, layer]),
                "documents": int(means.documents[row, layer]),
            }
            for row, label in enumerate(CLASSES)
            for layer in range(values.shape[2])
        ]


def _named(row: dict[str, object]) -> dict[str, object]:
    names = {"mean_x": "mean_first", "mean_y": "mean_second", "n_x": "n_first", "n_y": "n_second"}
    return {names.get(key, key): value for key, value in row.items()}
