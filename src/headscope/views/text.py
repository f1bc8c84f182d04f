"""One text and the influence between its tokens, in the format of the views (frontend/src/types.ts)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.core.paths import printable
from headscope.encoding.texts import Encoded
from headscope.encoding.words import group
from headscope.engine.typed_text import TypedText
from headscope.errors import MeasureError
from headscope.gallery.grids import Level, Specials, check, sides
from headscope.gallery.heads import rank
from headscope.gallery.texts import describe_text, look, pack, packed, quantised
from headscope.models.jacobian.choices import Kind
from headscope.models.model import Model
from headscope.results.signature import versions
from headscope.studies.flow.influence import ABOUT, CHEAP, Influence, Layer
from headscope.views.page import shell

if TYPE_CHECKING:
    from jaxtyping import Float

    Maps = Mapping[HeadId, Float[np.ndarray, "query key"]]

WHY = "of all heads, it links distant words most clearly"  # why the first head is shown if no head was named
ROOM = 8_000_000  # most bytes of maps in a page, unless heads are named
ON_DEMAND: tuple[Kind, ...] = ("A", "G", "G*", "rollout", "norms")  # in the list of measures


@dataclass(frozen=True)
class LoadedText:
    """The available maps of a text. `note` says what is omitted, "" if nothing is."""

    order: tuple[HeadId, ...]  # the named heads, or all, by how clearly they link distant words
    maps: Maps
    note: str


def look_at(model: Model, encoded: Encoded, heads: Sequence[HeadId] | None = None, room: int = ROOM) -> LoadedText:
    """The maps of all heads if they fit, else of the named ones, else of as many as fit, those with distant links
    first.
    """
    every = model.layout.ids()
    total = sum(size(encoded, head) for head in every)
    if total <= room:
        maps = look(model, encoded)
        return LoadedText(tuple(heads or rank(model, encoded, maps)), maps, "")
    order = list(heads or rank(model, encoded))
    held = order if heads else order[: max(1, room // size(encoded, order[0]))]
    note = f"The text is long: the page has {len(held)} of {len(every)} heads (all would take {total / 1e6:,.0f} MB)"
    return LoadedText(tuple(order), look(model, encoded, held), note if heads else f"{note}; name others with heads")


def size(encoded: Encoded, head: HeadId) -> int:
    """Bytes of a head's map in a page, before base64."""
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
    """The signature of a model and a text: `headscope:1.0.0|model:mini@1f2e3d4c|text:5b6a7988`."""
    origin = "".join(f"|{name}:{value}" for name, value in model.origin.items())
    return f"headscope:{versions()['headscope']}|model:{Path(model.name).name}@{model.fingerprint[:8]}{origin}|text:{_hash(encoded)}"


def text_page(data: Mapping[str, Any], title: str, note: str = "") -> str:
    """The page of one text, complete and offline. `data` is the result of `text_data`."""
    note_html = f"<p>{escape(printable(note))}.</p>\n" if note else ""
    body = f'<main>\n<h1>{escape(printable(title))}</h1>\n{note_html}<div data-view="text"></div>\n</main>'
    return shell(f"headscope: {title}", body, {"text": data})


def title_of(model: Model, encoded: Encoded) -> str:
    """The title of a text's page: the model and the first words."""
    if encoded.generated_from is None:
        return f"{Path(model.name).name} reads “{opening_of(encoded)}”"
    prompt = 1 + max(encoded.word_of[: encoded.generated_from])
    return f"{Path(model.name).name} continues “{opening_of(encoded, min(prompt, 14)).removesuffix(' …')}”"


def opening_of(encoded: Encoded, most: int = 14) -> str:
    """The first words of a text as they were written; a bar separates the texts of a pair."""
    words, sentences = encoded.words[:most], encoded.annotation.sentences[:most]
    parts: dict[int, str] = dict.fromkeys(sentences, "")
    for word, sentence in zip(words, sentences, strict=True):
        parts[sentence] += f"{word.form} " if word.space_after else word.form
    return " / ".join(part.strip() for part in parts.values()) + (" …" if len(encoded.words) > len(words) else "")


def with_choice(data: Mapping[str, Any], level: Level | None, specials: Specials | None) -> dict[str, Any]:
    """The payload with the initial settings of the view, if they are given."""
    check(level or "word", specials or "show")
    return {**data, "level": level or "word", **({"specials": specials} if specials else {})}


def _hash(encoded: Encoded) -> str:
    """The beginning of a hash of the words of a text; apart from special tokens it does not depend on the tokenizer."""
    read = []
    for side in (encoded, encoded.target):
        if side is not None:
            _, forms, roles = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
            read.append(" ".join(form if role == WORD else "\n" for form, role in zip(forms, roles, strict=True)))
    return hashlib.sha256("\f".join(read).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def pack_influence(influence: Influence, measure: Kind) -> dict[str, Any]:
    """One measure: layers as 16-bit numbers, whose rows are the influenced tokens; 65535 is the layer's scale."""
    values = influence.values(measure).transpose(0, 2, 1)
    scales = values.max((1, 2))
    shares = values / np.where(scales > 0, scales, 1)[:, None, None]
    flat = quantised(shares.reshape(-1, shares.shape[-1]))
    return {"scales": scales.tolist(), "values": packed(flat), "note": influence.note(measure), "settings": influence.settings(measure)}


def first_shown(measures: Iterable[Kind], layers: Iterable[Layer]) -> dict[str, Any]:
    """The measure and the layer that a page begins with."""
    return {"measure": next(iter(measures), "A"), "layer": next(iter(layers), "mean")}


def measures_on_demand(asked: Iterable[Kind] = ()) -> dict[Kind, str]:
    """The measures that a host computes on demand, with their descriptions."""
    return {kind: ABOUT[kind] for kind in dict.fromkeys((*ON_DEMAND, *asked))}


def held_influence(influence: Influence, asked: Iterable[Kind], room: int) -> dict[str, Any]:
    """The measures in a page: the named ones, and those of one forward pass that fit into `room` bytes."""
    asked = tuple(asked)
    held: dict[Kind, Any] = {}
    missing: dict[Kind, str] = {}
    for kind in measures_on_demand(asked):
        if kind not in asked and kind not in CHEAP:
            missing[kind] = f"takes longer to compute: make the page with --measure {kind}, or use headscope serve"
            continue
        if kind not in asked and room < influence.size:
            missing[kind] = f"the text is long: make the page with --measure {kind}"
            continue
        try:
            held[kind] = pack_influence(influence, kind)
            room -= influence.size
        except MeasureError as error:
            if kind in asked:
                raise
            missing[kind] = error.problem
    return {"measures": {kind: ABOUT[kind] for kind in held}, "missing": missing, "held": held}
