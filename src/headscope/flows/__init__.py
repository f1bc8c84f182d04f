"""Information flow between words and what it goes with: coreference, parts of speech, dependency trees (Westera).

A study sees one text at a time with its matrices [layer, source, target], by the name of what they measure (`A`, `G`, `G*`), and
gives tables in the end.
"""

from __future__ import annotations

from headscope.flows.agreement import Agreement
from headscope.flows.attachment import Attachment
from headscope.flows.classes import PartsOfSpeech
from headscope.flows.coreference import Coreference
from headscope.flows.items import Context, Pair, Passage, alternating, draw
from headscope.flows.trees import TreeDistances

__all__ = [
    "Agreement",
    "Attachment",
    "Context",
    "Coreference",
    "Pair",
    "PartsOfSpeech",
    "Passage",
    "TreeDistances",
    "alternating",
    "draw",
]
