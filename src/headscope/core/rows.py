"""Statistics of rows of attention that a kernel computes while it attends, so that no map is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int

Test = Callable[[str, int], bool]  # of a position's form and role
SINK, ENTROPY, LARGEST, FIRST = range(4)  # columns of statistics; those of groups and offsets follow


@dataclass(frozen=True)
class RowNeeds:
    """The statistics of a row that measures need: the weight on groups of keys, each a name and a test, and on keys at
    some offsets; the groups of rows over which these are summed, in addition to all rows of a text; whether measures
    need the weights between the words of each sentence; whether they need the scores of each layer, from which weights
    can be computed; and whether they compute all weights, which takes longer on a CPU than making maps.

    The entropy, the largest weight and the mass that a sink takes are always included.
    """

    groups: tuple[tuple[str, Test], ...] = ()
    offsets: tuple[int, ...] = ()
    rows: tuple[tuple[str, Test], ...] = ()
    sentences: bool = False
    scores: bool = False
    all_weights: bool = False

    def __or__(self, other: RowNeeds) -> RowNeeds:
        groups, rows = (
            tuple(sorted(dict((*one, *two)).items(), key=lambda item: item[0]))
            for one, two in ((self.groups, other.groups), (self.rows, other.rows))
        )
        offsets = tuple(sorted({*self.offsets, *other.offsets}))
        flags = (getattr(self, name) or getattr(other, name) for name in ("sentences", "scores", "all_weights"))
        return RowNeeds(groups, offsets, rows, *flags)

    @property
    def width(self) -> int:
        """The number of columns of statistics."""
        return FIRST + len(self.groups) + len(self.offsets)

    def column(self, what: str | int) -> int:
        """The column of a group, by its name, or of an offset."""
        if isinstance(what, int):
            return FIRST + len(self.groups) + self.offsets.index(what)
        return FIRST + [name for name, _ in self.groups].index(what)


@dataclass(frozen=True)
class RowSums:
    """Statistics summed over the rows of each text, and over those of each group of rows of `needs`.

    The statistics of a row are 1 minus its sum, the entropy of the row divided by its sum (in nats), its largest
    weight, and its weight on each group and at each offset of `needs`. Rows of padding are ignored.
    """

    needs: RowNeeds
    values: Float[torch.Tensor, "batch head rows statistic"]

    @classmethod
    def of(
        cls, needs: RowNeeds, values: Float[torch.Tensor, "batch head query statistic"], rows: Float[torch.Tensor, "batch rows query"]
    ) -> RowSums:
        """The sums of the statistics of rows, by one product; `rows` are all rows, and then those of each group."""
        by_row = values.transpose(1, 2)
        if by_row.is_contiguous():  # a GPU's kernel puts the heads of a row side by side
            sums = rows @ by_row.flatten(2)
            return cls(needs, sums.view(*sums.shape[:2], *by_row.shape[2:]).transpose(1, 2))
        return cls(needs, rows[:, None] @ values)

    def over(self, rows: str) -> Float[torch.Tensor, "batch head statistic"]:
        """The sums over a group of rows; `all` is the group of all rows."""
        place = 0 if rows == "all" else 1 + [name for name, _ in self.needs.rows].index(rows)
        return self.values[:, :, place]


class RowRequest(NamedTuple):
    """What a pass computes of the rows of a site without making its maps: the weight on groups of keys, which the
    members of each group form, and on keys at some offsets; and the single weights of each row on a span of keys, from
    the first up to, but not including, the second.
    """

    members: Float[torch.Tensor, "batch key group"]
    offsets: tuple[int, ...] = ()
    spans: Int[torch.Tensor, "side batch query"] | None = None


class SpanWeights(NamedTuple):
    """The weights of each row on the keys of its span, 0 beyond it, and the first of these keys."""

    weights: Float[torch.Tensor, "batch head query width"]
    first: Int[torch.Tensor, "batch query"]


@dataclass(frozen=True)
class Reach:
    """Which keys a row may attend to: at most `before` positions back and `after` ahead; None is without limit."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True)
class AttentionScores:
    """What attention weights are computed from: queries, keys, their scale, the positions that rows can see, the
    numbers of rows and keys of each text without padding, and the log-sum-exp of each row. The weight of a pair it can
    see is e^(score - log). `value` has the value vectors, except for a constructed baseline such as even attention.
    `spans` are the weights that the pass itself computed, if they were requested and there is a kernel for them.
    """

    query: Float[torch.Tensor, "batch head query d"]
    key: Float[torch.Tensor, "batch kv_head key d"]
    scale: float
    reach: Reach
    lengths: tuple[Int[torch.Tensor, "batch"], Int[torch.Tensor, "batch"]]
    logs: Float[torch.Tensor, "batch head query"]
    value: Float[torch.Tensor, "batch kv_head key d"] | None = None
    spans: SpanWeights | None = None
