"""One example sentence of a finding: its words, and the attention of the head between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.report.headlines import Headline
from headscope.results.gallery import Gallery

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.results.gallery import Map

    Pairs = frozenset[tuple[int, int]]  # the attending word first

LEAST = 0.1  # a weaker link is not drawn
LENGTHS = range(6, 23)  # words of a sentence that is easy to read; others are shown only if there is none of these
_LABEL = re.compile(r"(.+?)(?: \((.+)\))?")


def sentence_picture(gallery: Gallery | None, headline: Headline) -> dict[str, Any] | None:
    """The clearest text of the gallery for a head: its words, links as (from, to, weight, annotated), and the places of
    annotated words; None if no text shows the finding.
    """
    if gallery is None:
        return None
    pictures = (_picture(gallery.texts[text], head, map, headline) for text, head, map in _seen(gallery, headline))
    drawn = [picture for picture in pictures if picture is not None and (picture["marked"] or headline.measure != "relations")]
    return max(drawn, key=lambda picture: (len(picture["words"]) in LENGTHS, picture["right"], picture["clear"]), default=None)


def _seen(gallery: Gallery, headline: Headline) -> Iterator[tuple[int, HeadId, Map]]:
    """The texts for which the gallery has the head's map: all of them for a relation, else its examples."""
    for example in gallery.examples:
        same = (example.measure, example.quantity) == (headline.measure, headline.quantity)
        if str(example.head) == headline.head and (same or headline.measure == "relations"):
            yield example.text, example.head, example.map
    for text, maps in gallery.stacks if headline.measure == "relations" else ():
        yield from ((text, head, map) for head, map in maps.items() if str(head) == headline.head)


def _picture(text: Mapping[str, Any], head: HeadId, map: Map, headline: Headline) -> dict[str, Any] | None:
    side = text["target"] if head.kind == "decoder" and "target" in text else text["source"]
    if head.kind == "cross" or not side["forms"] or map.shape != (len(side["tokens"]),) * 2:
        return None
    weights, rest = between_words(map / 65535, side)
    pairs = marked_pairs(side, headline.measure, headline.quantity)
    rows, columns = np.nonzero(weights >= LEAST)
    links = {(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if i != j} | pairs
    right = [bool(weights[i, j] >= max(weights[i].max(), rest[i])) for i, j in pairs]
    # A text is clear if the annotated word receives more than the word itself and the special tokens.
    clear = np.mean(right) + float(np.mean([weights[i, j] for i, j in pairs])) if pairs else float(weights.max(axis=1).mean())
    return {
        "words": list(side["forms"]),
        "links": [[i, j, round(float(weights[i, j]), 3), (i, j) in pairs] for i, j in sorted(links)],
        "marked": sorted({i for i, _ in pairs}),
        "targets": sorted({j for _, j in pairs}),
        "right": min(sum(right), 2),
        "clear": round(float(clear), 3),
        "text": text["id"],
    }


def between_words(
    weights: Float64[np.ndarray, "query key"], side: Mapping[str, Any]
) -> tuple[Float64[np.ndarray, "word word"], Float64[np.ndarray, "word"]]:
    """The attention between words (summed over the tokens attended to, averaged over the attending ones), and the
    largest weight of each word on one special token.
    """
    words, roles = np.array(side["words"]), np.array(side["roles"])
    member = (words[:, None] == np.arange(len(side["forms"]))).astype(float)
    share = (member / np.maximum(member.sum(0), 1)).T
    special = weights[:, roles != WORD]
    return share @ weights @ member, share @ (special.max(axis=1) if special.shape[1] else np.zeros(len(weights)))


def marked_pairs(side: Mapping[str, Any], measure: str, quantity: str) -> Pairs:
    """The annotated links of a quantity: those of a relation; none for other quantities."""
    found = _LABEL.fullmatch(quantity)
    if measure != "relations" or found is None:
        return frozenset()
    label, direction = found[1], found[2] or "dep-to-head"
    arcs = [(dependent, head) for dependent, head, name in side.get("relations", ()) if name == label or name.startswith(f"{label}:")]
    return frozenset((head, dependent) if direction == "head-to-dep" else (dependent, head) for dependent, head in arcs)
