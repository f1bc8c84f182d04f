"""One text as the views show it: what frontend/src/types.ts calls TextData."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.core.names import printable
from headscope.encoding.texts import Encoded
from headscope.encoding.words import group
from headscope.engine.typed_text import TypedText
from headscope.gallery.grids import Level, Specials, check, sides
from headscope.gallery.heads import rank
from headscope.gallery.texts import describe_text, look, pack
from headscope.models.model import Model
from headscope.results.signature import versions
from headscope.views.page import shell

if TYPE_CHECKING:
    from jaxtyping import Float

    Maps = Mapping[HeadId, Float[np.ndarray, "query key"]]

WHY = "of all heads it links words that are far from each other most clearly"  # why a head that nobody named is shown first
ROOM = 8_000_000  # bytes of maps that a page may hold unless more are asked for by name


@dataclass(frozen=True)
class LoadedText:
    """The maps of a text that are at hand. `note` says what is left out, "" if nothing is."""

    order: tuple[HeadId, ...]  # the heads that were asked for, or those that link far words most clearly first
    maps: Maps
    note: str


def look_at(model: Model, encoded: Encoded, heads: Sequence[HeadId] | None = None, room: int = ROOM) -> LoadedText:
    """The maps of all heads where they fit; else of those asked for; else of as many as fit, those that link far
    words first.
    """
    every = model.layout.ids()
    total = sum(size(encoded, head) for head in every)
    if total <= room:
        maps = look(model, encoded)
        return LoadedText(tuple(heads or rank(model, encoded, maps)), maps, "")
    order = list(heads or rank(model, encoded))
    held = order if heads else order[: max(1, room // size(encoded, order[0]))]
    note = f"The text is long: {len(held)} of {len(every)} heads are in the page (all would take {total / 1e6:,.0f} MB)"
    return LoadedText(tuple(order), look(model, encoded, held), note if heads else f"{note}; others can be named with heads")


def size(encoded: Encoded, head: HeadId) -> int:
    """Bytes of a head's map as pages hold it, before base64."""
    queries, keys = sides(encoded, head.kind)
    return 2 * len(queries) * len(keys)


def text_data(model: Model, typed: TypedText, heads: Sequence[HeadId] | None = None, maps: Maps | None = None) -> dict[str, Any]:
    """A text's payload with the given maps, or with those that `look_at` chooses; `heads` are shown first."""
    if maps is None:
        looked = look_at(model, typed.encoded, heads)
        heads, maps = heads or looked.order[:1], looked.maps
    shown = heads or rank(model, typed.encoded)[:1]
    return {
        "text": describe_text(typed.encoded),
        "sites": [{"kind": site.kind, "layer": site.layer + 1, "heads": site.heads, "kv_heads": site.kv_heads} for site in model.sites],
        "signature": signature(model, typed.encoded),
        "heads": [str(head) for head in shown],
        "maps": {str(head): pack(weights) for head, weights in maps.items()},
    }


def signature(model: Model, encoded: Encoded) -> str:
    """The line that says which model read which text: `headscope:0.1.0|model:mini@1f2e3d4c|text:5b6a7988`."""
    name = Path(model.name).name
    return f"headscope:{versions()['headscope']}|model:{name}@{model.fingerprint[:8]}|text:{_hash(encoded)}"


def text_page(data: Mapping[str, Any], title: str, note: str = "") -> str:
    """The page of one text, whole and offline. `data` is what `text_data` gives."""
    said = f"<p>{escape(printable(note))}.</p>\n" if note else ""
    body = f'<main>\n<h1>{escape(printable(title))}</h1>\n{said}<div data-view="text"></div>\n</main>'
    return shell(f"headscope: {title}", body, {"text": data})


def title_of(model: Model, encoded: Encoded) -> str:
    """What a page of a text is called: the model and the first words."""
    return f"{Path(model.name).name} reads “{opening_of(encoded)}”"


def opening_of(encoded: Encoded, most: int = 14) -> str:
    """The first words of a text as they were written; a bar separates the texts of a pair."""
    words, sentences = encoded.words[:most], encoded.annotation.sentences[:most]
    parts: dict[int, str] = dict.fromkeys(sentences, "")
    for word, sentence in zip(words, sentences, strict=True):
        parts[sentence] += f"{word.form} " if word.space_after else word.form
    return " / ".join(part.strip() for part in parts.values()) + (" …" if len(encoded.words) > len(words) else "")


def with_choice(data: Mapping[str, Any], level: Level | None, specials: Specials | None) -> dict[str, Any]:
    """The payload with what the view is set to at first, where that was said."""
    check(level or "word", specials or "show")
    return {**data, "level": level or "word", **({"specials": specials} if specials else {})}


def _hash(encoded: Encoded) -> str:
    """The first signs of a hash of the words that were read; the tokenizer has no part in it but where special
    tokens part them.
    """
    read = []
    for side in (encoded, encoded.target):
        if side is not None:
            _, forms, roles = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
            read.append(" ".join(form if role == WORD else "\n" for form, role in zip(forms, roles, strict=True)))
    return hashlib.sha256("\f".join(read).encode("utf-8", "surrogatepass")).hexdigest()[:8]
