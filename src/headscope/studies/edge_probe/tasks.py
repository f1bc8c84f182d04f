"""The tasks of edge probing: the spans of a document to label, their labels, and the labels that count in a score.

Unless stated otherwise, as jiant prepared them for Tenney et al. (2019),
https://github.com/nyu-mll/jiant/tree/master/probing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from headscope.core.document import Document, Edge
from headscope.core.suggest import choose_from
from headscope.corpora.resolution.trees import PhraseNode, parse_tree
from headscope.errors import HeadscopeError
from headscope.studies.edge_probe.spec import Tags

DERIVED = ("pos", "constituents", "deps", "entities", "coref")  # read from tags, trees and mentions
TASKS = ("pos", "constituents", "deps", "entities", "srl", "coref", "spr", "relations")  # in the order of the paper's tables
COREFERENT, APART = "1", "0"


@dataclass(frozen=True, slots=True)
class Choices:
    """How targets are derived from the annotation if there is a choice.

    `tags` are the tags of `pos`: `auto` uses UPOS, and XPOS in a document without UPOS. Without `subtypes`,
    `nsubj:pass` is `nsubj`. `apart` is the largest number of sentences between two mentions: 0 for mentions in one
    sentence, None for any number. With `singletons`, mentions of entities that the document mentions once are paired
    as well; OntoNotes has no such mentions.
    """

    tags: Tags = "auto"
    subtypes: bool = True
    apart: int | None = 0
    singletons: bool = False

    def __post_init__(self) -> None:
        if self.tags not in get_args(Tags):
            raise HeadscopeError(f"unknown tags {self.tags!r}", choose_from(self.tags, get_args(Tags), "Use one of"))
        if self.apart is not None and self.apart < 0:
            raise HeadscopeError(f"mentions cannot be {self.apart} sentences apart", "Use 0 for one sentence, or more")


DEFAULT = Choices()


def targets(document: Document, task: str, choices: Choices = DEFAULT) -> list[Edge]:
    """The targets of a task in a document, in the order of the text; `task` may be any that `Document.edges` names.

    pos: each word. deps: each word (first) and its head (second), which for a root is the word itself. constituents:
    each node above the tags, labelled with its category without functions. coref: each pair of mentions, the earlier
    one first, labelled 1 if they share an entity, else 0. entities: as annotated; without annotation, mentions with
    their types.
    """
    if (derive := _DERIVE.get(task)) is None:
        listed = [edge for edge in document.edges if edge.task == task]
    else:
        listed = list(derive(document, choices))
    return sorted(listed, key=lambda edge: (edge.first, edge.second or (-1, -1)))


def tasks_in(documents: Iterable[Document], choices: Choices = DEFAULT) -> dict[str, int]:
    """How many targets each task has in some documents: the known tasks in order, then others by name."""
    counts: Counter[str] = Counter()
    for document in documents:
        names = {*DERIVED, *(edge.task for edge in document.edges)}
        counts.update({name: len(targets(document, name, choices)) for name in names})
    known = [task for task in TASKS if counts[task]]
    return {task: counts[task] for task in (*known, *sorted(task for task in counts if counts[task] and task not in TASKS))}


def counts_in_score(task: str, label: str) -> bool:
    """Whether decisions about a label count in the score of a task, as in the paper; in other tasks all labels count.

    coref: only "coreferent" counts. srl: parts of split or referring arguments (C-, R-) do not count. relations: the
    absence of a relation does not count.
    """
    if task == "coref":
        return label == COREFERENT
    if task == "srl":
        return label.startswith("ARG")
    return task != "relations" or label not in ("Other", "no_relation")


def inside(edges: Iterable[Edge], positions: Sequence[int]) -> list[Edge]:
    """The edges wholly within a text, whose words have these ascending places in the document, by text words."""
    place = {position: index for index, position in enumerate(positions)}
    within = []
    for edge in edges:
        first, second = _moved(edge.first, place), edge.second and _moved(edge.second, place)
        if first is not None and (second is not None) == (edge.second is not None):
            within.append(replace(edge, first=first, second=second))
    return within


def _moved(span: tuple[int, int], place: dict[int, int]) -> tuple[int, int] | None:
    if span[0] >= span[1] or not all(position in place for position in range(*span)):
        return None
    return place[span[0]], place[span[1] - 1] + 1


def _parts_of_speech(document: Document, choices: Choices) -> Iterator[Edge]:
    words = document.words
    universal = choices.tags == "upos" or (choices.tags == "auto" and any(word.upos is not None for word in words))
    for position, word in enumerate(words):
        tag = word.upos if universal else word.xpos
        if tag is not None:
            yield Edge("pos", (tag,), (position, position + 1))


def _dependencies(document: Document, choices: Choices) -> Iterator[Edge]:
    start = 0
    for sentence in document.sentences:
        for place, word in enumerate(sentence.words, start=1):
            if word.head is not None and word.relation is not None and 0 <= word.head <= len(sentence):
                relation = word.relation if choices.subtypes else word.relation.partition(":")[0]
                head = start + (word.head or place)
                yield Edge("deps", (relation,), (start + place - 1, start + place), (head - 1, head))
        start += len(sentence)


def _constituents(document: Document, choices: Choices) -> Iterator[Edge]:
    start = 0
    for sentence in document.sentences:
        if sentence.parse is not None and (tree := parse_tree(sentence.parse, len(sentence))) is not None:
            for node in _phrases(tree):
                if node.label and node.start < node.end:
                    yield Edge("constituents", (node.label,), (start + node.start, start + node.end))
        start += len(sentence)


def _phrases(tree: PhraseNode) -> Iterator[PhraseNode]:
    """The nodes that have nodes below them, top-down; without recursion, because a chain can be long."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.children:
            yield node
            waiting += reversed(node.children)


def _entities(document: Document, choices: Choices) -> Iterator[Edge]:
    annotated = [edge for edge in document.edges if edge.task == "entities"]
    if annotated:
        yield from annotated
        return
    seen = {(mention.start, mention.end, mention.type) for mention in document.mentions if mention.start < mention.end}
    yield from (Edge("entities", (type,), (start, end)) for start, end, type in seen if type is not None)


def _coreference(document: Document, choices: Choices) -> Iterator[Edge]:
    sizes = Counter(mention.entity for mention in document.mentions)
    entities: dict[tuple[int, int], set[str]] = {}  # a span that is annotated twice has both entities
    for mention in document.mentions:
        if mention.start < mention.end and (choices.singletons or sizes[mention.entity] > 1):
            entities.setdefault((mention.start, mention.end), set()).add(mention.entity)
    sentence_of = [number for number, sentence in enumerate(document.sentences) for _ in sentence.words]
    spans = sorted(entities)
    for number, first in enumerate(spans, start=1):
        for second in spans[number:]:
            if choices.apart is not None and sentence_of[second[0]] - sentence_of[first[0]] > choices.apart:
                break
            if choices.apart is None or sentence_of[max(first[1], second[1]) - 1] - sentence_of[first[0]] <= choices.apart:
                label = COREFERENT if entities[first] & entities[second] else APART
                yield Edge("coref", (label,), first, second)


_DERIVE: dict[str, Callable[[Document, Choices], Iterator[Edge]]] = {
    "pos": _parts_of_speech,
    "constituents": _constituents,
    "deps": _dependencies,
    "entities": _entities,
    "coref": _coreference,
}
