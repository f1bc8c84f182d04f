"""The heads to show: the named ones, or those that link distant words of a text most clearly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId, Kind
from headscope.core.suggest import choose_head
from headscope.encoding.texts import Encoded
from headscope.encoding.words import group
from headscope.errors import RunError
from headscope.gallery.grids import between_words, sides
from headscope.models.model import Model

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float


def find_heads(model: Model, names: Iterable[str | HeadId]) -> list[HeadId]:
    """The named heads, each once; a name without a kind is of the model's first kind of attention."""
    kinds = list(dict.fromkeys(site.kind for site in model.sites))
    known = {head: head for head in model.layout.ids()}
    heads: dict[HeadId, None] = {}
    for name in names:
        try:
            head = HeadId.parse(name, kinds[0]) if isinstance(name, str) else name
        except ValueError as error:
            raise RunError(str(error)) from None
        if head.kind not in kinds:
            raise RunError(f"{model.name} has no {head.kind} attention", f"It has {', '.join(kinds)}")
        if head not in known:
            of_kind = [other for other in known if other.kind == head.kind]
            raise RunError(f"{model.name} has no head {head}", choose_head(head, of_kind))
        heads[known[head]] = None
    return list(heads)


def rank(model: Model, encoded: Encoded, maps: Mapping[HeadId, Float[np.ndarray, "query key"]] | None = None) -> list[HeadId]:
    """The heads of the model's first kind of attention, sorted by how clearly they link distant words.

    The score of a head is the sum, over words, of the largest weight on a word more than two places away. A head that
    attends to neighbours, to special tokens or evenly has a low score. Equal heads keep the model's order. Without
    `maps` the model is run once, and no map is kept.
    """
    kind = model.sites[0].kind
    mask = far(encoded, kind)
    heads = [head for head in model.layout.ids() if head.kind == kind]
    queries, keys = sides(encoded, kind)
    scores: dict[HeadId, float] = {}

    def score(layer: int, weights: Float[np.ndarray, "head query key"]) -> None:
        for number, sum_ in enumerate((between_words(queries, keys, weights) * mask).max(2).sum(1)):
            scores[HeadId(kind, layer, number)] = round(float(sum_), 5)  # so that the last bits, which depend on threads, do not matter

    def keep(number: int, weights: torch.Tensor, *_: object) -> None:
        score(model.sites[number].layer, weights[0].float().cpu().numpy())

    if maps is None:
        model.stream(model.inputs([encoded]), keep, frozenset(n for n, site in enumerate(model.sites) if site.kind == kind))
    else:
        for layer in dict.fromkeys(head.layer for head in heads):
            score(layer, np.stack([maps[head] for head in heads if head.layer == layer]))
    return sorted(heads, key=lambda head: -scores[head])


def far(encoded: Encoded, kind: Kind) -> Bool[np.ndarray, "queryword keyword"]:
    """True between words more than two places apart (fewer in very short texts), on the axes of a word map.

    Special tokens and punctuation do not count as words, nor does the first word of a decoder's text without a start
    token, because it is often an attention sink.
    """
    side, _ = sides(encoded, kind)
    _, forms, roles = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
    place = np.arange(len(forms))
    words = np.array([role == WORD and any(map(str.isalnum, form)) for form, role in zip(forms, roles, strict=True)])
    seen = words & ((kind != "decoder") | (roles[0] != WORD) | (place > 0))
    apart = np.abs(place[:, None] - place[None, :])
    masks: list[Bool[np.ndarray, "queryword keyword"]] = [words[:, None] & seen[None, :] & (apart > reach) for reach in (2, 1, 0)]
    return next((mask for mask in masks if mask.any()), masks[-1])
