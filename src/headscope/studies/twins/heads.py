"""The heads of two models compared: each head's twin in the other model, its distance and its layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from headscope.core.heads import HeadId, Kind
from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.results.table import Table, columns_of
from headscope.stats.bootstrap import group_weights
from headscope.stats.embedding import Embedding, Method, embed
from headscope.stats.inference import Support, interval
from headscope.studies.twins.states import Sums

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64

    from headscope.results.results import Results

Letter = Literal["a", "b"]
LETTERS: tuple[Letter, Letter] = ("a", "b")
TABLES = ("twins", "twins_layers", "twins_matrix", "twins_summary")
WORK = 1 << 24  # numbers that are processed at a time


@dataclass(frozen=True)
class Heads:
    """The heads of one of two models, in the order of its layers."""

    name: str
    kind: Kind
    ids: tuple[HeadId, ...]

    @classmethod
    def of(cls, table: Table) -> Heads:
        """The heads of one side of the table `twins`."""
        rows = list(table)
        return cls(rows[0]["model"], rows[0]["kind"], tuple(HeadId.of_row(row, bare=True) for row in rows))

    @property
    def layers(self) -> list[int]:
        """The layers that have heads, counted from 0."""
        return sorted({head.layer for head in self.ids})

    @cached_property
    def layer_of(self) -> Int64[np.ndarray, "head"]:
        """For each head, the number of its layer among the layers with heads."""
        return np.unique([head.layer for head in self.ids], return_inverse=True)[1]

    @cached_property
    def depth(self) -> Float64[np.ndarray, "head"]:
        """The depth of each head: 0 in the first layer, 1 in the last."""
        return self.layer_of / max(1, len(self.layers) - 1)

    @cached_property
    def share(self) -> Float64[np.ndarray, "layer head"]:
        """The matrix that averages over the heads of each layer."""
        member = (self.layer_of == np.arange(len(self.layers))[:, None]).astype(np.float64)
        share: Float64[np.ndarray, "layer head"] = member / member.sum(1, keepdims=True)
        return share


class Nearest(NamedTuple):
    """On the data and in every replicate: the distance of each head of one model to its twin in the other, the number
    of the twin, and the distance to the nearest other head of its model.
    """

    twin: Float64[np.ndarray, "replicate+1 head"]
    at: Int64[np.ndarray, "replicate+1 head"]
    own: Float64[np.ndarray, "replicate+1 head"]


class HeadTwins(NamedTuple):
    """The numbers of `Nearest`, and whether a head is its twin's twin, its distance to the nearest head of an untrained
    copy of the other model, and the share of its attention to words. NaN if there is none.
    """

    twin: Float64[np.ndarray, "replicate+1 head"]
    at: Int64[np.ndarray, "replicate+1 head"]
    own: Float64[np.ndarray, "replicate+1 head"]
    mutual: Bool[np.ndarray, "replicate+1 head"]
    untrained: Float64[np.ndarray, "replicate+1 head"]
    words: Float64[np.ndarray, "replicate+1 head"]


@dataclass(frozen=True)
class Twins:
    """The heads of models `a` and `b` and the distances between all of them, in nats, as means over rows of attention.

    `epsilons` are the distances below which heads count as the same. A head that gives less than `least` of its
    attention to words is faint: only that part is compared. `dropped` says what was skipped, `read` what was changed
    when it was read, and `warnings` what a reader must know before using a number.
    """

    a: Heads
    b: Heads
    sums: Sums
    level: Literal["word", "token"]
    epsilons: tuple[float, ...]
    least: float
    replicates: int
    seed: int
    texts: int
    documents: int
    signature: str
    dropped: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of_study(cls, results: Results) -> Self:
        """The twins of a finished study."""
        settings, counts = results.manifest["settings"], results.manifest["counts"]
        a, b = (Heads.of(results["twins"].where(side=letter)) for letter in LETTERS)
        return cls(
            a,
            b,
            Sums.of(results.state("twins")),
            settings["level"],
            tuple(settings["epsilons"]),
            settings["least"],
            settings["replicates"],
            settings["seed"],
            counts["texts"],
            counts["documents"],
            results.signature,
            tuple(results.manifest["dropped"]),
            tuple(results.manifest["read"]),
            tuple(results.warnings),
        )

    @property
    def n(self) -> int:
        """The number of rows of attention over which distances are means."""
        return int(self.sums.rows.sum())

    @property
    def several(self) -> bool:
        """Whether there are documents of more than one group, and so intervals."""
        return int(np.count_nonzero(self.sums.rows)) > 1 and self.replicates > 0

    @cached_property
    def _weights(self) -> Float64[np.ndarray, "replicate+1 group"]:
        """The weights that turn sums of groups into means: for the data, then for every replicate."""
        drawn = np.concatenate([np.ones((1, len(self.sums.rows))), group_weights(self.replicates, self.seed, len(self.sums.rows))])
        with np.errstate(invalid="ignore", divide="ignore"):
            weights: Float64[np.ndarray, "replicate+1 group"] = drawn / (drawn @ self.sums.rows)[:, None]
        return weights

    def _squares(self) -> Iterator[tuple[slice, Float64[np.ndarray, "replicate head head"]]]:
        """The distances of all heads, those of `a` first, some replicates at a time; infinite on the diagonal."""
        heads = len(self.a.ids) + len(self.b.ids)
        first, second = np.triu_indices(heads, 1)
        step = max(1, WORK // heads**2)
        for start in range(0, len(self._weights), step):
            part = slice(start, start + step)
            square = np.full((len(self._weights[part]), heads, heads), np.inf)
            with np.errstate(invalid="ignore"):
                square[:, first, second] = square[:, second, first] = self._weights[part] @ self.sums.pairs
            yield part, square

    @cached_property
    def distances(self) -> Float64[np.ndarray, "head head"]:
        """The distances between all heads of both models, those of `a` first."""
        matrix: Float64[np.ndarray, "head head"] = next(self._squares())[1][0]
        np.fill_diagonal(matrix, 0)
        return matrix

    @cached_property
    def _between(self) -> tuple[tuple[HeadTwins, HeadTwins], Float64[np.ndarray, "replicate+1 a b"], Float64[np.ndarray, "replicate+1"]]:
        """The twins of the heads of both models, the mean distances of their layers, and the overall mean."""
        a = len(self.a.ids)
        parts: list[tuple[Nearest, Nearest]] = []
        layers, means = [], []
        for _, square in self._squares():
            between = square[:, :a, a:]
            parts.append((_nearest(between, square[:, :a, :a]), _nearest(between.transpose(0, 2, 1), square[:, a:, a:])))
            layers.append(self.a.share @ between @ self.b.share.T)
            means.append(between.mean((1, 2)))
        first, second = (Nearest(*map(np.concatenate, zip(*side, strict=True))) for side in zip(*parts, strict=True))
        with np.errstate(invalid="ignore"):
            words = self._weights @ self.sums.words
        sides = (
            HeadTwins(*first, _mutual(first.at, second.at), self._untrained(0), words[:, :a]),
            HeadTwins(*second, _mutual(second.at, first.at), self._untrained(1), words[:, a:]),
        )
        return sides, np.concatenate(layers), np.concatenate(means)

    def _untrained(self, side: int) -> Float64[np.ndarray, "replicate+1 head"]:
        """The distances of one model's heads to the nearest of an untrained copy of the other."""
        if self.sums.untrained is None:
            return np.full((len(self._weights), len((self.a, self.b)[side].ids)), np.nan)
        sums = self.sums.untrained[side]
        step = max(1, WORK // sums[0].size)
        with np.errstate(invalid="ignore"):
            blocks = (np.tensordot(self._weights[start : start + step], sums, 1) for start in range(0, len(self._weights), step))
            return np.concatenate([block.min(2 - side) for block in blocks])

    def of(self, letter: Letter) -> tuple[Heads, Heads, HeadTwins]:
        """The heads of `a` or of `b`, those of the other model, and the twins of the former."""
        if letter not in LETTERS:
            raise RunError(f"no model is called {letter!r} here", "Use a or b")
        (first, second), *_ = self._between
        return (self.a, self.b, first) if letter == "a" else (self.b, self.a, second)

    def mutual(self) -> list[tuple[HeadId, HeadId, float]]:
        """The pairs of a head of `a` and one of `b` that are each other's twins, with distances, the closest first."""
        heads, others, nearest = self.of("a")
        pairs = [
            (heads.ids[head], others.ids[nearest.at[0, head]], float(nearest.twin[0, head]))
            for head in np.flatnonzero(nearest.mutual[0]).tolist()
        ]
        return sorted(pairs, key=lambda pair: pair[2])

    def embed(self, method: Method = "metric", sqrt: bool = False, seed: int = 0) -> Embedding:
        """All heads of both models as points of one plane, those of `a` first."""
        return embed(self.distances, method, sqrt=sqrt, seed=seed)

    @property
    def layers(self) -> Float64[np.ndarray, "a b"]:
        """The mean distance of the heads of each layer of `a` to those of each layer of `b`."""
        matrix: Float64[np.ndarray, "a b"] = self._between[1][0]
        return matrix

    def table(self, name: str = "twins") -> Table:
        """`twins`: one row per head. `twins_layers`: per layer and quantity. `twins_matrix`: per layer of `a` and of
        `b`. `twins_summary`: per quantity of all heads.
        """
        if name not in TABLES:
            raise RunError(f"there is no table {name!r}", choose_from(name, TABLES))
        columns = {"twins": self._heads, "twins_layers": self._layers, "twins_matrix": self._matrix, "twins_summary": self._summary}[name]()
        return Table.of(columns, {"signature": self.signature})

    def _interval(
        self, values: Float64[np.ndarray, "replicate+1 *shape"], within: tuple[float, float] = (0, np.inf)
    ) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]:
        return interval(values[0], values[1:], Support.in_groups(self.sums.rows, self.documents), within)

    def _heads(self) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        for letter in LETTERS:
            heads, others, nearest = self.of(letter)
            low, high = self._interval(nearest.twin)
            neighbours = self._neighbours(letter)
            support = (nearest.at[1:] == nearest.at[0])[np.isfinite(nearest.twin[1:, 0])]
            size = len(heads.ids)
            blocks.append(
                {
                    "side": [letter] * size,
                    "model": [heads.name] * size,
                    "kind": [heads.kind] * size,
                    "layer": [head.layer + 1 for head in heads.ids],
                    "head": [head.head + 1 for head in heads.ids],
                    "twin": [str(others.ids[at]) for at in nearest.at[0]],
                    "distance": nearest.twin[0],
                    "low": low,
                    "high": high,
                    "support": support.mean(0) if self.several and len(support) else np.full(size, np.nan),
                    "mutual": nearest.mutual[0],
                    "own_neighbour": ["" if at is None else str(heads.ids[at]) for at in neighbours],
                    "own_distance": nearest.own[0],
                    "untrained": nearest.untrained[0],
                    "words": nearest.words[0],
                    "faint": nearest.words[0] < self.least,
                }
            )
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def _neighbours(self, letter: Letter) -> list[int | None]:
        """For each head of a model, the nearest other head of that model."""
        a = len(self.a.ids)
        square = (self.distances[:a, :a] if letter == "a" else self.distances[a:, a:]).copy()
        np.fill_diagonal(square, np.inf)
        return [None] if len(square) == 1 else square.argmin(1).tolist()

    def _layers(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for letter in LETTERS:
            heads, others, nearest = self.of(letter)
            quantities = {
                "twin": nearest.twin,
                "own": nearest.own,
                "untrained": nearest.untrained,
                "twin_depth": np.where(np.isfinite(nearest.twin), others.depth[nearest.at], np.nan),
                "words": nearest.words,
            }
            for quantity, values in quantities.items():
                means = values @ heads.share.T
                low, high = self._interval(means, _range(quantity))
                for number, layer in enumerate(heads.layers):
                    if np.isfinite(means[0, number]):
                        place = {"side": letter, "model": heads.name, "kind": heads.kind, "layer": layer + 1}
                        depth = number / max(1, len(heads.layers) - 1)
                        numbers = {
                            "value": means[0, number],
                            "low": low[number],
                            "high": high[number],
                            "n": self.n,
                            "documents": self.documents,
                        }
                        rows.append({**place, "depth": depth, "quantity": quantity, **numbers})
        return columns_of(rows)

    def _matrix(self) -> dict[str, Any]:
        values = self._between[1]
        low, high = self._interval(values)
        first, second = (axis.ravel() for axis in np.indices(values.shape[1:]))
        return {
            "a_layer": np.array(self.a.layers)[first] + 1,
            "b_layer": np.array(self.b.layers)[second] + 1,
            "value": values[0].ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "n": [self.n] * len(first),
            "documents": [self.documents] * len(first),
        }

    def _summary(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        quantities: list[tuple[str, str, Float64[np.ndarray, "replicate+1"]]] = [("both", "all_pairs", self._between[2])]
        for letter in LETTERS:
            quantities += [(letter, quantity, values) for quantity, values in self._quantities(letter).items()]
        for side, quantity, values in quantities:
            if np.isfinite(values[0]):
                low, high = self._interval(values[:, None], _range(quantity))
                numbers = {"value": values[0], "low": low[0], "high": high[0], "n": self.n, "documents": self.documents}
                rows.append({"side": side, "quantity": quantity, **numbers})
        return columns_of(rows)

    def _quantities(self, letter: Letter) -> dict[str, Float64[np.ndarray, "replicate+1"]]:
        heads, others, nearest = self.of(letter)
        known = np.isfinite(nearest.twin[:, 0])
        distances = {"twin": nearest.twin, "own": nearest.own, "untrained": nearest.untrained}
        values = {name: each.mean(1) for name, each in distances.items()}
        values["beyond_own"] = values["twin"] - values["own"]
        values["below_untrained"] = values["untrained"] - values["twin"]
        for epsilon in self.epsilons:
            for name, each in distances.items():
                values[f"{name}_{epsilon:g}"] = np.where(np.isfinite(each[:, 0]), (each < epsilon).mean(1), np.nan)
        trained = np.isfinite(nearest.untrained[:, 0])
        values["nearer_than_untrained"] = np.where(trained, (nearest.twin < nearest.untrained).mean(1), np.nan)
        values["mutual"] = np.where(known, nearest.mutual.mean(1), np.nan)
        values["depth"] = np.where(known, _correlation(others.depth[nearest.at], heads.depth), np.nan)
        values["words"] = nearest.words.mean(1)
        values["faint"] = np.where(known, (nearest.words < self.least).mean(1), np.nan)
        return values


def _range(quantity: str) -> tuple[float, float]:
    """The smallest and the largest value that a quantity of the layers or of the summary can have."""
    if quantity == "depth":
        return -1, 1
    if quantity in ("beyond_own", "below_untrained"):  # differences
        return -np.inf, np.inf
    distance = quantity in ("all_pairs", "twin", "own", "untrained")
    return 0, np.inf if distance else 1


def _nearest(distances: Float64[np.ndarray, "replicate head other"], to_own_model: Float64[np.ndarray, "replicate head head"]) -> Nearest:
    alone = to_own_model.shape[1] == 1
    return Nearest(distances.min(2), distances.argmin(2), np.full(to_own_model.shape[:2], np.nan) if alone else to_own_model.min(2))


def _mutual(at: Int64[np.ndarray, "replicate head"], back: Int64[np.ndarray, "replicate other"]) -> Bool[np.ndarray, "replicate head"]:
    """Whether a head is the nearest of its nearest."""
    mutual: Bool[np.ndarray, "replicate head"] = np.take_along_axis(back, at, 1) == np.arange(at.shape[1])
    return mutual


def _correlation(values: Float64[np.ndarray, "replicate head"], with_: Float64[np.ndarray, "head"]) -> Float64[np.ndarray, "replicate"]:
    """Pearson's correlation of each row; NaN for constant values."""
    x, y = values - values.mean(1, keepdims=True), with_ - with_.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: Float64[np.ndarray, "replicate"] = (x @ y) / np.sqrt((x * x).sum(1) * (y @ y))
    return correlation
