"""Labelled texts for training: a class for each text, or a tag for each word; and which of them are held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.document import Document
from headscope.core.hashing import hash64
from headscope.core.tally import Tally
from headscope.corpora.tags import OUTSIDE, tags_in
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import ModelError

if TYPE_CHECKING:
    from jaxtyping import Int64

Labels = Literal["label", "upos", "xpos", "keyphrases"]
LABELS: tuple[Labels, ...] = get_args(Labels)
UNLABELLED = -100  # a label that torch's losses ignore


@dataclass(frozen=True, slots=True)
class LabelledExample:
    """A text and the numbers of its labels: one for the whole text, or one per token, UNLABELLED except for the first
    token of each word.
    """

    text: Encoded
    labels: Int64[np.ndarray, "label"]


def names_of(documents: Iterable[Document], labels: Labels) -> tuple[str, ...]:
    """All labels that occur: by number if they are numbers, otherwise in alphabetical order; `O` comes first."""
    found = Counter(name for document in documents for name in labels_in(document, labels) if name is not None)
    number = all(name.isdecimal() for name in found)
    names = tuple(sorted(found, key=lambda name: (name != OUTSIDE, int(name) if number else 0, name)))
    if len(names) < 2:
        what = f"all texts are labelled {names[0]!r}" if names else f"no text has a label ({labels})"
        raise ModelError(f"there is nothing to learn: {what}", "Give each text a label, in a column of that name, or name --labels")
    if labels == "label" and len(names) * 2 > found.total():
        raise ModelError(
            f"there are {len(names)} labels on {found.total()} texts, such as {names[0]!r}", "Give classes, not numbers or names"
        )
    return names


def labels_in(document: Document, labels: Labels) -> Sequence[str | None]:
    """The label of the document, or the tags of its words."""
    return [document.label] if labels == "label" else tags_in(document, labels)


def examples(documents: Iterable[Document], encoder: Encoder, labels: Labels, names: Sequence[str], tally: Tally) -> list[LabelledExample]:
    """The texts of the documents that have a label; texts without a label are counted."""
    number = {name: place for place, name in enumerate(names)}
    tagging = replace(encoder, tags=None if labels == "label" else labels)
    found: list[LabelledExample] = []
    for document in documents:
        given = labels_in(document, labels)
        if labels == "keyphrases" and not set(given) - {OUTSIDE}:
            tally.add("texts skipped: no keyphrase in them", document.id)
            continue
        if unknown := next((label for label in given if label is not None and label not in number), None):
            known = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            raise ModelError(
                f"{document.id} is labelled {unknown!r}, which is not in the training corpus: {known}",
                "Use the same labels in both corpora",
            )
        for text in tagging.texts([document], tally):
            if labels == "label":
                numbers = np.array([UNLABELLED if label is None else number[label] for label in given], dtype=np.int64)
            else:
                places, tags = text.tagged()
                numbers = np.full(len(text), UNLABELLED, dtype=np.int64)
                numbers[places] = [number[tag] for tag in tags]
            if (numbers == UNLABELLED).all():
                tally.add("texts skipped: no label", document.id)
            else:
                found.append(LabelledExample(text, numbers))
    return found


def held_out(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """The documents to train on, and a share of about `share` that is held out."""
    parts: tuple[list[Document], list[Document]] = ([], [])
    for document in documents:
        opening = " ".join(sentence.text for sentence in next(document.paragraphs(), ()))
        parts[hash64(seed, opening) < share * 2**64].append(document)
    return parts


def some(documents: Sequence[Document], limit: int | None, seed: int) -> list[Document]:
    """`limit` of the documents, drawn by the seed and their ids, in their original order."""
    if limit is None or limit >= len(documents):
        return list(documents)
    chosen = set(sorted(range(len(documents)), key=lambda place: hash64(seed, documents[place].id))[:limit])
    return [document for place, document in enumerate(documents) if place in chosen]
