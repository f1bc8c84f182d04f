"""Texts that visitors sent, and their maps: computed on request, and kept while there is room."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headscope.app.errors import Refusal, missing
from headscope.app.limits import Limits
from headscope.app.models import ServedModels
from headscope.app.served_runs import known_head

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, UInt16

    from headscope.core.heads import HeadId
    from headscope.encoding.texts import Encoded
    from headscope.models.model import Model

    Maps = dict[str, UInt16[np.ndarray, "query key"]]

_WINDOW = re.compile(r"([0-9]{0,9}):([0-9]{0,9})", re.ASCII)


@dataclass(frozen=True)
class SentText:
    """A text as a model reads it, and its description for the views."""

    model: str
    encoded: Encoded
    heads: dict[str, HeadId]
    described: dict[str, Any]


class SentTexts:
    """The last texts by id, with as many of their maps and of their influence as fit.

    A text's id is a hash, so the same text sent again has the same id.
    """

    def __init__(self, models: ServedModels, limits: Limits) -> None:
        self._models = models
        self._limits = limits
        self._texts: OrderedDict[str, SentText] = OrderedDict()
        self._maps: OrderedDict[tuple[str, str], UInt16[np.ndarray, "query key"]] = OrderedDict()
        self._influence: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self.bytes = 0  # of the maps kept

    async def add(self, model: str, text: str, second: str | None, generate: int | None = None) -> dict[str, Any]:
        """The description of a text for the views (frontend/src/types.ts, TextData), after the model has read it and
        generated `generate` tokens after it.
        """
        for part in (text, second or ""):
            if len(part) > self._limits.characters:
                raise Refusal(422, f"the text has {len(part):,} characters, and {self._limits.characters:,} are allowed", "Shorten it")
        if generate is not None and generate > self._limits.generate_tokens:
            raise Refusal(422, f"{generate:,} tokens were requested, and {self._limits.generate_tokens} are allowed", "Request fewer")
        if generate is not None and second is not None:
            raise Refusal(422, "a model continues one text, not two", "Omit the second text")
        sent, maps = await self._models.work(model, lambda loaded: self._read(loaded, model, text, second, generate))
        id = sent.described["id"]
        self._texts[id] = sent
        self._texts.move_to_end(id)
        while len(self._texts) > self._limits.texts:
            gone, _ = self._texts.popitem(last=False)
            for key in [key for key in self._maps if key[0] == gone]:
                self.bytes -= self._maps.pop(key).nbytes
        self._keep(id, maps, sent.described["heads"][0])
        return sent.described

    def _read(self, model: Model, name: str, text: str, second: str | None, generate: int | None) -> tuple[SentText, Maps]:
        """The text, and its maps if they were needed to choose the head to begin with."""
        from headscope.engine.typed_text import typed, write_on
        from headscope.gallery.heads import rank
        from headscope.gallery.texts import look, quantised
        from headscope.models.generation import Decoding, generates
        from headscope.views.text import WHY, first_shown, measures_on_demand, text_data

        asked = [model.fingerprint, name, text, second, *([] if generate is None else [generate])]
        id = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]
        if (known := self._texts.get(id)) is not None:
            return known, {}
        decoding = None if generate is None else Decoding(generate)
        if decoding is not None and not generates(model):
            raise Refusal(422, f"{name} does not continue texts", "Choose a decoder with its language-modelling head, such as mini-decoder")
        reading = typed(model, text, second, self._limits.max_tokens)
        if decoding is not None:
            reading = write_on(model, reading, decoding)
        heads = {str(head): head for head in model.layout.ids()}
        maps = look(model, reading.encoded) if self._fits(reading.encoded, len(heads)) else None
        data = text_data(model, reading, rank(model, reading.encoded, maps)[:1], {})
        del data["maps"]  # they are requested one by one
        data["influence"] = {"measures": measures_on_demand(), "missing": {}, **first_shown((), ())}
        if decoding is not None:
            data |= {"signature": f"{data['signature']}|{decoding.signature}"}
        described = {**data, "why": WHY, "id": id, "text": {**data["text"], "id": id}, "note": reading.note}
        return SentText(name, reading.encoded, heads, described), {str(head): quantised(weights) for head, weights in (maps or {}).items()}

    def _fits(self, encoded: Encoded, heads: int) -> bool:
        """Whether the maps of so many heads would fill at most half of the room."""
        longest = max(len(encoded), len(encoded.target) if encoded.target is not None else 0)
        return 2 * longest**2 * heads <= self._limits.map_bytes // 2

    async def map(self, id: str, head: str, rows: str, columns: str) -> UInt16[np.ndarray, "query key"]:
        """One head's map of a text, or a window of it, as 16-bit numbers."""
        sent = self._sent(id)
        head = str(known_head(head, list(sent.heads.values()), "model"))
        weights = self._maps.get((id, head))
        if weights is None:
            maps = await self._models.work(sent.model, lambda model: self._look(model, id, sent, head))
            self._keep(id, maps, head)
            weights = maps[head]
        else:
            self._maps.move_to_end((id, head))
        return weights[window(rows, len(weights), "rows"), window(columns, weights.shape[1], "columns")]

    def _sent(self, id: str) -> SentText:
        sent = self._texts.get(id)
        if sent is None:
            raise missing("the server does not have this text, or no longer has it", "Send the text again")
        self._texts.move_to_end(id)
        return sent

    async def influence(self, id: str, measure: str) -> dict[str, Any]:
        """Influence between the tokens of a text by one measure, in every layer (types.ts, PackedInfluence)."""
        from headscope.studies.flow.influence import CHEAP
        from headscope.views.text import measures_on_demand

        sent = self._sent(id)
        if measure not in measures_on_demand():
            raise missing("there is no such measure", f"The measures are {', '.join(measures_on_demand())}")
        tokens = len(sent.encoded)
        if measure not in CHEAP and tokens > self._limits.influence_tokens:
            problem = f"{measure} is computed here for up to {self._limits.influence_tokens} tokens, and the text has {tokens}"
            raise Refusal(422, problem, f"Shorten the text, or use headscope view --measure {measure}")
        if (id, measure) not in self._influence:
            answer = await self._models.work(sent.model, lambda model: _influence(model, sent.encoded, measure))
            self._influence[id, measure] = answer
            while sum(len(kept["values"]) for kept in self._influence.values()) > self._limits.map_bytes // 4 and len(self._influence) > 1:
                self._influence.popitem(last=False)
        self._influence.move_to_end((id, measure))
        return self._influence[id, measure]

    async def differences(self, id: str, other: str) -> dict[str, Any]:
        """How differently each head attends in two texts of one model."""
        first, second = self._sent(id), self._sent(other)
        if first.model != second.model:
            raise Refusal(422, "the texts were read by different models", "Send both to one model")
        if not all(self._fits(sent.encoded, len(sent.heads)) for sent in (first, second)):
            raise Refusal(422, "the texts are too long to compare all heads", "Shorten them")
        return await self._models.work(first.model, lambda model: self._differences(model, (id, first), (other, second)))

    def _differences(self, model: Model, *texts: tuple[str, SentText]) -> dict[str, Any]:
        from headscope.gallery.differences import align, differences

        (_, first), (_, second) = texts
        aligned = align(first.encoded, second.encoded)  # an error here saves computing maps
        maps = [self._all_maps(model, id, sent) for id, sent in texts]
        found = differences(first.encoded, second.encoded, maps[0], maps[1])
        return {
            "words": len(aligned.rows),
            "changed": aligned.changed,
            "aligned": {kind: {"rows": rows.pairs, "columns": columns.pairs} for kind, (rows, columns) in found.aligned.items()},
            "heads": [{"head": str(one.head), "difference": one.value, "largest": one.largest, "words": one.words} for one in found.heads],
        }

    def _all_maps(self, model: Model, id: str, sent: SentText) -> dict[HeadId, Float[np.ndarray, "query key"]]:
        """The maps of all heads: those that are kept, if all are."""
        import numpy as np

        from headscope.gallery.texts import look

        kept = {head: self._maps.get((id, name)) for name, head in sent.heads.items()}
        if any(weights is None for weights in kept.values()):
            return look(model, sent.encoded)
        return {head: weights / np.float32(65535) for head, weights in kept.items() if weights is not None}

    def _look(self, model: Model, id: str, sent: SentText, head: str) -> Maps:
        """The maps of all heads if that many can be kept, else those of the head's layer, else that of the head."""
        from headscope.gallery.texts import look, quantised

        if (kept := self._maps.get((id, head))) is not None:  # while this request waited for its turn
            return {head: kept}
        asked = sent.heads[head]
        layer = {name: other for name, other in sent.heads.items() if (other.kind, other.layer) == (asked.kind, asked.layer)}
        choices = [choice for choice in (sent.heads, layer) if self._fits(sent.encoded, len(choice))]
        wanted = (choices or [{head: asked}])[0]
        maps = look(model, sent.encoded, wanted.values())
        return {name: quantised(maps[other]) for name, other in wanted.items()}

    def _keep(self, id: str, maps: Maps, asked: str) -> None:
        if id not in self._texts or sum(weights.nbytes for weights in maps.values()) > self._limits.map_bytes:
            return
        for head in sorted(maps, key=lambda head: head == asked):
            if (id, head) not in self._maps:
                self._maps[id, head] = maps[head]
                self.bytes += maps[head].nbytes
            self._maps.move_to_end((id, head))
        while self.bytes > self._limits.map_bytes:
            self.bytes -= self._maps.popitem(last=False)[1].nbytes


def _influence(model: Model, encoded: Encoded, measure: str) -> dict[str, Any]:
    from headscope.studies.flow.influence import Influence, find_measures
    from headscope.views.text import pack_influence

    return pack_influence(Influence(model, encoded), *find_measures([measure]))


def window(text: str, size: int, name: str) -> slice:
    """`a:b`, counted from 0 with b excluded, as a slice of `size` rows or columns; either end may be missing."""
    if not text:
        return slice(0, size)
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise Refusal(422, f"{name} must be of the form first:end", "Count from 0 and exclude the end, as in 0:64")
    first, end = int(match[1] or 0), int(match[2] or size)
    if not first < end <= size:
        raise Refusal(422, f"{name} {first}:{end} are out of range: there are {size}", "Count from 0 and exclude the end, as in 0:64")
    return slice(first, end)
