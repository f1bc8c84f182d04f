"""The probes: for each word a score per candidate governor. Seeds are trained in parallel and independently."""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from headscope.kernels import kernel
from headscope.studies.attention_probe.maps import SPECIALS, UNSCORED, SentenceBatch
from headscope.studies.attention_probe.spec import Alignment, Root

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Scores = Float[torch.Tensor, "text word seed 1+word"]

HIDDEN, DISTANCES = 256, 8


class Probe(nn.Module, ABC):
    """The base of all probes: seeds, initial weights and the loss. `rate` suits batches of 32 sentences."""

    rate: ClassVar[float] = 0.002

    @property
    def each(self) -> int:
        """About how many numbers the probe needs at once for a pair of words."""
        return 4 * len(self.seeds)

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        self.seeds = tuple(seeds)

    def _drawn(self, name: str, shape: Sequence[int], limit: float) -> nn.Parameter:
        """Uniform in [-limit, limit], by seed and name alone, so that a seed always means the same weights."""
        drawn = []
        for seed in self.seeds:
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{type(self).__name__}/{name}".encode()))
            drawn.append((2 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1) * limit)
        return nn.Parameter(torch.stack(drawn).float())

    def _constant(self, shape: Sequence[int], value: float = 0.0) -> nn.Parameter:
        return nn.Parameter(torch.full((len(self.seeds), *shape), value))

    @abstractmethod
    def scores(self, batch: SentenceBatch) -> Scores:
        """The score of each candidate; scores of padding are arbitrary."""

    def forward(self, batch: SentenceBatch) -> Scores:
        """The score of each candidate, -inf for padding."""
        return self.scores(batch).masked_fill(~batch.candidates[:, None, None, :], -math.inf)

    def losses(self, batch: SentenceBatch) -> Float[torch.Tensor, "seed"]:
        """The sum over words of the cross-entropy with their governors."""
        scored = batch.gold != UNSCORED
        logits = self(batch)[scored]  # [word, seed, candidate]
        each = logits.logsumexp(-1) - logits.gather(-1, batch.gold[scored][:, None, None].expand(-1, len(self.seeds), 1))[..., 0]
        total: torch.Tensor = each.sum(0)
        return total

    @torch.no_grad()
    def found(self, batch: SentenceBatch) -> Int[torch.Tensor, "text word seed"]:
        """The best candidate of each word; the first of equal ones."""
        best: torch.Tensor = self(batch).argmax(-1)
        return best


class _Rooted(Probe):
    """A probe of attention. Each map is multiplied by its `scale`.

    The score of the root is a weighted sum of the scores of the start and of the end of the text. If `root` is
    `separate`, it has separate weights for all heads at the start and at the end, and a constant.
    """

    scale: torch.Tensor

    def __init__(self, seeds: Sequence[int], maps: int, root: Root, scale: Float[torch.Tensor, "k"] | None = None) -> None:
        super().__init__(seeds)
        self.maps, self.root = maps, root
        self.register_buffer("scale", torch.ones(maps) if scale is None else scale)
        if root == "shared":
            self.ends = self._constant((SPECIALS,), 1.0)
        else:
            self.ends = self._drawn("ends", (SPECIALS, maps), math.sqrt(6 / (2 * maps)))
            self.at_root = self._constant(())

    def _with_root(self, scores: Float[torch.Tensor, "text position position seed"], batch: SentenceBatch) -> Scores:
        """The scores of candidates (the root first, then the words) for each word, from the scores of positions."""
        scores = scores[:, SPECIALS:]
        if self.root == "shared":
            root = (scores[:, :, :SPECIALS] * self.ends.T).sum(2)
        else:
            ends = torch.cat([batch.given[:, SPECIALS:, :SPECIALS], batch.given[:, :SPECIALS, SPECIALS:].transpose(1, 2)], -1)
            root = torch.einsum("biek,sek->bis", ends, self.ends * self.scale) + self.at_root
        return torch.cat([root[:, :, None], scores[:, :, SPECIALS:]], 2).transpose(2, 3)


class AttentionProbe(_Rooted):
    """One weight per head and direction: a candidate's score is the weighted sum of attention from and to it."""

    rate = 1.0

    def __init__(self, seeds: Sequence[int], maps: int, root: Root = "shared", scale: torch.Tensor | None = None) -> None:
        super().__init__(seeds, maps, root, scale)
        self.weight = self._drawn("weight", (maps,), math.sqrt(6 / (2 * maps)))

    def scores(self, batch: SentenceBatch) -> Scores:
        """See Probe."""
        seeds, heads = len(self.seeds), self.maps // 2
        weights = (self.weight * self.scale).view(seeds, 2, heads).transpose(0, 1).reshape(2 * seeds, heads)
        met = nn.functional.linear(batch.given, weights)  # [text, position, position, direction * seed]
        return self._with_root(met[..., :seeds] + met[..., seeds:].transpose(1, 2), batch)

    def losses(self, batch: SentenceBatch) -> Float[torch.Tensor, "seed"]:
        """See Probe; with a compiled kernel if there is one."""
        plain = self.root != "shared" or self.weight.device.type != "cpu" or self.weight.dtype != torch.float32
        if plain or not torch.is_grad_enabled() or _fast() is None:
            return super().losses(batch)
        weights = (self.weight * self.scale).view(len(self.seeds), 2, -1)
        losses: torch.Tensor = _Learnt.apply(batch, weights, self.ends)  # type: ignore[no-untyped-call]
        return losses


class _Learnt(torch.autograd.Function):
    """The losses of the simplest probe, with gradients that are computed along with them, sentence by sentence."""

    @staticmethod
    def forward(ctx: Any, batch: SentenceBatch, weights: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        assert batch.maps is not None
        learn = _fast()
        assert learn is not None
        losses, slopes, end_slopes = torch.zeros(len(ends)), torch.zeros_like(weights), torch.zeros_like(ends)
        inputs = [tensor.detach().numpy() for tensor in (weights, ends)]
        outputs = [tensor.numpy() for tensor in (losses, slopes, end_slopes)]
        gold = batch.gold.numpy()
        for row, maps in enumerate(batch.maps):
            learn(maps.numpy(), *inputs, gold[row, : len(maps) - SPECIALS], *outputs)
        ctx.save_for_backward(slopes, end_slopes)
        return losses

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        weights, ends = ctx.saved_tensors
        return None, slopes[0][:, None, None] * weights, slopes[0][:, None] * ends


def _fast() -> Callable[..., None] | None:
    module = kernel("probe_cpu")
    return None if module is None else module.learn


class Vectors(nn.Module):
    """A table of word vectors for all seeds: frozen, or learned per seed. Row 0, that of the root, is all zeros."""

    table: torch.Tensor | None

    def __init__(self, table: Float[torch.Tensor, "row d"] | None, learned: nn.Parameter | None = None) -> None:
        super().__init__()
        self.register_buffer("table", table)
        self.learned = learned  # [seed, row, d]

    @property
    def size(self) -> int:
        """Numbers per vector."""
        vectors = self.table if self.learned is None else self.learned
        assert vectors is not None
        return vectors.shape[-1]

    def of(self, forms: Int[torch.Tensor, "text place"]) -> Float[torch.Tensor, "*seed text place d"]:
        """The vectors of words; with an axis of seeds if they are learned."""
        if self.learned is not None:
            return self.learned[:, forms] * (forms > 0)[..., None]
        assert self.table is not None
        return self.table[forms]


def candidates_of(forms: Int[torch.Tensor, "text word"], alignment: Alignment) -> Int[torch.Tensor, "text 1+word"]:
    """The word whose vector each candidate has. The released code put the root's vector last, but its score first:
    candidate j, the j-th word, had the vector of the word after it, and the root that of the first word.
    """
    if alignment == "fixed":
        return nn.functional.pad(forms, (1, 0))
    return nn.functional.pad(forms, (0, 1))


class AttentionWordsProbe(_Rooted):
    """A weight for each head and direction that depends on both words: U_k · [v_i ; v_j] + b_k."""

    rate = 0.03

    def __init__(
        self,
        seeds: Sequence[int],
        maps: int,
        vectors: Vectors,
        root: Root = "shared",
        scale: torch.Tensor | None = None,
        alignment: Alignment = "fixed",
        bias: bool = True,
    ) -> None:
        super().__init__(seeds, maps, root, scale)
        self.vectors, self.alignment = vectors, alignment
        limit = math.sqrt(6 / (2 * vectors.size + maps))
        self.own = self._drawn("own", (maps, vectors.size), limit)
        self.other = self._drawn("other", (maps, vectors.size), limit)
        self.bias = self._constant((maps,)) if bias else None

    @property
    def each(self) -> int:
        """See Probe."""
        return self.maps

    def weights(
        self, batch: SentenceBatch
    ) -> tuple[Float[torch.Tensor, "text position seed k"], Float[torch.Tensor, "text position seed k"]]:
        """What each position adds to the weights: as the word in question, with the bias, and as the candidate."""
        forms = nn.functional.pad(batch.forms, (SPECIALS, 0))
        candidates = candidates_of(batch.forms, self.alignment)
        other = torch.cat([candidates[:, :1], candidates], 1)  # start and end both are the root
        mine, theirs = _weighed(self.vectors.of(forms), self.own), _weighed(self.vectors.of(other), self.other)
        if self.bias is not None:
            mine = mine + self.bias
        return mine * self.scale, theirs * self.scale

    def scores(self, batch: SentenceBatch) -> Scores:
        """See Probe. The weights of a candidate multiply the maps at its position, where directions are swapped."""
        seeds, heads = len(self.seeds), self.maps // 2
        mine, theirs = self.weights(batch)
        both = torch.cat([mine, theirs.roll(heads, -1)], 2).transpose(2, 3)  # [text, position, k, 2 seed]
        met = batch.given @ both[:, :, :heads] + batch.back @ both[:, :, heads:]
        return self._with_root(met[..., :seeds] + met[..., seeds:].transpose(1, 2), batch)


def _weighed(vectors: torch.Tensor, weights: Float[torch.Tensor, "seed k d"]) -> Float[torch.Tensor, "text place seed k"]:
    return torch.einsum("sbpd,skd->bpsk" if vectors.dim() == 4 else "bpd,skd->bpsk", vectors, weights)


class WordsDistancesProbe(Probe):
    """A probe of words and distances without attention: [v_i ; v_j ; distances] through one hidden layer (tanh)."""

    rate = 0.01

    def __init__(self, seeds: Sequence[int], vectors: Vectors, alignment: Alignment = "fixed", hidden: int = HIDDEN) -> None:
        super().__init__(seeds)
        self.vectors, self.alignment = vectors, alignment
        limit = math.sqrt(6 / (2 * vectors.size + DISTANCES + hidden))
        self.own = self._drawn("own", (hidden, vectors.size), limit)
        self.other = self._drawn("other", (hidden, vectors.size), limit)
        self.apart = self._drawn("apart", (hidden, DISTANCES), limit)
        self.bias = self._constant((hidden,))
        self.out = self._drawn("out", (hidden,), math.sqrt(6 / (hidden + 1)))

    @property
    def each(self) -> int:
        """See Probe."""
        return 2 * self.out.shape[1]

    def scores(self, batch: SentenceBatch) -> Scores:
        """See Probe."""
        mine = _weighed(self.vectors.of(batch.forms), self.own)
        theirs = _weighed(self.vectors.of(candidates_of(batch.forms, self.alignment)), self.other)
        apart = distances(batch.sizes, batch.gold.shape[1])
        scores = []
        for seed in range(len(self.seeds)):  # one after the other: the hidden layer is large
            near = apart @ self.apart[seed].T + self.bias[seed]
            hidden = (near + mine[:, :, None, seed] + theirs[:, None, :, seed]).tanh()  # [text, word, candidate, hidden]
            scores.append(hidden @ self.out[seed])
        return torch.stack(scores, 2)


def distances(sizes: Int[torch.Tensor, "text"], width: int) -> Float[torch.Tensor, "text word 1+word 8"]:
    """Distance ahead and behind in sentence lengths; whether the candidate is the word, 1 or 2 away, or the root."""
    place = torch.arange(width, device=sizes.device)
    offset = place[None, :] - place[:, None]
    share = offset[None] / sizes[:, None, None]
    near = [(offset == step).expand(len(sizes), -1, -1) for step in (0, -1, 1, -2, 2)]
    words = torch.stack([share.clamp_min(0), (-share).clamp_min(0), *near, torch.zeros_like(share)], -1).float()
    root = torch.zeros(len(sizes), width, 1, DISTANCES, device=sizes.device)
    root[..., -1] = 1
    return torch.cat([root, words], 2)
