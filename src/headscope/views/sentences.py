"""Sentences that were read in advance, as one offline page: the page of typed texts without its server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headscope.engine.typed_text import typed
from headscope.models.model import Model
from headscope.studies.flow.influence import Influence
from headscope.views.known import KnownHead
from headscope.views.page import shell
from headscope.views.text import ROOM, first_shown, held_influence, text_data, with_choice


@dataclass(frozen=True)
class ExampleSentence:
    """A sentence of the page: its group in the list, its text, and what to look for."""

    group: str
    text: str
    about: str


def sentences_page(model: Model, sentences: Iterable[ExampleSentence], known: Sequence[KnownHead], report: str, body: str) -> str:
    """A page with the maps of all heads on each sentence. `known` are the heads that a run has labels for, `report` is
    the address of its report, and `body` is trusted HTML with an element `data-view="sentences"`.
    """
    held = [{"group": each.group, "sentence": each.text, "about": each.about, "data": _data(model, each.text)} for each in sentences]
    data = {"model": model.name, "report": report, "known": [asdict(head) for head in known], "sentences": held}
    return shell("headscope: sentences", body, {"sentences": data})


def _data(model: Model, sentence: str) -> dict[str, Any]:
    read = typed(model, sentence)
    data = with_choice(text_data(model, read), "word", "hide")  # the behaviour of a head is clearest between words
    return {**data, "influence": {**held_influence(Influence(model, read.encoded), (), ROOM), **first_shown((), ())}}
