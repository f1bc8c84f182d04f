"""Documents from marked text, such as `[1 Ann/NNP ] met [2:person her/PRP$ son/NN ] .`, and planted heads for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.core.annotation import Annotated
from headscope.core.batch import CLS, SEP, WORD
from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.heads import HeadLayout, Site
from headscope.measures import make
from headscope.results.table import Table
from helpers.worlds import Text, World, run

Map = NDArray[np.float64]


def document(text: str, id: str = "d", subset: str | None = None, parse: str | None = None) -> Document:
    """A document of one sentence. `[1` opens a mention of entity 1 (`[1:person` also sets its type), and `]` closes the
    mention that was opened last.
    """
    words: list[Word] = []
    open_: list[tuple[str, int]] = []
    mentions = []
    for piece in text.split():
        if piece.startswith("[") and len(piece) > 1:
            open_.append((piece[1:], len(words)))
        elif piece == "]":
            (entity, _, type), start = open_[-1][0].partition(":"), open_.pop()[1]
            mentions.append(Mention(entity, start, len(words), type or None))
        else:
            form, _, tag = piece.partition("/")
            words.append(Word(form, xpos=tag or None))
    return Document(id, (Sentence(tuple(words), parse=parse),), tuple(mentions), subset=subset)


def pointing(n: int, targets: Mapping[int, int]) -> Map:
    """A map of n words between [CLS] and [SEP]: word i (from 0) attends to word targets[i], and every other token to
    itself.
    """
    a = np.eye(n + 2)
    for i, j in targets.items():
        a[i + 1] = 0
        a[i + 1, j + 1] = 1
    return a


def measured(
    name: str, documents: Sequence[Document], heads: Sequence[Sequence[Map]] | None = None, kept: int | None = None, **options: Any
) -> dict[str, Table]:
    """The tables of a measure on one layer. `heads` has a list of maps per document; by default there is one head of
    uniform attention.

    The model sees the first `kept` words of each document, or all words.
    """
    texts = []
    for number, one in enumerate(documents):
        n = len(one.words) if kept is None else kept
        maps = np.stack(heads[number]) if heads is not None else np.full((1, n + 2, n + 2), 1 / (n + 2))
        forms = ("[CLS]", *(word.form for word in one.words[:n]), "[SEP]")
        annotation = Annotated(one).select(range(n))
        texts.append(Text(one.id, forms, (CLS, *[WORD] * n, SEP), maps[None], False, annotation))
    world = World(HeadLayout((Site("encoder", 0, texts[0].maps.shape[1], texts[0].maps.shape[1], "layer"),)), tuple(texts))
    measure = make(name, {"least": 1, **options})
    return {table: Table.of(columns) for table, columns in measure.tables(run(measure, world, [texts]), world.layout).items()}


def value(tables: dict[str, Table], name: str, quantity: str = "all", head: int = 1) -> float:
    """The accuracy of a head."""
    (found,) = tables[name].where(quantity=quantity, head=head)["value"]
    return float(found)


def rule(tables: dict[str, Table], name: str, rule: str, label: str = "all") -> float:
    """The accuracy of a rule."""
    (found,) = tables[f"{name}_rules"].where(rule=rule, label=label)["value"]
    return float(found)


def count(tables: dict[str, Table], name: str, what: str) -> int:
    """A count."""
    (found,) = tables[f"{name}_counts"].where(what=what)["n"]
    return int(found)
