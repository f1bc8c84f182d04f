"""Measures that are a mean over texts of one number per head: their sums, replicates and tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch, Weigh
from headscope.core.heads import HeadLayout
from headscope.core.rows import RowNeeds, RowSums
from headscope.core.state import State
from headscope.measures.base import Columns, Measure
from headscope.stats.bootstrap import keys_of
from headscope.stats.inference import Support, interval, share_interval
from headscope.stats.resampled import Resampled
from headscope.stats.rows import row_statistics

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Float64, Int, Int64

    Sums = Float[torch.Tensor, "batch quantity head"]
    Counts = Float64[np.ndarray, "batch quantity"]
    Even = Float[torch.Tensor, "batch quantity"]

Average = Literal["example", "token"]


@dataclass(frozen=True)
class _Seen:
    """The sums of one site over a batch, and those of even attention."""

    sums: Sums
    rows: Counts
    even: Even

    def none_of(self, heads: int) -> _Seen:
        """The same for a site of `heads` heads that is not observed: zeros."""
        return _Seen(self.sums.new_zeros((*self.sums.shape[:2], heads)), np.zeros_like(self.rows), self.even.new_zeros(self.even.shape))


class _PendingTexts:
    """The values of texts that are not yet added to a state. They are summed by document; then one product over
    documents adds them for all replicates, quantities and heads, on the device of the sums.
    """

    def __init__(self, average: Average, layout: HeadLayout, weigh: Weigh) -> None:
        self._average, self._layout, self._weigh = average, layout, weigh
        self._sums: list[Sums] = []
        self._rows: list[Float64[np.ndarray, "text quantity site"]] = []
        self._even: list[Float[torch.Tensor, "text quantity site"]] = []
        self._numbers: dict[str, int] = {}  # of documents
        self._document: list[Int64[np.ndarray, "text"]] = []
        self._slices: list[Int64[np.ndarray, "text"]] = []

    def add(self, batch: MapBatch, seen: Sequence[_Seen]) -> None:
        """Keep the values of all sites for a batch. Nothing is fetched from the device."""
        import torch

        self._sums.append(torch.cat([site.sums for site in seen], -1))
        self._rows.append(np.stack([site.rows for site in seen], -1))
        self._even.append(torch.stack([site.even for site in seen], -1))
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in batch.documents]
        self._document.append(np.array(numbers, dtype=np.int64))
        self._slices.append(batch.slices)

    def settle(self, state: State) -> None:
        """Add the values to the sums of a state and of its parts."""
        import torch

        rows, document, names = np.concatenate(self._rows), np.concatenate(self._document), tuple(self._numbers)
        replicates = self._weigh(names)
        present = np.where(rows > 0, 1.0 if self._average == "example" else rows, 0.0)
        sums = torch.cat(self._sums)
        if sums.device.type == "mps":  # MPS has no float64
            sums = sums.cpu()
        site_of = torch.from_numpy(self._layout.site_of()).to(sums.device)
        factors = torch.from_numpy(present / np.maximum(rows, 1)).to(sums.device)[..., site_of]
        shown = (sums.double() * factors).flatten(1)  # [text, quantity * head]
        even = torch.cat(self._even).cpu().double().numpy() / np.maximum(rows, 1) * present
        support, keys = _support(self._layout, present), keys_of(names)
        for part, texts in state.split(np.concatenate(self._slices)):
            own = document[texts]
            order = np.arange(len(document))[texts][np.argsort(own, kind="stable")]
            numbers, starts, lengths = np.unique(document[order], return_index=True, return_counts=True)
            drawn = replicates[numbers]
            weights = torch.from_numpy(np.ascontiguousarray(drawn.T)).to(sums.device)
            by_document = torch.segment_reduce(
                shown[torch.from_numpy(order).to(sums.device)], "sum", lengths=torch.from_numpy(lengths).to(sums.device), axis=0
            )
            part["sum"][:] += (weights @ by_document).cpu().numpy().reshape(part["sum"].shape)
            part["weight"][:] += _over_documents(drawn, np.add.reduceat(present[order], starts))
            part["even"][:] += _over_documents(drawn, np.add.reduceat(even[order], starts))
            part.add("documents", np.column_stack([keys[numbers], np.add.reduceat(support[order], starts)]))


@dataclass(frozen=True, kw_only=True)
class HeadMeans(Measure):
    """Means of per-text quantities. `average="example"` weights texts equally, as the paper does; `"token"` weights
    rows equally.

    A text with nothing to count for a quantity (no [SEP], say) is excluded from that quantity's mean and n. `within`
    has the bounds of the quantities and of their intervals.
    """

    within: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    average: Average = "example"

    @abstractmethod
    def quantities(self) -> tuple[str, ...]:
        """The names of the averaged quantities, in the order of `observe`."""

    @abstractmethod
    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """For each text, quantity and head a sum over rows, and for each text and quantity the number of these rows."""

    def baseline(self, batch: MapBatch) -> Even:
        """The baseline of heads, summed over rows as in `observe`: the values of attention that is spread evenly over
        all visible positions.
        """
        return self.observe(batch.even())[0][..., 0]

    def bounds(self, quantity: str) -> tuple[float, float]:
        """The bounds of a quantity, at which its interval is cut."""
        return self.within

    def counts_texts(self, quantity: str) -> bool:
        """Whether a quantity is the share of texts that meet a condition. If all or none do, its interval has an exact
        bound instead of no width.
        """
        return False

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether a quantity is defined for attention of this kind."""
        return True

    def shown(self, means: Float64[np.ndarray, "quantity head"]) -> list[int]:
        """The numbers of the quantities that a table lists."""
        return list(range(len(means)))

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """Sums by replicate, quantity and head; their weights, and the even-attention baseline, by replicate, quantity
        and site; and each document's weight by quantity and kind of attention.
        """
        quantities, sites = len(self.quantities()), len(layout.sites)
        arrays = {
            "sum": np.zeros((replicates + 1, quantities, layout.size)),
            "weight": np.zeros((replicates + 1, quantities, sites)),
            "even": np.zeros((replicates + 1, quantities, sites)),
        }
        documents = np.zeros((0, 1 + quantities * len(layout.by_kind())), dtype=np.int64)
        return State({**arrays, "documents": documents}, {**dict.fromkeys(arrays, "sum"), "documents": "keyed"})

    def update(self, state: State, batch: MapBatch) -> None:
        """Add the quantities of each text to every replicate, with the weight of its document.

        Sums stay on the device until the last site has been observed, since fetching them one by one would make the
        device wait. Sites for which no quantity is defined are not observed.
        """
        me = id(self)  # cheaper than the measure's hash, which is computed again for every layer of every batch
        if (me, "asked") not in batch.shared:
            batch.shared[me, "asked"] = self._asked(batch.layout)
        asked: tuple[int, ...] = batch.shared[me, "asked"]
        if batch.index not in asked:
            return
        waiting: dict[int, _Seen] = batch.shared.setdefault((me, "waiting"), {})
        if batch.maps is None and not self._needs_scores:  # statistics of rows are small: all sites of a kind are observed together
            together: list[MapBatch] = batch.shared.setdefault((me, "rows", batch.site.kind), [])
            together.append(batch if batch.scores is None else replace(batch, scores=None, value=None))
            if len(together) == sum(batch.layout.sites[index].kind == batch.site.kind for index in asked):
                del batch.shared[me, "rows", batch.site.kind]
                waiting |= self._observe_together(together)
        else:
            waiting[batch.index] = _Seen(*self.observe(batch), self._even(batch))
        if len(waiting) == len(asked):
            del batch.shared[me, "waiting"]
            last = waiting[batch.index]
            seen = [waiting.get(index) or last.none_of(site.heads) for index, site in enumerate(batch.layout.sites)]
            state.pending(self.name, lambda: _PendingTexts(self.average, batch.layout, batch.weigh)).add(batch, seen)

    def _even(self, batch: MapBatch) -> Even:
        return batch.once(self, lambda: self.baseline(batch))

    def _observe_together(self, batches: Sequence[MapBatch]) -> dict[int, _Seen]:
        """The values of the sites of a kind, observed as one site. They differ only in their heads and reach."""
        import torch

        sums = [row_sums(batch, RowNeeds()) for batch in batches]
        together = RowSums(sums[0].needs, torch.cat([rows.values for rows in sums], 1))
        observed, counts = self.observe(replace(batches[0], rows=together))
        parts = torch.split(observed, [rows.values.shape[1] for rows in sums], -1)
        return {batch.index: _Seen(part, counts, self._even(batch)) for batch, part in zip(batches, parts, strict=True)}

    @cached_property
    def _needs_scores(self) -> bool:
        """Whether a site must be observed while its scores are in memory."""
        needs = self.row_needs()
        return needs is not None and needs.scores

    @lru_cache(maxsize=8)  # noqa: B019 a measure is a small value
    def _asked(self, layout: HeadLayout) -> tuple[int, ...]:
        """The numbers of the sites for which some quantity is defined."""
        kinds = {kind for kind in layout.by_kind() if any(self.defined(kind, quantity) for quantity in self.quantities())}
        return tuple(index for index, site in enumerate(layout.sites) if site.kind in kinds)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """The table of heads and the table of layers. A layer has the mean over its heads, resampled with them."""
        site_of = layout.site_of()
        weight, support = state["weight"], support_of(state, layout)
        heads = means_of(state, site_of)
        baseline = _even(state)
        layers = np.stack([heads[:, :, layout.slice(i)].mean(-1) for i in range(len(layout.sites))], -1)
        ids = layout.ids()
        head_columns: dict[str, Sequence[object]] = {
            "kind": [h.kind for h in ids],
            "layer": [h.layer + 1 for h in ids],
            "head": [h.head + 1 for h in ids],
        }
        layer_columns: dict[str, Sequence[object]] = {"kind": [s.kind for s in layout.sites], "layer": [s.layer + 1 for s in layout.sites]}
        shown = self.shown(heads[0])
        return {
            self.name: self._table(shown, head_columns, heads, weight[0][:, site_of], support[:, site_of], baseline[:, site_of]),
            f"{self.name}_layers": self._table(shown, layer_columns, layers, weight[0], support, baseline),
        }

    def model_table(self, state: State, layout: HeadLayout) -> Columns:
        """One row per kind of attention and quantity: the mean over all heads of the kind, resampled with them."""
        heads, by_kind = means_of(state, layout.site_of()), layout.by_kind()
        means = np.stack([heads[:, :, numbers].mean(-1) for numbers in by_kind.values()], -1)
        sites = [[site.kind for site in layout.sites].index(kind) for kind in by_kind]  # sites of a kind see the same texts
        support, baseline = support_of(state, layout)[:, sites], _even(state)
        evens = np.stack([baseline[:, [site.kind == kind for site in layout.sites]].mean(-1) for kind in by_kind], -1)
        return self._table(self.shown(heads[0]), {"kind": list(by_kind)}, means, state["weight"][0][:, sites], support, evens)

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """All quantities; NaN with n = 0 for heads of a kind for which a quantity is not defined."""
        site_of = layout.site_of()
        means, weight, support = means_of(state, site_of), state["weight"][0][:, site_of], support_of(state, layout)[:, site_of]
        even = _drawn_even(state)[:, :, site_of]
        for q, name in enumerate(self.quantities()):
            defined = np.array([self.defined(site.kind, name) for site in layout.sites], dtype=bool)[site_of]
            yield Resampled(
                name,
                np.where(defined, means[:, q], np.nan),
                support[q].where(defined),
                np.where(defined, weight[q], 0.0),
                share_interval if self.counts_texts(name) else partial(interval, within=self.bounds(name)),
                even[:, q],
            )

    def expected(self, state: State, layout: HeadLayout) -> dict[str, Float64[np.ndarray, "head"]]:
        """The values of evenly spread attention."""
        return dict(zip(self.quantities(), _even(state)[:, layout.site_of()], strict=True))

    def _table(
        self,
        shown: Sequence[int],
        names: Mapping[str, Sequence[object]],
        replicates: Float64[np.ndarray, "replicate quantity item"],
        weight: Float64[np.ndarray, "quantity item"],
        support: Support,
        baseline: Float64[np.ndarray, "quantity item"],
    ) -> Columns:
        known = self.quantities()
        kept = [(q, i) for q in shown for i, kind in enumerate(names["kind"]) if self.defined(str(kind), known[q])]
        q, i = np.array([pair[0] for pair in kept], dtype=int), np.array([pair[1] for pair in kept], dtype=int)
        least, most = np.array([self.bounds(name) for name in known])[q].T
        low, high = interval(replicates[0, q, i], replicates[1:, q, i], support[q, i], (least, most))
        counted = np.array([self.counts_texts(known[number]) for number in q], dtype=bool)
        if counted.any():
            drawn = replicates[:, q[counted], i[counted]]
            low[counted], high[counted] = share_interval(drawn[0], drawn[1:], support[q[counted], i[counted]])
        columns: dict[str, object] = {name: np.array(values)[i] for name, values in names.items()}
        columns["quantity"] = np.array(known, dtype=object)[q]
        columns |= {
            "value": replicates[0, q, i],
            "low": low,
            "high": high,
            "n": np.rint(weight[q, i]).astype(np.int64),
            "documents": support.documents[q, i],
            "baseline": baseline[q, i],
        }
        return columns


def row_sums(batch: MapBatch, needs: RowNeeds) -> RowSums:
    """The sums over rows that a measure needs, and possibly more: those of the batch, or computed from its maps."""
    if batch.rows is not None:
        return batch.rows
    valid, members = batch.queries.valid(batch.device), batch.keys.members(needs, batch.device)
    values = row_statistics(batch.weights, valid, members, needs.offsets)
    return RowSums.of(needs, values, batch.queries.row_groups(needs, batch.device))


def _over_documents(
    replicates: Float64[np.ndarray, "document replicate"], values: Float64[np.ndarray, "document quantity site"]
) -> Float64[np.ndarray, "replicate quantity site"]:
    """The product over documents. Sites mostly agree, so that one product often serves for all."""
    first = values[..., :1]
    if (values == first).all():
        values = first
    found: Float64[np.ndarray, "replicate quantity site"] = np.einsum("tr,tqs->rqs", replicates, values, optimize=True)
    return found


def means_of(state: State, site_of: Int[np.ndarray, "head"]) -> Float64[np.ndarray, "replicate quantity head"]:
    """The mean of each quantity and head, on the data and in every replicate."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return state["sum"] / state["weight"][:, :, site_of]


def _even(state: State) -> Float64[np.ndarray, "quantity site"]:
    even: Float64[np.ndarray, "quantity site"] = _drawn_even(state)[0]
    return even


def _drawn_even(state: State) -> Float64[np.ndarray, "replicate quantity site"]:
    """The baseline on the data and in every replicate. If a run stored only that of the data, it is used for all
    replicates.
    """
    even, weight = state["even"], state["weight"]
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn: Float64[np.ndarray, "replicate quantity site"] = even / (weight if even.ndim == weight.ndim else weight[0])
    return np.broadcast_to(drawn, weight.shape)


def _support(layout: HeadLayout, present: Float64[np.ndarray, "text quantity site"]) -> Int64[np.ndarray, "text column"]:
    """The weight of each text in each quantity and kind: that of the site with the largest weight."""
    sites: dict[str, list[int]] = {}
    for number, site in enumerate(layout.sites):
        sites.setdefault(site.kind, []).append(number)
    weight = np.stack([present[:, :, own].max(-1) for own in sites.values()], -1).reshape(len(present), -1)
    rounded: Int64[np.ndarray, "text column"] = np.rint(weight).astype(np.int64)
    return rounded


def support_of(state: State, layout: HeadLayout) -> Support:
    """The documents of each quantity and site. States of runs before 1.0 did not count them; there the effective number
    is estimated from the replicates.
    """
    if "documents" not in state.arrays:
        return Support.drawn(state["weight"])
    kinds = list(layout.by_kind())
    weights = state["documents"][:, 1:].reshape(len(state["documents"]), len(state["weight"][0]), len(kinds))
    return Support.of(weights[:, :, [kinds.index(site.kind) for site in layout.sites]])
