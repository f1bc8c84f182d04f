"""Pairs, neighbours, layers and redundancy from sums of divergences between heads, each with its replicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadId, HeadLayout, Kind
from headscope.core.state import State
from headscope.measures.base import Columns, Rows
from headscope.stats.bootstrap import group_weights
from headscope.stats.dissimilarity import layering
from headscope.stats.inference import Support, interval
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64

QUANTITIES = ("nearest", "own_layer", "other_layers")
PERMUTATIONS = 10_000
WORK = 1 << 21  # numbers processed at a time
_NUMBERS: dict[str, type] = {"value": np.float64, "low": np.float64, "high": np.float64}
_COUNTS: dict[str, type] = {"n": np.int64, "documents": np.int64}
_LAYER_COLUMNS: dict[str, type] = {"kind": object, "layer": np.int64, "quantity": object, **_NUMBERS, **_COUNTS, "baseline": np.float64}
_HEAD_COLUMNS: dict[str, type] = {"kind": object, "layer": np.int64, "head": np.int64, **_LAYER_COLUMNS, "neighbour": object}
_PAIR_COLUMNS: dict[str, type] = {"kind": object, "a": object, "b": object, **_NUMBERS, "error": np.float64, **_COUNTS}
_STRUCTURE_COLUMNS: dict[str, type] = {"kind": object, "quantity": object, **_NUMBERS, "p": np.float64, **_COUNTS}


@dataclass(frozen=True)
class Likeness:
    """The state of `distances` for a model's heads. Values are means over rows if `normalise`, else sums."""

    state: State
    layout: HeadLayout
    normalise: bool
    epsilons: tuple[float, ...]

    def tables(self) -> dict[str, Columns]:
        """The four tables."""
        heads, layers, pairs, structure = (Rows(columns) for columns in (_HEAD_COLUMNS, _LAYER_COLUMNS, _PAIR_COLUMNS, _STRUCTURE_COLUMNS))
        for one in self._kinds():
            one.add_heads(heads, layers)
            one.add_pairs(pairs)
            one.add_structure(structure, self.epsilons)
        return {
            "distances": heads.columns,
            "distances_layers": layers.columns,
            "distances_pairs": pairs.columns,
            "distances_structure": structure.columns,
        }

    def resampled(self) -> Iterator[Resampled]:
        """The quantities of every head with their replicates; NaN for heads that were not compared."""
        replicates = int(self.state["draws"][0])
        found = {
            name: Resampled(
                name,
                np.full((replicates + 1, self.layout.size), np.nan),
                Support(np.zeros(self.layout.size, dtype=np.int64), np.zeros(self.layout.size)),
                np.zeros(self.layout.size),
                partial(interval, within=(0, np.inf)),
            )
            for name in QUANTITIES
        }
        for one in self._kinds():
            for number, name in enumerate(QUANTITIES):
                values = one.by_head[:, number]
                defined = np.isfinite(values[0])
                found[name].values[:, one.heads] = values
                own = one.support.where(defined)
                found[name].support.documents[one.heads], found[name].support.effective[one.heads] = own.documents, own.effective
                found[name].n[one.heads] = np.where(defined, one.n, 0)
        yield from found.values()

    def expected(self) -> dict[str, Float64[np.ndarray, "head"]]:
        """The mean of all pairs of a head's kind."""
        mean = np.full(self.layout.size, np.nan)
        for one in self._kinds():
            mean[one.heads] = one.mean
        return {"own_layer": mean, "other_layers": mean}

    def _kinds(self) -> Iterator[_OneKind]:
        ids = self.layout.ids()
        for kind, heads in self.layout.by_kind().items():
            if f"sum/{kind}" in self.state.arrays and self.state[f"rows/{kind}"].sum():
                yield _OneKind(self.state, kind, np.array(heads), [ids[head] for head in heads], self.normalise)


@dataclass(frozen=True)
class _OneKind:
    """The heads of one kind."""

    state: State
    kind: Kind
    heads: Int64[np.ndarray, "head"]
    ids: Sequence[HeadId]
    normalise: bool

    @property
    def n(self) -> int:
        """The number of rows that were compared."""
        return int(self.state[f"looked/{self.kind}"].sum())

    @cached_property
    def support(self) -> Support:
        """The documents of the compared rows. Groups of them are resampled; states of runs before
        1.0 have groups only.
        """
        documents = self.state.arrays.get(f"documents/{self.kind}")
        return Support.in_groups(self.state[f"rows/{self.kind}"], None if documents is None else len(documents))

    @property
    def _counts(self) -> dict[str, int]:
        return {"n": self.n, "documents": int(self.support.documents)}

    @cached_property
    def _drawn(self) -> Float64[np.ndarray, "replicate+1 group"]:
        """The weight of each group: 1 on the data, then its weight in every replicate."""
        replicates, seed = (int(number) for number in self.state["draws"])
        number = len(self.state[f"rows/{self.kind}"])
        return np.concatenate([np.ones((1, number)), group_weights(replicates, seed, number)])

    @cached_property
    def _scale(self) -> Float64[np.ndarray, "replicate+1"]:
        """The factor that turns means over rows into sums; 1 if means are requested."""
        return np.ones(len(self._drawn)) if self.normalise else self._drawn @ self.state[f"rows/{self.kind}"]

    @cached_property
    def _weights(self) -> Float64[np.ndarray, "replicate+1 group"]:
        """The factors that turn the sums of groups into values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            weights: Float64[np.ndarray, "replicate+1 group"] = (
                self._drawn * (self._scale / (self._drawn @ self.state[f"rows/{self.kind}"]))[:, None]
            )
        return weights

    @cached_property
    def _layer_of(self) -> Int64[np.ndarray, "head"]:
        """For each head the number of its layer among the layers present."""
        return np.unique([id.layer for id in self.ids], return_inverse=True)[1]

    @cached_property
    def _member(self) -> Float64[np.ndarray, "head layer"]:
        member: Float64[np.ndarray, "head layer"] = np.eye(self._layer_of.max() + 1)[self._layer_of]
        return member

    @cached_property
    def matrix(self) -> Float64[np.ndarray, "head head"]:
        """The distances on the data."""
        matrix: Float64[np.ndarray, "head head"] = self._squares(slice(0, 1))[0]
        return matrix

    @cached_property
    def mean(self) -> float:
        """The mean over all pairs."""
        return float(self.matrix.sum() / (len(self.heads) * (len(self.heads) - 1)))

    def _squares(self, replicates: slice) -> Float64[np.ndarray, "replicate head head"]:
        with np.errstate(invalid="ignore"):
            pairs = self._weights[replicates] @ self.state[f"sum/{self.kind}"]
        square = np.zeros((len(pairs), len(self.heads), len(self.heads)))
        first, second = np.triu_indices(len(self.heads), 1)
        square[:, first, second] = square[:, second, first] = pairs
        return square

    @cached_property
    def _read(self) -> tuple[Float64[np.ndarray, "replicate+1 quantity head"], Float64[np.ndarray, "replicate+1 head layer"]]:
        """The quantities of each head in every replicate, and the sums of its distances to the heads of each layer."""
        step = max(1, WORK // len(self.heads) ** 2)
        sizes = self._member.sum(0)
        own = sizes[self._layer_of] - 1
        others = len(self.heads) - sizes[self._layer_of]
        quantities, sums = [], []
        for start in range(0, len(self._weights), step):
            square = self._squares(slice(start, start + step))
            by_layer = square @ self._member
            at_home = np.take_along_axis(by_layer, self._layer_of[None, :, None], 2)[..., 0]
            with np.errstate(invalid="ignore", divide="ignore"):
                means = at_home / own, (by_layer.sum(2) - at_home) / others
            square[:, range(len(self.heads)), range(len(self.heads))] = np.inf
            quantities.append(np.stack([square.min(2), *means], 1))
            sums.append(by_layer)
        return np.concatenate(quantities), np.concatenate(sums)

    @property
    def by_head(self) -> Float64[np.ndarray, "replicate+1 quantity head"]:
        """The quantities of each head, on the data and in every replicate; NaN if there is no other head in its layer,
        or none in other layers.
        """
        return self._read[0]

    def _interval(
        self,
        values: Float64[np.ndarray, "replicate+1 *shape"],
        usable: Bool[np.ndarray, "*shape"] | None = None,
        within: tuple[float, float] = (0, np.inf),
    ) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]:
        support = self.support if usable is None else self.support.where(usable)
        return interval(values[0], values[1:], support, within)

    def add_heads(self, heads: Rows, layers: Rows) -> None:
        """Add one row per head and quantity, and one row per layer and quantity."""
        far = self.matrix.copy()
        np.fill_diagonal(far, np.inf)
        neighbours = [str(self.ids[place]) for place in far.argmin(1)]
        layer_numbers = [int(number) + 1 for number in np.unique([id.layer for id in self.ids])]
        for number, quantity in enumerate(QUANTITIES):
            values = self.by_head[:, number]
            defined = np.isfinite(values[0])
            baseline = self.mean if quantity != "nearest" else np.nan
            low, high = self._interval(values, defined)
            chosen = np.flatnonzero(defined).tolist()
            heads.add(
                len(chosen),
                kind=self.kind,
                layer=[self.ids[head].layer + 1 for head in chosen],
                head=[self.ids[head].head + 1 for head in chosen],
                quantity=quantity,
                value=values[0, chosen],
                low=low[chosen],
                high=high[chosen],
                **self._counts,
                baseline=baseline,
                neighbour=[neighbours[head] if quantity == "nearest" else "" for head in chosen],
            )
            whole = np.array([defined[self._layer_of == layer].all() for layer in range(len(layer_numbers))])
            means = _means(values, self._member)
            low, high = self._interval(means, whole)
            kept = np.flatnonzero(whole).tolist()
            layers.add(
                len(kept),
                kind=self.kind,
                layer=[layer_numbers[layer] for layer in kept],
                quantity=quantity,
                value=means[0, kept],
                low=low[kept],
                high=high[kept],
                **self._counts,
                baseline=baseline,
            )

    def add_pairs(self, rows: Rows) -> None:
        """Add one row per pair, in the order of the state."""
        sums = self.state[f"sum/{self.kind}"]
        low, high = np.full((2, sums.shape[1]), np.nan)
        step = max(1, WORK // len(self._weights))
        with np.errstate(invalid="ignore"):
            for start in range(0, sums.shape[1], step):
                part = slice(start, start + step)
                low[part], high[part] = self._interval(self._weights @ sums[:, part])
        first, second = np.triu_indices(len(self.heads), 1)
        names = np.array([str(id) for id in self.ids], dtype=object)
        variance = self.state.arrays.get(f"variance/{self.kind}")
        error = np.nan if variance is None else np.sqrt(variance) / self.state[f"rows/{self.kind}"].sum() * self._scale[0]
        value = self.matrix[first, second]
        rows.add(len(first), kind=self.kind, a=names[first], b=names[second], value=value, low=low, high=high, error=error, **self._counts)

    def add_structure(self, rows: Rows, epsilons: Sequence[float]) -> None:
        """Add the structure in numbers: distances within and between layers, and how many heads
        have a near-duplicate.
        """
        sizes = self._member.sum(0)
        inside, all_pairs = (sizes * (sizes - 1)).sum(), len(self.heads) * (len(self.heads) - 1)
        by_layer = self._read[1]
        total = by_layer.sum((1, 2))
        own = (by_layer * self._member).sum((1, 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            within, between = own / inside, (total - own) / (all_pairs - inside)
        nearest = self.by_head[:, 0]
        found = {"all_pairs": total / all_pairs, "within_layers": within, "between_layers": between, "difference": between - within}
        found["nearest"] = nearest.mean(1)
        for epsilon in epsilons:
            known = np.isfinite(nearest[:, :1])
            found[f"redundant_{epsilon:g}"] = np.where(known, nearest < epsilon * self._scale[:, None], np.nan).sum(1)
        for quantity, values in found.items():
            if np.isfinite(values[0]):
                p = (
                    layering(self.matrix, self._layer_of, PERMUTATIONS, int(self.state["draws"][1])).p
                    if quantity == "difference"
                    else np.nan
                )
                within = (-np.inf, np.inf) if quantity == "difference" else (0, np.inf)
                low, high = self._interval(values[:, None], within=within)
                rows.add(1, kind=self.kind, quantity=quantity, value=values[0], low=low, high=high, p=p, **self._counts)


def _means(
    values: Float64[np.ndarray, "replicate head"], member: Float64[np.ndarray, "head layer"]
) -> Float64[np.ndarray, "replicate layer"]:
    """The mean over each layer's heads; NaN if one of them has no value."""
    columns = [values[:, member[:, layer] > 0].mean(1) for layer in range(member.shape[1])]
    return np.stack(columns, 1)
