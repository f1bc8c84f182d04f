"""A few sentences with their trees as the probes of the best layer see them, to look at (Hewitt & Manning's Figure
2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.hashing import digest
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.structural_probe.probe import Segments
from headscope.studies.structural_probe.reading import DataPart
from headscope.studies.structural_probe.scoring import paired, predictions, spanning
from headscope.studies.structural_probe.training import SentenceVectors

if TYPE_CHECKING:
    from jaxtyping import Float

SHOWN = 12
LENGTHS = range(6, 19)  # words of a sentence that is good to look at
COLUMNS = ("text", "word", "form", "head", "joined", "depth", "predicted")


def choose(part: DataPart, seed: int) -> list[int]:
    """Some sentences of middle length, by their names alone; any sentences where there are none."""
    fit = [number for number, text in enumerate(part.texts) if len(text.words) in LENGTHS] or list(range(len(part)))
    return sorted(fit, key=lambda number: digest(seed, part.texts[number].id))[:SHOWN]


def keep(
    kept: StateColumns, matrices: Float[torch.Tensor, "row d"], segments: Segments, feature: int, sentences: SentenceVectors, part: DataPart
) -> None:
    """Keep the words of all sentences of a part under `trees/...`, as the first pair of matrices of a feature sees
    them.
    """
    distance, depth = paired(segments)[0]
    for number, predicted in sorted(predictions(matrices[None], segments, sentences, [feature]), key=lambda prediction: prediction[0]):
        text, tree = part.texts[number], part.trees[number]
        kept.say("trees/text", [text.id] * len(text.words))
        kept.say("trees/form", [word.form for word in text.words])
        columns = {
            "word": np.arange(len(text.words)) + 1,
            "head": np.array(text.annotation.heads) + 1,
            "joined": np.where(tree.scored, spanning(predicted[distance], tree)[0] + 1, -1),
            "depth": tree.depths,
            "predicted": predicted[depth][0].numpy(),
        }
        for name, values in columns.items():
            kept.add(f"trees/{name}", values)


def table(kept: StateColumns) -> Table:
    """One row per word: its governor (0: it is the root), the word that the predicted spanning tree joins it to (0:
    the tree begins here; none: punctuation), its depth, and the predicted depth.
    """
    numbers = {name: kept.numbers(f"trees/{name}").tolist() for name in ("word", "head", "joined", "depth", "predicted")}
    whole = {name: [int(value) for value in numbers[name]] for name in ("word", "head", "joined", "depth")}
    joined = [value if value >= 0 else None for value in whole["joined"]]
    columns = {**numbers, **whole, "joined": joined, "text": kept.words("trees/text"), "form": kept.words("trees/form")}
    return Table.of({name: columns[name] for name in COLUMNS})
