"""The types of heads, each declared once: the quantities it reads, its threshold, and what it says about a head."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from headscope.core.heads import Kind

Order = Literal["specific", "sink", "broad"]
ORDER: tuple[Order, ...] = ("specific", "sink", "broad")  # of the labels of a head
HALF = 0.5  # of a head's attention: above this share it does little else
CLEARLY = 0.1  # above the baseline: a head with a larger excess gets the label
# The released notebook's threshold for a broad head is 3.8 nats, in texts of 128 tokens: as a share of even attention's
# entropy it fits any length.
BROAD = 3.8 / math.log(128)
_ONE_TEXT: tuple[Kind, ...] = ("encoder", "decoder")  # rows and keys are those of one text
_REPEATS = "--measures sequences --corpus repeats:50"
_ANY: tuple[Kind, ...] = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class HeadType:
    """A type of heads. A head is of the type if its value in `measure` is, with its interval, above `least` and above
    its baseline times `times`, and if the value itself exceeds these by more than `margin`.

    `words` are the quantities that are read, each with the label of its heads in pictures. Without `words`, all labels
    of a measure that has labels (relations, kinds of mentions) are read, and heads are chosen on other documents than
    they are scored on. `control` is the suffix of a quantity that also counts as a baseline.
    """

    name: str
    measure: str
    about: str  # a sentence about a head, with {what} for the relation or token
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    kinds: tuple[Kind, ...] = _ANY
    least: float = 0.0
    times: float = 1.0
    margin: float = 0.0
    control: str = ""
    order: Order = "specific"
    remedy: str = ""  # what to add to `headscope run`
    unless: str = ""  # a measure that gives the same labels: if a run has it, this declaration is not read
    any_label: str = ""  # the words for {what} in the definition of a type with all labels of a measure

    def bar(self, baseline: np.ndarray) -> np.ndarray:
        """The threshold that an interval must exceed. It is infinite where even attention has an entropy of 0, since
        only one token is visible.
        """
        scaled = np.where(baseline > 0, self.times * baseline, np.inf) if self.times < 1 else baseline
        bar: np.ndarray = np.maximum(self.least, scaled)
        return bar

    def definition(self, without: Collection[str] = ()) -> str:
        """What a head of this type does, with the threshold; `without` are quantities that the model does not have."""
        words = list(dict.fromkeys(word for quantity, word in self.words.items() if quantity not in without)) or [self.any_label]
        text = self.about.format(what=words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}")
        return f"{text}, and scores more than {self.margin:g} above its baseline" if self.margin else text


TYPES: tuple[HeadType, ...] = (
    HeadType(
        "induction",
        "sequences",
        "attends to the token after an earlier copy of the token",
        {"induction": "induction"},
        _ONE_TEXT,
        margin=CLEARLY,
        control="_shuffled",
        remedy=_REPEATS,
    ),
    HeadType(
        "duplicate",
        "sequences",
        "attends to an earlier copy of the token",
        {"duplicate": "duplicate"},
        _ONE_TEXT,
        margin=CLEARLY,
        control="_shuffled",
        remedy=_REPEATS,
    ),
    HeadType(
        "previous token",
        "sequences",
        "gives more than half of its attention to the previous token, whatever the tokens are",
        {"previous_token": "previous token"},
        _ONE_TEXT,
        least=HALF,
        remedy=_REPEATS,
    ),
    HeadType(
        "retrieval",
        "retrieval",
        "attends from a question to the passage that answers it",
        {"qr": "retrieval"},
        _ONE_TEXT,
        margin=CLEARLY,
        control="_other",
        remedy="--measures retrieval --corpus needles:96x40 --max-length 256",
    ),
    HeadType(
        "syntactic",
        "relations",
        "finds the other word of the relation {what} more often than the best fixed offset",
        any_label="such as obj",
        kinds=_ONE_TEXT,
        margin=CLEARLY,
        remedy="--measures relations",
    ),
    HeadType(
        "coreference",
        "coreference",
        "finds an antecedent of a mention ({what}) more often than the best rule",
        any_label="pronoun, proper or nominal",
        kinds=_ONE_TEXT,
        margin=CLEARLY,
        remedy="--measures coreference",
    ),
    HeadType(
        "coreference",
        "pronouns",
        "finds what a pronoun ({what}) refers to more often than the best rule",
        any_label="feminine, masculine, neuter or plural",
        kinds=_ONE_TEXT,
        margin=CLEARLY,
        remedy="--measures pronouns",
    ),
    HeadType(
        "positional",
        "positions",
        "gives more than half of its attention to the {what} token",
        {"previous": "previous", "next": "next"},
        _ONE_TEXT,
        least=HALF,
        remedy="--measures positions",
    ),
    HeadType(
        "sink",
        "tokens",
        "gives more than half of its attention to a sink: {what}",
        {"to_cls": "[CLS]", "to_first": "first token", "to_sep": "[SEP]", "to_punct": "punctuation"},
        least=HALF,
        order="sink",
        remedy="--measures tokens",
    ),
    HeadType(
        "sink",
        "sinks",
        "gives more than half of its attention to a sink: {what}",
        {"to_first": "first token"},
        _ONE_TEXT,
        least=HALF,
        order="sink",
        unless="tokens",
        remedy="--measures tokens",
    ),
    HeadType(
        "broad",
        "entropy",
        f"attends broadly: its entropy is above {BROAD:.0%} of that of even attention",
        {"entropy": "broad"},
        times=BROAD,
        order="broad",
        remedy="--measures entropy",
    ),
)
NAMES = tuple(dict.fromkeys(type.name for type in TYPES))


def types_read(measures: Collection[str], types: Iterable[HeadType] = TYPES) -> list[HeadType]:
    """The declarations that are read for runs with these measures."""
    return [type for type in types if type.measure in measures and type.unless not in measures]
