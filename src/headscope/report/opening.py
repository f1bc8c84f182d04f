"""The first screen of a report: what a head is, the strongest finding with a sentence, and the next ones as cards."""

from __future__ import annotations

import math
from typing import Any

from headscope.report.headlines import Headline, headlines
from headscope.report.plain import percent, relation
from headscope.report.sentence_pictures import LEAST, sentence_picture
from headscope.results.gallery import Gallery
from headscope.results.results import Results
from headscope.views.page import encode

_DRAWN = ("relations", "coreference", "pronouns", "positions")  # whose links lie within a sentence and between words


def opening(results: Results, gallery: Gallery | None) -> dict[str, Any] | None:
    """What the first screen shows: `first`, the strongest finding, and `cards`, the next ones; None without any."""
    parts = [_part(results, gallery, headline) for headline in headlines(results)]
    return {"what": _what(results), "first": parts[0], "cards": parts[1:]} if parts else None


def _what(results: Results) -> str:
    """What an attention head is, in a sentence."""
    seen = "the words before it" if results.layout.causal else "all words of the text"
    return (
        f"An attention head is a small part of a language model that, for each word, weighs {seen} and passes on information from those "
        "it weighs most."
    )


def _part(results: Results, gallery: Gallery | None, headline: Headline) -> dict[str, Any]:
    picture = sentence_picture(gallery, headline) if headline.measure in _DRAWN else None
    grid = _grid(results, headline) if picture is None else None
    return {
        "headline": headline,
        "place": f"#head={headline.head}",
        "sentence": picture,
        "data": None if picture is None else encode({key: picture[key] for key in ("words", "links")}),
        "caption": _marked(headline) if picture is None else _caption(results, headline),
        "grid": grid,
        "bars": [
            _bar(f"head {headline.head}", headline.value, headline.low, headline.high),
            _bar(headline.rule, headline.baseline),
        ],
    }


def _bar(name: str, share: float, low: float = math.nan, high: float = math.nan) -> dict[str, Any]:
    return {"name": name, "share": share, "text": percent(share), "low": low, "high": high}


def _marked(headline: Headline) -> str:
    number = len(headline.heads)
    return f"One square per head, one row per layer. Marked: {f'the {number} heads' if number > 1 else 'the head'} for which this holds."


def _caption(results: Results, headline: Headline) -> str:
    """The caption of the drawing over a sentence, which can be understood without the rest of the page."""
    special = [name for name in (results.special_tokens.opening, results.special_tokens.closing) if name is not None]
    hidden = " and ".join([", ".join(["itself", *special][:-1]), special[-1]]) if special else "itself"
    lines = f"Lines show the attention of head {headline.head} from word to word; stronger lines mean more attention. "
    left_out = f"Links below {LEAST:.2f} and the attention of a word to {hidden} are not drawn."
    if headline.measure != "relations":
        return f"One sentence of the corpus, selected by the run. {lines}{left_out}"
    dependents, governor = relation(headline.quantity.partition(" (")[0])
    ends = f"the {governor} to {dependents}" if "(" in headline.quantity else f"{dependents} to the {governor}"
    return f"One sentence of the corpus, selected by the run. {lines}Red: the annotated links, from {ends}. {left_out}"


def _grid(results: Results, headline: Headline) -> list[dict[str, Any]]:
    """All heads as cells, layer by layer, those of the finding marked."""
    layout = results.layout
    named = set(headline.heads)
    rows: dict[tuple[str, int], list[bool]] = {}
    for head in layout.ids():
        rows.setdefault((head.kind, head.layer), []).append(str(head) in named)
    return [{"kind": kind, "layer": layer + 1, "cells": cells} for (kind, layer), cells in rows.items()]
