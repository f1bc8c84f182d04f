"""The grid of one head's map: between tokens or words, with or without special tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId, Kind
from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.encoding.words import WordGroups, group, word_map
from headscope.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Float

Level = Literal["token", "word"]
Specials = Literal["show", "hide", "renormalise"]
LEVELS: tuple[Level, ...] = get_args(Level)
SPECIALS: tuple[Specials, ...] = get_args(Specials)


@dataclass(frozen=True)
class Grid:
    """A map with the words of its rows, which attend, and of its columns, which are attended to."""

    weights: Float[np.ndarray, "row column"]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_words: tuple[int, ...] = ()  # for each row, the number of its word in the text, -1 for a special token
    column_words: tuple[int, ...] = ()
    generated_from: int | None = None  # the first row that a model generated; columns are the same in that case

    def strongest(self, row: int, top: int, least: float = 0.0) -> list[tuple[str, float]]:
        """What a row attends to most, with weights; of equal weights the earlier first."""
        order = np.argsort(-self.weights[row], kind="stable")[:top]
        return [(self.columns[column], float(self.weights[row, column])) for column in order if self.weights[row, column] > least]


def sides(encoded: Encoded, kind: Kind) -> tuple[Encoded, Encoded]:
    """The text that attends and the text that is attended to. A decoder without an encoder reads the text itself."""
    target = encoded.target if encoded.target is not None else encoded
    return (encoded if kind == "encoder" else target), (target if kind == "decoder" else encoded)


def grid(
    encoded: Encoded, head: HeadId, weights: Float[np.ndarray, "query key"], level: Level = "word", specials: Specials = "show"
) -> Grid:
    """One head's map as requested. Without special tokens rows keep their weights, or are renormalised."""
    check(level, specials)
    queries, keys = sides(encoded, head.kind)
    if level == "word":
        weights = between_words(queries, keys, weights[None])[0]
    return arranged(queries, keys, weights, level, specials)


def arranged(
    queries: Encoded, keys: Encoded, weights: Float[np.ndarray, "row column"], level: Level = "word", specials: Specials = "show"
) -> Grid:
    """A map that is already at a level, with its words, and with or without special tokens."""
    check(level, specials)
    rows, columns = (_positions(side, level) for side in (queries, keys))
    if specials != "show":
        kept, seen = (np.flatnonzero([role == WORD for _, _, role in side]) for side in (rows, columns))
        weights = weights[np.ix_(kept, seen)]
        rows, columns = [rows[i] for i in kept], [columns[i] for i in seen]
    if specials == "renormalise":
        left = weights.sum(1, keepdims=True)
        weights = np.divide(weights, left, out=np.zeros_like(weights), where=left > 0)
    forms = [tuple(form for form, _, _ in side) for side in (rows, columns)]
    words = [tuple(word for _, word, _ in side) for side in (rows, columns)]
    return Grid(weights, forms[0], forms[1], words[0], words[1], _first_generated(queries, level, specials))


def _first_generated(side: Encoded, level: Level, specials: Specials) -> int | None:
    """How many of the shown positions are in the prompt; None for a text that was not generated."""
    if side.generated_from is None:
        return None
    firsts: Iterable[int] = range(len(side)) if level == "token" else side.arrays.firsts.tolist()
    return sum(place < side.generated_from and (specials == "show" or side.roles[place] == WORD) for place in firsts)


def between_words(
    queries: Encoded, keys: Encoded, weights: Float[np.ndarray, "head query key"]
) -> Float[np.ndarray, "head queryword keyword"]:
    """Maps between words; a special token is its own word."""
    import torch  # imported here, because pages and figures of finished runs do not need it

    cpu = torch.device("cpu")
    maps = word_map(torch.from_numpy(np.ascontiguousarray(weights))[None], WordGroups.build([queries], cpu), WordGroups.build([keys], cpu))
    return maps[0].numpy()


def check(level: str, specials: str) -> None:
    """Raise an error for an unknown level or an unknown treatment of special tokens."""
    for name, value, known in (("level", level, LEVELS), ("specials", specials, SPECIALS)):
        if value not in known:
            raise RunError(f"{name} {value!r} is unknown", choose_from(value, known))


def _positions(side: Encoded, level: Level) -> list[tuple[str, int, int]]:
    """Every token, or every word and special token: its form, the number of its word (-1 for special), its role."""
    if level == "token":
        return list(zip(side.pieces, side.word_of, side.roles, strict=True))
    groups, forms, roles = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
    return list(zip(forms, dict(zip(groups, side.word_of, strict=True)).values(), roles, strict=True))
