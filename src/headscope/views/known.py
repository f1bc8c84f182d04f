"""What a run knows about the heads of a model, for views of another text: a few words for each head, a sentence with
the numbers, and texts of the run's gallery that show the heads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headscope.results.head_labels import HeadLabel, readable_labels
from headscope.results.results import Results
from headscope.views.run import readable_gallery
from headscope.views.words import UNBOUNDED

# The name of a relation that a head finds, in plain words; for other relations the label is shown.
RELATIONS = {
    "acl": "clauses of nouns",
    "acl:relcl": "relative clauses",
    "advmod": "adverbs",
    "amod": "adjectives",
    "appos": "appositions",
    "aux": "auxiliaries",
    "aux:pass": "passive auxiliaries",
    "case": "prepositions",
    "cc": "conjunctions",
    "ccomp": "clauses",
    "compound": "compounds",
    "conj": "coordination",
    "cop": "copulas",
    "det": "determiners",
    "iobj": "indirect objects",
    "mark": "subordinators",
    "nmod:poss": "possessors",
    "nsubj": "subjects",
    "nsubj:pass": "passive subjects",
    "nummod": "numbers",
    "obj": "objects",
    "obl": "obliques",
    "punct": "punctuation",
}
SPECIFIC = {"syntactic": 0, "coreference": 0, "induction": 0, "retrieval": 0, "duplicate": 0, "positional": 1, "previous token": 1}
LONGEST = 24  # words of an example
EXAMPLES = 4
_NO_SPACE_BEFORE = re.compile(r" (?=[.,;:!?)’]|'s\b|n't\b)")


@dataclass(frozen=True)
class KnownHead:
    """What a run knows about a head: `word` for a chip, and `sentence` with the numbers for its tooltip."""

    head: str
    word: str
    sentence: str
    run: str


@dataclass(frozen=True)
class SeenText:
    """A text of a run's gallery that shows a head."""

    text: str
    head: str
    word: str
    run: str


def known_heads(results: Results, run: str) -> list[KnownHead]:
    """One entry per head that has a label: first heads with a specific function, by their distance from the baseline;
    then heads of position, sinks and broad heads.
    """
    labels = readable_labels(results)
    ordered = sorted(labels.sure if labels is not None else (), key=_rank)
    words: dict[str, list[str]] = {}
    lead: dict[str, HeadLabel] = {}
    for label in ordered:
        head = str(label.head)
        lead.setdefault(head, label)
        said = words.setdefault(head, [])
        if (word := results.spelled(_word(label))) not in said:
            said.append(word)
    return [KnownHead(head, ", ".join(words[head][:2]), _sentence(results, label), run) for head, label in lead.items()]


def seen_texts(results: Results, known: list[KnownHead], run: str) -> list[SeenText]:
    """Short texts of the run's gallery, one for each of the first known heads."""
    gallery, _ = readable_gallery(results)
    found: dict[str, SeenText] = {}
    for head in known:
        for example in gallery.examples if gallery is not None else ():
            text = gallery.texts[example.text] if gallery is not None else {}
            plain = "window" not in text and "target" not in text and 4 <= len(text["source"]["forms"]) <= LONGEST
            if str(example.head) == head.head and plain and (written := sentence_of(text["source"])) not in found:
                found[written] = SeenText(written, head.head, head.word, run)
                break
        if len(found) == EXAMPLES:
            break
    return list(found.values())


def sentence_of(side: dict[str, Any]) -> str:
    """The words of a text as a sentence; spaces are guessed, because the gallery does not keep them."""
    text = _NO_SPACE_BEFORE.sub("", " ".join(side["forms"]))
    return re.sub(r'" ([^"]*?) ?"', r'"\1"', re.sub(r"([(‘“]) ", r"\1", text))


def _rank(label: HeadLabel) -> tuple[int, float]:
    last = {"sink": 2, "broad": 3}.get(label.type.order, 1)
    return SPECIFIC.get(label.type.name, last), -(label.value - label.baseline)


def _word(label: HeadLabel) -> str:
    if label.type.name == "syntactic":
        return RELATIONS.get(label.what, label.what)
    if label.type.name == "coreference":
        return f"antecedents of {label.what} mentions" if label.type.measure == "coreference" else f"antecedents of {label.what} pronouns"
    if label.type.name == "positional":
        return f"{label.what} token"
    return f"rests on {label.what}" if label.type.order == "sink" else label.word


def _sentence(results: Results, label: HeadLabel) -> str:
    """`finds …: 82% [78% 86%], baseline 37%, n = 370`."""

    def number(value: float) -> str:
        return f"{value:.2f}" if label.quantity in UNBOUNDED else f"{value:.0%}"

    value, low, high, baseline = map(number, (label.value, label.low, label.high, label.baseline))
    return f"{results.spelled(label.sentence)}: {value} [{low} {high}], baseline {baseline}, n = {label.n:,}"
