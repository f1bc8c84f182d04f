"""The word map: attention between words from attention between tokens (Clark et al. §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import Side, TokenMaps, number_forms, pad
from headscope.core.rows import AttentionScores
from headscope.core.transfer import to_device
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded, TokenArrays
from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class WordGroups:
    """Which word each token of a batch belongs to; a special token is a separate group, padding belongs to none
    (-1).
    """

    side: Side
    of: Int[torch.Tensor, "batch token"]
    longest: int  # no word has more tokens
    places: Int[np.ndarray, "side batch word"]  # as `bounds`

    @classmethod
    def build(cls, texts: Sequence[Encoded], device: torch.device) -> WordGroups:
        """The groups of each text, in order."""
        roles = pad([text.arrays.group_roles for text in texts])
        of = pad([text.arrays.groups for text in texts])
        places = word_places(of, roles.shape[1])
        side = Side(roles, lambda: number_forms(roles, map(_forms, texts)), tuple(text.annotation for text in texts), places=places)
        return cls(side, to_device(of.astype(np.int64), device), int((places[1] - places[0]).max()), places)

    def part(self, start: int, stop: int) -> tuple[WordGroups, int, int]:
        """The groups of only the words `start` to `stop`, over the stretch of tokens that contains them, and its first
        and last token.
        """
        import torch

        inside = (self.of >= start) & (self.of < stop)
        tokens = inside.any(0).nonzero()[:, 0]
        first, end = (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else (0, 0)
        of = torch.where(inside, self.of - start, -1)[:, first:end]
        places = np.clip(self.places[:, :, start:stop] - first, 0, None)
        return WordGroups(self.side.part(start, stop), of, self.longest, places), first, end

    @cached_property
    def bounds(self) -> Int[torch.Tensor, "side batch word"]:
        """The first token of each word, and the first token after it; twice 0 for padding."""
        return to_device(self.places, self.of.device)

    @cached_property
    def firsts(self) -> Int[torch.Tensor, "side batch word"]:
        """As `bounds`, with words cut to their first token."""
        import torch

        return torch.stack([self.bounds[0], torch.minimum(self.bounds[0] + 1, self.bounds[1])])

    @cached_property
    def member(self) -> Float[torch.Tensor, "batch token word"]:
        """1 where a token belongs to a word. Cached, since every layer needs it."""
        import torch

        return torch.nn.functional.one_hot(self.of + 1, self.side.width + 1)[..., 1:].to(torch.float32)

    @cached_property
    def share(self) -> Float[torch.Tensor, "batch word token"]:
        """The matrix that averages over a word's tokens: the share of each token in its word."""
        return (self.member / self.member.sum(1, keepdim=True).clamp_min(1)).transpose(1, 2)


def word_places(of: Int[np.ndarray, "batch token"], width: int) -> Int[np.ndarray, "side batch word"]:
    """The first token of each word, and the first one after it, from the word of each token; twice 0 for padding."""
    # Groups and padding are counted from 1 and 0, those of each text after those of the texts before it.
    sizes = np.bincount((of + 1 + np.arange(len(of))[:, None] * (width + 1)).ravel(), minlength=len(of) * (width + 1))
    counts = sizes.reshape(len(of), -1)[:, 1:]
    ends = counts.cumsum(1) + (of >= 0).argmax(1)[:, None]  # tokens of no word may come first
    return np.stack([ends - counts, ends]) * (counts > 0)


def group(
    word_of: Sequence[int], roles: Sequence[int], words: Sequence[str], pieces: Sequence[str]
) -> tuple[list[int], list[str], list[int]]:
    """The number of each token's group, and the form and role of each group; groups follow the order of the text."""
    arrays = TokenArrays.of(roles, word_of)
    firsts = [(place, word_of[place]) for place in arrays.firsts.tolist()]
    forms = [pieces[place] if word < 0 else words[word] for place, word in firsts]
    return arrays.groups.tolist(), forms, arrays.group_roles.tolist()


def _forms(text: Encoded) -> list[str]:
    return group(text.word_of, text.roles, [word.form for word in text.words], text.pieces)[1]


def word_map(
    weights: Float[torch.Tensor, "batch head query key"], queries: WordGroups, keys: WordGroups, rows: Rows = "mean"
) -> Float[torch.Tensor, "batch head queryword keyword"]:
    """Attention between words: summed over the tokens attended to, and over the attending tokens the `mean`, the
    `first`, or the `max`.

    `max` takes the largest weight over a word's tokens and divides the row by its sum. Rows sum to 1 in each form.
    """
    if rows == "max" or (found := _compiled(weights, queries, keys, rows)) is None:
        return plain_word_map(weights, queries, keys, rows)
    return found


def token_maps(
    weights: Float[torch.Tensor, "batch head query key"] | None,
    queries: WordGroups,
    keys: WordGroups,
    rows: Rows,
    scores: AttentionScores | None = None,
) -> TokenMaps | None:
    """The token maps from which the word map is computed by sums and means; None for `max`."""
    if rows == "max":
        return None
    return TokenMaps(weights, queries.firsts if rows == "first" else queries.bounds, keys.bounds, keys.places, keys.longest, scores)


def _compiled(
    weights: Float[torch.Tensor, "batch head query key"], queries: WordGroups, keys: WordGroups, rows: Rows
) -> Float[torch.Tensor, "batch head queryword keyword"] | None:
    """The word map by a compiled loop; None if there is none."""
    import torch

    attending = queries.firsts if rows == "first" else queries.bounds
    if weights.is_cuda and (fast := kernel("words_cuda")) is not None:
        found: torch.Tensor = fast.word_map(weights, attending, keys.bounds, keys.longest)
        return found
    if weights.device.type == "cpu" and weights.dtype == torch.float32 and (fast := kernel("words_cpu")) is not None:
        arrays = (weights.contiguous().numpy(), attending.numpy(), keys.bounds.numpy())
        return torch.from_numpy(fast.word_map(*arrays))
    return None


def plain_word_map(
    weights: Float[torch.Tensor, "batch head query key"], queries: WordGroups, keys: WordGroups, rows: Rows = "mean"
) -> Float[torch.Tensor, "batch head queryword keyword"]:
    """The word map by products of matrices: the implementation for other devices, and the reference for tests of
    compiled ones.
    """
    import torch

    size, heads, tokens, columns = weights.shape
    # Heads are laid side by side: one product per text is faster than one per head.
    summed = torch.bmm(weights.reshape(size, heads * tokens, columns), keys.member).view(size, heads, tokens, -1)
    if rows == "mean":
        beside = summed.transpose(1, 2).reshape(size, tokens, -1)
        return torch.bmm(queries.share, beside).view(size, queries.side.width, heads, -1).transpose(1, 2)
    if rows == "first":
        first = queries.member * (queries.member.cumsum(1) == 1)
        return first.transpose(1, 2)[:, None] @ summed
    index = (queries.of % (queries.side.width + 1))[:, None, :, None].expand(-1, heads, -1, summed.shape[-1])
    most = summed.new_zeros(size, heads, queries.side.width + 1, summed.shape[-1]).scatter_reduce(2, index, summed, "amax")[:, :, :-1]
    return most / most.sum(-1, keepdim=True).clamp_min(torch.finfo(most.dtype).tiny)
