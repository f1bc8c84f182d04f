"""The one word-level map: from attention between tokens to attention between words (Clark et al. §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD, Side, stack
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class WordGroups:
    """Which word each token of a batch belongs to; a special token is a group of its own, padding belongs to none
    (-1).
    """

    side: Side
    of: Int[torch.Tensor, "batch token"]

    @classmethod
    def build(cls, texts: Sequence[Encoded], device: torch.device) -> WordGroups:
        """The groups of each text, in order."""
        import torch

        width = max(map(len, texts))
        of = torch.full((len(texts), width), -1)
        forms, roles = [], []
        for row, text in enumerate(texts):
            groups, form, role = group(text.word_of, text.roles, [word.form for word in text.words], text.pieces)
            of[row, : len(text)] = torch.tensor(groups)
            forms.append(form)
            roles.append(role)
        return cls(stack(forms, roles, [text.annotation for text in texts]), of.to(device))

    def part(self, start: int, stop: int) -> tuple[WordGroups, int, int]:
        """The groups of words `start` to `stop` alone, over the stretch of tokens that holds them: from which token,
        to which.
        """
        import torch

        inside = (self.of >= start) & (self.of < stop)
        tokens = inside.any(0).nonzero()[:, 0]
        first, end = (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else (0, 0)
        of = torch.where(inside, self.of - start, -1)[:, first:end]
        return WordGroups(Side(self.side.positions[:, start:stop], self.side.kinds), of), first, end

    @cached_property
    def bounds(self) -> Int[torch.Tensor, "side batch word"]:
        """The first token of each word, and the first one after it; twice 0 for what is padding."""
        import torch

        counts = torch.zeros((len(self.of), self.side.width + 1), dtype=torch.int64, device=self.of.device)
        counts = counts.scatter_add_(1, self.of + 1, torch.ones_like(self.of))[:, 1:]
        before = (self.of >= 0).int().argmax(1, keepdim=True)  # tokens of no word that come first
        ends = (counts.cumsum(1) + before) * (counts > 0)
        return torch.stack([ends - counts, ends])

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest word."""
        return int((self.bounds[1] - self.bounds[0]).max())

    @cached_property
    def member(self) -> Float[torch.Tensor, "batch token word"]:
        """1 where a token belongs to a word. Kept, since every layer asks again."""
        import torch

        return torch.nn.functional.one_hot(self.of + 1, self.side.width + 1)[..., 1:].to(torch.float32)

    @cached_property
    def share(self) -> Float[torch.Tensor, "batch word token"]:
        """What part of a word a token is: the matrix that averages over a word's tokens."""
        return (self.member / self.member.sum(1, keepdim=True).clamp_min(1)).transpose(1, 2)


def group(
    word_of: Sequence[int], roles: Sequence[int], words: Sequence[str], pieces: Sequence[str]
) -> tuple[list[int], list[str], list[int]]:
    """For each token the number of its group, and for each group its form and role; groups follow the order of the
    text.
    """
    of = np.array(word_of, dtype=np.int64)
    begins = np.ones(len(of), dtype=bool)
    begins[1:] = (of[1:] < 0) | (of[1:] != of[:-1])
    places = np.flatnonzero(begins).tolist()
    firsts = [word_of[place] for place in places]
    forms = [pieces[place] if word < 0 else words[word] for place, word in zip(places, firsts, strict=True)]
    kinds = [roles[place] if word < 0 else WORD for place, word in zip(places, firsts, strict=True)]
    return (np.cumsum(begins) - 1).tolist(), forms, kinds


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


def _compiled(
    weights: Float[torch.Tensor, "batch head query key"], queries: WordGroups, keys: WordGroups, rows: Rows
) -> Float[torch.Tensor, "batch head queryword keyword"] | None:
    """By a compiled loop, where there is one."""
    import torch

    attending = queries.bounds
    if rows == "first":
        attending = torch.stack([attending[0], torch.minimum(attending[0] + 1, attending[1])])
    if weights.is_cuda and (fast := kernel("words_cuda")) is not None:
        found: torch.Tensor = fast.word_map(weights, attending, keys.bounds, keys.longest)
        return found
    if weights.device.type == "cpu" and weights.dtype == torch.float32 and (fast := kernel("words_cpu")) is not None:
        arrays = (weights.contiguous().numpy(), attending.numpy(), keys.bounds.numpy())
        return torch.from_numpy(fast.word_map(*arrays, torch.get_num_threads()))
    return None


def plain_word_map(
    weights: Float[torch.Tensor, "batch head query key"], queries: WordGroups, keys: WordGroups, rows: Rows = "mean"
) -> Float[torch.Tensor, "batch head queryword keyword"]:
    """The same by products of matrices: the form for other devices, and the second opinion of the compiled ones."""
    import torch

    size, heads, tokens, columns = weights.shape
    # Heads are laid side by side: one product a text, which is faster than one a head.
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
