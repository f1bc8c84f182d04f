"""The weights between the words of each sentence, and each word's favourites there, without the rest of the maps. A
word's favourites are the word that it attends to most and the word that attends to it most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.transfer import to_device
from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int

    from headscope.core.batch import TokenMaps
    from headscope.core.rows import AttentionScores
    from headscope.measures.weights.words import WordIndex

LONGEST = 128  # the most tokens of a sentence that one program of a GPU handles
HELD = 1 << 24  # numbers of weights that the plain form holds at once
SIZES = (32, LONGEST)  # sentences of up to this many tokens are processed together, longer ones by powers of 2


@dataclass(frozen=True)
class SentenceBlock:
    """Some sentences: the text of each, its tokens, and its words by their tokens, counted from its first."""

    text: Int[torch.Tensor, "sentence"]
    first: Int[torch.Tensor, "sentence"]  # the place in the text of the sentence's first token
    sizes: Int[torch.Tensor, "sentence"]  # the number of its tokens
    longest: int  # the largest of the sizes
    rows: Int[torch.Tensor, "side sentence word"]
    columns: Int[torch.Tensor, "side sentence word"]
    words: Bool[torch.Tensor, "sentence word"]
    place: Int[torch.Tensor, "sentence word"]  # of words in the word maps of their texts
    counts: Int[torch.Tensor, "sentence"]  # of words

    @cached_property
    def inside(self) -> Bool[torch.Tensor, "sentence position"]:
        """Whether each position is within the sentence."""
        import torch

        return torch.arange(self.longest, device=self.sizes.device) < self.sizes[:, None]

    @cached_property
    def token(self) -> Int[torch.Tensor, "sentence position"]:
        """The place in the text of each token; beyond the sentence, that of its first token."""
        import torch

        return self.first[:, None] + torch.arange(self.longest, device=self.sizes.device) * self.inside

    def put(self, chosen: Int[torch.Tensor, "direction batch head position"], tokens: TokenMaps) -> None:
        """Write the favourites of the words of these sentences into `chosen`."""
        import torch

        if chosen.is_cuda and self.longest <= LONGEST and (fast := kernel("sentences_cuda")) is not None:
            scores = tokens.scores
            parts = None if scores is None else (scores.query, scores.key, scores.logs, scores.scale)
            reach = (None, None) if scores is None else (scores.reach.before, scores.reach.after)
            places = (self.text, self.first, self.rows, self.columns, self.place, self.counts)
            fast.favourites(chosen, tokens.weights, parts if tokens.weights is None else None, reach, *places, self.longest)
            return
        local = self._local(tokens)
        sentence, word = self.words.nonzero(as_tuple=True)
        picked = local[:, sentence, :, word]  # [word, direction, head]
        places_of = self.place[sentence[:, None, None], picked.clamp_min(0)]
        chosen[:, self.text[sentence], :, self.place[sentence, word]] = torch.where(picked >= 0, places_of, -1)

    def _local(self, tokens: TokenMaps) -> Int[torch.Tensor, "direction sentence head word"]:
        """The favourites, by their numbers in the sentence."""
        import torch

        if tokens.weights is not None:
            return self._favourites(self._of_maps(tokens.weights), tokens.longest)
        assert tokens.scores is not None, "there are neither maps nor scores"
        heads = torch.arange(tokens.scores.query.shape[1], device=tokens.scores.query.device)
        step = max(1, HELD // (len(self.text) * self.longest**2))
        parts = (self._of_scores(tokens.scores, heads[start : start + step]) for start in range(0, len(heads), step))
        return torch.cat([self._favourites(part, tokens.longest) for part in parts], 2)

    def _of_maps(self, weights: Float[torch.Tensor, "batch head query key"]) -> Float[torch.Tensor, "sentence head row column"]:
        blocks = weights[self.text[:, None, None], :, self.token[:, :, None], self.token[:, None, :]]
        return blocks.permute(0, 3, 1, 2).float()

    def _of_scores(self, scores: AttentionScores, heads: Int[torch.Tensor, "head"]) -> Float[torch.Tensor, "sentence head row column"]:
        """e^(score - log of the row), 0 where the row does not see the column."""
        text = self.text[:, None]
        of_heads = heads * scores.key.shape[1] // scores.query.shape[1]
        query = scores.query[:, heads][text, :, self.token].transpose(1, 2).float()
        key = scores.key[:, of_heads][text, :, self.token].transpose(1, 2).float()
        logs = scores.logs[:, heads][text, :, self.token].transpose(1, 2)
        weights = (query @ key.transpose(-1, -2) * scores.scale - logs[..., None]).exp()
        gap = self.token[:, None, :] - self.token[:, :, None]
        visible = self.inside[:, None, :] & self.inside[:, :, None]
        if scores.reach.before is not None:
            visible = visible & (gap >= -scores.reach.before)
        if scores.reach.after is not None:
            visible = visible & (gap <= scores.reach.after)
        return weights.masked_fill(~visible[:, None], 0)

    def _favourites(
        self, weights: Float[torch.Tensor, "sentence head row column"], longest: int
    ) -> Int[torch.Tensor, "direction sentence head word"]:
        """For each word, the other word that it attends to most and the one that attends to it most; -1 if there is no
        weight.
        """
        import torch

        others = self.words[:, :, None] & self.words[:, None, :] & ~torch.eye(self.words.shape[1], dtype=torch.bool, device=weights.device)
        between = self._between_words(weights, longest) * others[:, None]
        strongest = [between.max(axis) for axis in (-1, -2)]
        return torch.stack([where.masked_fill(most <= 0, -1) for most, where in strongest])

    def _between_words(
        self, weights: Float[torch.Tensor, "sentence head row column"], longest: int
    ) -> Float[torch.Tensor, "sentence head word word"]:
        """For each pair of words, the mean over the tokens of the attending word of the sum over those of the word
        attended to.
        """
        import torch

        if weights.is_cuda and (fast := kernel("words_cuda")) is not None:
            found: torch.Tensor = fast.word_map(weights, self.rows, self.columns, longest)
            return found
        token = torch.arange(weights.shape[-1], device=weights.device)
        member = [((token >= side[0][..., None]) & (token < side[1][..., None])).float() for side in (self.rows, self.columns)]
        share = member[0] / member[0].sum(-1, keepdim=True).clamp_min(1)
        return share[:, None] @ weights @ member[1].transpose(-1, -2)[:, None]


@dataclass(frozen=True)
class SentenceLayout:
    """The places of some sentences, independent of attention, with the fields of `SentenceBlock`."""

    text: Int[torch.Tensor, "sentence"]
    first: Int[torch.Tensor, "sentence"]
    sizes: Int[torch.Tensor, "sentence"]
    longest: int
    words: Bool[torch.Tensor, "sentence word"]
    place: Int[torch.Tensor, "sentence word"]

    def block(self, tokens: TokenMaps) -> SentenceBlock:
        """The sentences with the tokens of their words as rows and as columns."""
        bounds = (side[:, self.text[:, None], self.place] - self.first[:, None] for side in (tokens.rows, tokens.columns))
        rows, columns = ((side * self.words).contiguous() for side in bounds)
        return SentenceBlock(self.text, self.first, self.sizes, self.longest, rows, columns, self.words, self.place, self.words.sum(1))


def sentence_layouts(words: WordIndex, places: Int[np.ndarray, "side batch word"], device: torch.device) -> list[SentenceLayout]:
    """The sentences of a batch, grouped by length. `places` are the tokens of words that are attended to."""
    first_token, after_token = (side[words.text, words.place] for side in places)
    first_word, after = words.bounds()
    starts = np.flatnonzero(first_word == np.arange(len(first_word)))  # the first word of each sentence
    begin, size = first_token[starts], after_token[after[starts] - 1] - first_token[starts]
    bucket = np.searchsorted(SIZES, size)
    bucket = np.where(size > SIZES[-1], np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64), bucket)
    layouts = []
    for number in np.unique(bucket):
        chosen = bucket == number
        start = starts[chosen][:, None]
        count = after[starts[chosen]][:, None] - start
        there = np.arange(count.max()) < count
        place = words.place[start + np.arange(count.max()) * there]
        text, first, sizes = to_device(np.stack([words.text[start[:, 0]], begin[chosen], size[chosen]]), device)
        placed = (to_device(there, device), to_device(place, device))
        layouts.append(SentenceLayout(text, first, sizes, int(size[chosen].max()), *placed))
    return layouts
