"""Small random worlds for the laws of measures: texts with random attention, and a plain way to run measures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray

from headscope.core.annotation import Annotated, Annotation
from headscope.core.batch import CLS, SEP, WORD, MapBatch, stack
from headscope.core.document import PASSAGE, Document, Edge, Mention, Sentence, Word
from headscope.core.heads import HeadLayout, Kind, Site
from headscope.core.slices import NO_VALUE, numbers_of
from headscope.core.state import State
from headscope.measures import Measure
from headscope.stats.bootstrap import poisson_weights

FORMS = ("the", "cat", ".", "'s", "sat", "A", "he", "She")
SLICES_OF = ("a/b@ é", NO_VALUE, "a/b@ é")  # the slice of each document, by its number


@dataclass(frozen=True)
class Text:
    """A text of n positions with maps [layer, head, n, n]. `annotation` covers the positions that are words."""

    document: str
    forms: tuple[str, ...]
    roles: tuple[int, ...]
    maps: NDArray[np.float64]
    causal: bool
    annotation: Annotation


@dataclass(frozen=True)
class World:
    """Texts of one model."""

    layout: HeadLayout
    texts: tuple[Text, ...]


def softmax_maps(rng: np.random.Generator, shape: tuple[int, ...], causal: bool) -> NDArray[np.float64]:
    """Random maps whose rows sum to 1. Some weights are exactly zero, so some rows are one-hot."""
    logits = rng.normal(0, 3, shape)
    n = shape[-1]
    logits[rng.random(shape) < 0.1] = -np.inf
    logits[..., np.arange(n), np.arange(n)] = np.maximum(logits[..., np.arange(n), np.arange(n)], -1)
    if causal:
        logits = np.where(np.tri(n, dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    causal = draw(st.booleans())
    kind: Kind = "decoder" if causal else "encoder"
    heads = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    layout = HeadLayout(tuple(Site(kind, layer, h, h, f"layer.{layer}") for layer, h in enumerate(heads)))
    texts = []
    for number in range(draw(st.integers(1, 6))):
        words = draw(st.integers(1, 7))
        body = [FORMS[i] for i in rng.integers(0, len(FORMS), words)]
        special = draw(st.sampled_from(["none", "both", "start", "two"]))
        forms, roles = body, [WORD] * words
        if special != "none":
            forms, roles = ["[CLS]", *forms], [CLS, *roles]
        if special in ("both", "two"):
            forms, roles = [*forms, "[SEP]"], [*roles, SEP]
        if special == "two":
            forms, roles = [*forms, "x", "[SEP]"], [*roles, WORD, SEP]
        n = len(forms)
        maps = np.zeros((len(heads), max(heads), n, n))
        for layer, h in enumerate(heads):
            maps[layer, :h] = softmax_maps(rng, (h, n, n), causal)
        own = [form for form, role in zip(forms, roles, strict=True) if role == WORD]
        annotation = replace(annotated(rng, f"doc{number // 2}", own), slice=SLICES_OF[number // 2])
        texts.append(Text(f"doc{number // 2}", tuple(forms), tuple(roles), maps, causal, annotation))
    return World(layout, tuple(texts))


def annotated(rng: np.random.Generator, document: str, forms: Sequence[str]) -> Annotation:
    """One or two sentences with random heads, relations and mentions. The heads need not form trees: measures must not
    rely on trees.

    The document has one more word, which the text does not contain. It may be a mention, too.
    """
    cut = int(rng.integers(1, len(forms) + 1))
    sentences = []
    for part in (forms[:cut], forms[cut:]):
        words = []
        for form in part:
            head = int(rng.integers(0, len(part) + 1))
            relation = "root" if head == 0 else str(rng.choice(["nsubj", "nsubj:pass", "poss", "punct"]))
            annotates = rng.random() < 0.9
            upos = "PRON" if form in ("he", "She") else str(rng.choice(["NOUN", "PROPN", "PUNCT"]))
            words.append(Word(form, upos=upos, head=head if annotates else None, relation=relation))
        sentences.append(Sentence(tuple(words)))
    sentences.append(Sentence((Word("beyond"),)))
    mentions = [Mention("a", len(forms), len(forms) + 1)] * int(rng.integers(0, 2))
    for _ in range(int(rng.integers(0, 13))):
        start = int(rng.integers(0, len(forms)))
        end = int(rng.integers(start + 1, min(start + 3, len(forms) + 1) + 1))  # may reach beyond the text
        mentions.append(Mention(str(rng.choice(["a", "b", "c", "d"])), start, end))
    subset = [None, "pro", "anti"][int(rng.integers(0, 3))]
    keywords = [bool(key) for key in rng.random(len(forms) + 1) < 0.4] if rng.random() < 0.8 else []
    edges = []
    for _ in range(int(rng.integers(0, 3))):  # a span may reach beyond the text
        (first, second) = ((int(start), int(start + rng.integers(1, 4))) for start in rng.integers(0, len(forms), 2))
        edges.append(Edge(PASSAGE, ("gold",), first, second))
    whole = Document(document, tuple(sentences), tuple(mentions), subset=subset, edges=tuple(edges))
    return Annotated(whole, (), keywords).select(range(len(forms)))


def run(measure: Measure, world: World, batches: Iterable[Sequence[Text]], replicates: int = 8, divided: bool = False) -> State:
    """The state after all batches of texts, padded with zeros as by the runner; if `divided`, divided by slice."""
    state = measure.start(world.layout, replicates)
    if divided:
        state.divide(lambda: measure.start(world.layout, replicates))
    weigh = partial(poisson_weights, replicates=replicates)
    for batch in batches:
        side = stack([text.forms for text in batch], [text.roles for text in batch], [text.annotation for text in batch])
        shared: dict[Hashable, Any] = {}
        for index, site in enumerate(world.layout.sites):
            padded = np.zeros((len(batch), site.heads, side.width, side.width), dtype=np.float32)
            for row, text in enumerate(batch):
                n = len(text.forms)
                padded[row, :, :n, :n] = text.maps[index, : site.heads]
            documents = tuple(text.document for text in batch)
            maps = torch.from_numpy(padded)
            slices = numbers_of(text.annotation.slice for text in batch)
            shown = MapBatch(index, world.layout, maps, side, side, weigh, shared=shared, documents=documents, slices=slices)
            measure.update(state, shown)
    return state


def one_by_one(texts: Sequence[Text]) -> list[list[Text]]:
    return [[text] for text in texts]
