"""The documents that have keyphrases, and the received attention, the place and the rarity of each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.batch import IS_WORD
from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.words import WordGroups, word_map
from headscope.errors import RunError
from headscope.results.counts import Counts
from headscope.stats.classification import phrase_kinds
from headscope.studies.keywords.spec import KeywordSpec, Source
from headscope.studies.picking import picked

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float32, Float64, Int64

    from headscope.engine.shards import Progress
    from headscope.models.model import Model

How = Literal["mean", "max"]
HOWS: tuple[How, ...] = get_args(How)


@dataclass(frozen=True)
class Words:
    """The words of some texts, one text after the other. `received` is attention, by kind of summary and head."""

    texts: tuple[Encoded, ...]
    received: Float32[np.ndarray, "word how head"]

    @cached_property
    def text_of(self) -> Int64[np.ndarray, "word"]:
        """The number of each word's text."""
        return np.repeat(np.arange(len(self.texts)), [len(text.words) for text in self.texts])

    @cached_property
    def kinds(self) -> Int64[np.ndarray, "word"]:
        """Whether each word begins a keyphrase, is inside one, or is outside."""
        return phrase_kinds(tag or "O" for text in self.texts for tag in text.tags)

    @property
    def keys(self) -> Bool[np.ndarray, "word"]:
        """Whether each word is part of a keyphrase."""
        keys: Bool[np.ndarray, "word"] = self.kinds > 0
        return keys

    @property
    def documents(self) -> list[str]:
        """The document of each text."""
        return [text.document for text in self.texts]

    def some(self, chosen: Bool[np.ndarray, "text"]) -> Words:
        """The words of some of the texts."""
        texts = tuple(text for text, wanted in zip(self.texts, chosen, strict=True) if wanted)
        return Words(texts, self.received[chosen[self.text_of]])

    @cached_property
    def places(self) -> Float64[np.ndarray, "word 2"]:
        """The place of each word: as a share of the text, and the logarithm of its number."""
        numbers = np.concatenate([np.arange(len(text.words)) for text in self.texts])
        sizes = np.array([len(text.words) for text in self.texts])[self.text_of]
        return np.stack([numbers / np.maximum(sizes, 1), np.log1p(numbers)], 1)

    def rarity(self, known: Rarity) -> Float64[np.ndarray, "word 1"]:
        """(1 + log of a word's count in its text) times its rarity in other texts; 0 for punctuation."""
        values = []
        for text in self.texts:
            forms = [word.form.casefold() for word in text.words]
            times = Counter(forms)
            values += [(1 + np.log(times[form])) * known.of(form) if any(map(str.isalnum, form)) else 0.0 for form in forms]
        return np.array(values, dtype=np.float64)[:, None]


@dataclass(frozen=True)
class Rarity:
    """In how many texts each form occurs."""

    texts: int
    holding: Counter[str]

    @classmethod
    def learnt(cls, words: Words) -> Rarity:
        """The rarity of forms in these texts."""
        return cls(len(words.texts), Counter(form for text in words.texts for form in {word.form.casefold() for word in text.words}))

    def of(self, form: str) -> float:
        """The logarithm of (1 + texts) / (1 + texts with the form)."""
        return float(np.log((1 + self.texts) / (1 + self.holding[form])))


def read_words(
    model: Model,
    texts: Sequence[Encoded],
    source: Source = "all",
    batch_tokens: int = 4096,
    limit_bytes: int = 4 << 30,
    progress: Progress | None = None,
) -> Words:
    """All words of the texts with the attention that they receive; in encoder-decoders from the encoder's heads."""
    import torch

    sites = [number for number, site in enumerate(model.sites) if site.kind in ("encoder", "decoder")]
    kinds = {model.sites[number].kind for number in sites}
    chosen = [number for number in sites if model.sites[number].kind == ("encoder" if "encoder" in kinds else "decoder")]
    heads = sum(model.sites[number].heads for number in chosen)
    starts = np.concatenate([[0], np.cumsum([len(text.words) for text in texts])])
    need = int(starts[-1]) * heads * len(HOWS) * 4
    if need > limit_bytes:
        raise RunError(
            f"the attention that {starts[-1]:,} words receive from {heads} heads takes {need / 2**30:.1f} GiB, and the limit is "
            f"{limit_bytes / 2**30:.1f} GiB",
            "Use fewer documents with --limit",
        )
    received = np.zeros((int(starts[-1]), len(HOWS), heads), dtype=np.float32)
    place = {id(text): number for number, text in enumerate(texts)}
    seen = tokens = 0
    for batch in batches(texts, batch_tokens):
        groups = WordGroups.build(batch, model.device)
        rows = torch.from_numpy(_rows(groups, source)).to(model.device)[:, None, :, None]
        streamed = torch.cat(_streamed(model, batch, groups, rows, chosen), 2).cpu().numpy()  # [how, text, head, word]
        words = groups.side.chosen("word", IS_WORD)
        for row, text in enumerate(batch):
            number = place[id(text)]
            received[starts[number] : starts[number + 1]] = streamed[:, row][:, :, np.flatnonzero(words[row])].transpose(2, 0, 1)
        seen += len(batch)
        tokens += sum(map(len, batch))
        if progress is not None:
            progress(seen / len(texts), seen, tokens)
    return Words(tuple(texts), received)


def _streamed(
    model: Model, batch: Sequence[Encoded], groups: WordGroups, rows: Bool[torch.Tensor, "text 1 row 1"], sites: Sequence[int]
) -> list[Float[torch.Tensor, "how text head word"]]:
    """The attention that words receive from each site."""
    import torch

    parts: list[torch.Tensor] = []

    def consume(index: int, weights: torch.Tensor, *_: object) -> None:
        parts.append(_received(word_map(weights.float(), groups, groups), rows))

    with torch.inference_mode():
        model.stream(model.inputs(batch), consume, frozenset(sites))
    return parts


def _rows(groups: WordGroups, source: Source) -> Bool[np.ndarray, "text row"]:
    from headscope.measures.groups import group

    name = {"all": "all", "cls": "cls", "words": "word"}[source]
    return groups.side.chosen(name, group(name))


def _received(
    maps: Float[torch.Tensor, "text head row word"], rows: Bool[torch.Tensor, "text 1 row 1"]
) -> Float[torch.Tensor, "how text head word"]:
    """The attention that a word receives: the mean over rows, and the maximum."""
    import torch

    from_rows = maps * rows
    return torch.stack([from_rows.sum(2) / rows.sum(2).clamp_min(1), from_rows.amax(2)])


def texts_with_keyphrases(corpus: Corpus, model: Model, spec: KeywordSpec, limit: int | None, counts: Counts) -> list[Encoded]:
    """One text per document with a keyphrase that the model can read, at most `limit`; others are counted."""
    length = min(spec.max_length, model.max_length or spec.max_length)
    encoder = Encoder(model.tokenizer, "document", length, "truncate", decoder_start=model.decoder_start, tags="keyphrases")
    texts, tally = [], counts.dropped
    for text in picked(encoder.texts(_located(corpus, tally), tally), limit, seed=spec.seed, tally=tally, corpus=corpus):
        if set(text.tags) <= {OUTSIDE}:
            tally.add("texts skipped whose keyphrases are all cut off", text.id)
        else:
            counts.add(text)
            texts.append(text)
    tally.update(corpus.skipped)
    if len({text.document for text in texts}) < 2:
        raise RunError(f"{len(texts)} documents have a keyphrase in their first {length} tokens", "Use a corpus with at least two")
    return texts


def _located(corpus: Corpus, tally: Tally) -> Iterator[Document]:
    """The documents that contain a keyphrase."""
    for document in corpus:
        if set(phrase_tags(document)) <= {OUTSIDE}:
            tally.add("texts without a keyphrase skipped", document.id)
        else:
            yield document
