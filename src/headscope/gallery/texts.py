"""The maps of one text in a model, and texts and maps in the format of pages."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.core.suggest import choose_head
from headscope.encoding.texts import Encoded
from headscope.errors import RunError

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, UInt16

    from headscope.models.model import Model


def look(model: Model, encoded: Encoded, heads: Collection[HeadId] | None = None) -> dict[HeadId, Float[np.ndarray, "query key"]]:
    """The maps of one text, of the named heads or of all. Other layers are not captured."""
    known = model.layout.ids()
    if unknown := [str(head) for head in heads or () if head not in known]:
        raise RunError(f"{model.name} has no head {unknown[0]}", choose_head(unknown[0], known))
    asked = frozenset(known if heads is None else heads)
    places = {(site.kind, site.layer): number for number, site in enumerate(model.sites)}
    maps: dict[HeadId, Float[np.ndarray, "query key"]] = {}

    def keep(number: int, weights: torch.Tensor, *_: object) -> None:
        site = model.sites[number]
        values = weights[0].float().cpu().numpy()
        maps.update({head: values[head.head] for head in asked if (head.kind, head.layer) == (site.kind, site.layer)})

    model.stream(model.inputs([encoded]), keep, frozenset(places[head.kind, head.layer] for head in asked))
    return {head: maps[head] for head in known if head in asked}


def pack(weights: Float[np.ndarray, "query key"]) -> str:
    """A map in the format of pages: base64 of little-endian uint16, row by row, 65535 for a weight of 1."""
    return packed(quantised(weights))


def packed(values: UInt16[np.ndarray, "query key"]) -> str:
    """16-bit numbers in the format of pages: base64, little-endian, row by row."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<u2").tobytes()).decode("ascii")


def quantised(weights: Float[np.ndarray, "..."]) -> UInt16[np.ndarray, "..."]:
    """Weights as 16-bit numbers: good to 0.00001."""
    values: UInt16[np.ndarray, "..."] = np.rint(np.clip(weights, 0, 1) * 65535).astype("<u2")
    return values


def describe_text(encoded: Encoded, window: tuple[int, int] | None = None) -> dict[str, Any]:
    """A text in the format of views (frontend/src/types.ts, Text); with `window`, only its tokens [start, end)."""
    start, end = window or (0, len(encoded))
    described: dict[str, Any] = {"id": encoded.id, "source": _side(encoded, start, end)}
    if encoded.target is not None:
        described["target"] = _side(encoded.target, 0, len(encoded.target))
    if (start, end) != (0, len(encoded)):
        described["window"] = [start, len(encoded)]
    return described


def _side(encoded: Encoded, start: int, end: int) -> dict[str, Any]:
    shown = sorted({word for word in encoded.word_of[start:end] if word >= 0})
    place = {word: number for number, word in enumerate(shown)}
    side: dict[str, Any] = {
        "tokens": list(encoded.pieces[start:end]),
        "roles": list(encoded.roles[start:end]),
        "words": [place.get(word, -1) for word in encoded.word_of[start:end]],
        "forms": [encoded.words[word].form for word in shown],
    }
    if encoded.generated_from is not None and encoded.generated_from < end:
        side["generated"] = encoded.generated_from - start
    annotation = encoded.annotation
    relations = [
        [place[word], place[annotation.heads[word]], encoded.words[word].relation]
        for word in shown
        if annotation.heads[word] in place and encoded.words[word].relation
    ]
    mentions = [
        [place[mention.start], place[mention.end - 1], mention.entity]
        for mention in annotation.mentions
        if mention.start in place and mention.end - 1 in place
    ]
    return side | ({"relations": relations} if relations else {}) | ({"mentions": mentions} if mentions else {})
