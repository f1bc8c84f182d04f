"""Heads as classifiers: counts of right answers by label and group of documents, and the tables made from them.

Counts are kept for a fixed number of groups of documents. Memory therefore does not grow with the corpus, and choosing
the best head on some documents, scoring it on the others, and resampling all follow after the corpus is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.heads import HeadId, HeadLayout, Kind
from headscope.core.state import Merge, State
from headscope.corpora.permuted import DRAWS
from headscope.errors import MeasureError
from headscope.measures.base import Champion, Columns, Rows
from headscope.measures.cases import LABEL_SETS, Cases
from headscope.stats.bootstrap import GROUPS, group_weights
from headscope.stats.inference import Support, interval, share_interval
from headscope.stats.resampled import Resampled
from headscope.stats.selection import SelectedScore, crossfit, in_sample, share

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float64, Int, Int64, Shaped

Selection = Literal["crossfit", "in-sample"]
_HEAD_COLUMNS: dict[str, type] = {
    **{"kind": object, "layer": np.int64, "head": np.int64, "quantity": object, "label": object, "direction": object},
    **{"value": np.float64, "low": np.float64, "high": np.float64, "n": np.int64, "documents": np.int64},
    **{"baseline": np.float64, "lift": np.float64},
}
_BEST_COLUMNS: dict[str, type] = {
    **{"kind": object, "label": object, "n": np.int64, "documents": np.int64, "heads": object, "direction": object},
    **dict.fromkeys(("value", "low", "high"), np.float64),
    "rule": object,
    **dict.fromkeys(("baseline", "baseline_low", "baseline_high", "lift", "lift_low", "lift_high"), np.float64),
    **{"in_sample_head": object, "in_sample": np.float64, "crossfit": np.float64, "chance": np.float64, "chance_error": np.float64},
}
PENDING, PENDING_BYTES = 16, 1 << 30  # the most batches that are added to a state together, and the most bytes of their counts
CONTROL = "\x1f"  # prefix of the labels of the control's cases, which are counted as others are, but not listed
ALL = "all"
FOLDS = GROUPS // DRAWS  # the most folds: a draw of the control is counted in this many groups of documents


@dataclass(frozen=True)
class Contests:
    """The contests of one measure, one per label. The entrants are all heads in all directions; simple rules are the
    baselines.

    `counted` names what else is counted about the texts, apart from the cases. `folds` is the number of parts of the
    documents; each is scored by the head that is best on all others.
    """

    name: str
    directions: tuple[str, ...]
    rules: tuple[str, ...]
    selection: Selection
    least: int
    unlisted: frozenset[str] = frozenset()
    counted: tuple[str, ...] = ()
    folds: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.folds <= FOLDS:
            raise MeasureError(f"{self.name}: folds are {self.folds}", f"Use 2 to {FOLDS}: heads are chosen on all folds but one")

    def start(self, replicates: int, seed: int) -> State:
        """A state without counts. `draws` has the number of replicates and the seed."""
        merges: dict[str, Merge] = {"draws": "max", "n/": "sum", "right/": "sum", "rule/": "sum", "count/": "sum", "documents/": "keyed"}
        return State({"draws": np.array([replicates, seed])}, merges)

    def count(self, state: State, batch: MapBatch, counts: Mapping[int, Mapping[str, int]]) -> None:
        """Add counts other than those of cases, given by the number of their slice, once for all sites of a kind."""
        if _leads(batch):
            rows = np.array([[of_slice.get(name, 0) for name in self.counted] for of_slice in counts.values()], dtype=np.int64)
            for part, chosen in state.split(np.array(list(counts), dtype=np.int64)):
                total = part.member("count/", batch.site.kind, lambda: np.zeros(len(self.counted), dtype=np.int64))
                total += rows[chosen].sum(0)

    def add(self, state: State, batch: MapBatch, cases: Cases, counts: Shaped[torch.Tensor, "cell direction head"]) -> None:
        """Add the right answers of the heads of a site, per cell. The state receives them with the last site of the
        kind.

        All sites of a kind have the same cases, since cases depend only on the texts.
        """
        import torch

        kind = batch.site.kind
        waiting: list[torch.Tensor] = batch.shared.setdefault((self.name, "counts", kind), [])
        waiting.append(counts)
        heads = batch.layout.by_kind()[kind]
        if batch.layout.slice(batch.index).stop == heads[-1] + 1:
            del batch.shared[self.name, "counts", kind]
            pending = state.pending(self.name, lambda: _Pending(self, batch.layout))
            pending.add(state, kind, cases, torch.cat(waiting, -1))

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """`<name>`: every head, label and direction. `<name>_best`: the best head of each label, with its best rule."""
        replicates, seed = (int(number) for number in state["draws"])
        weights = group_weights(replicates, seed)
        heads, best = Rows(_HEAD_COLUMNS), Rows(_BEST_COLUMNS)
        for kind, flat in layout.by_kind().items():
            ids = [layout.ids()[number] for number in flat]
            for label, n in self.listed(state, kind):
                right = state[f"right/{label}"][:, :, flat]
                rules = state[f"rule/{kind}/{label}"]
                support, chance = self.support(state, kind, label), self._chance(state, kind, label, flat)
                self._heads(heads, kind, ids, label, n, support, right, in_sample(n, rules, late=True), weights)
                self._best(best, kind, ids, label, n, support, right.reshape(GROUPS, -1), rules, weights, chance)
        return {self.name: heads.columns, f"{self.name}_best": best.columns}

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """The share of right answers of each head, per label and direction; NaN where there are no cases."""
        weights = weights_of(state)
        found: dict[str, Resampled] = {}
        for kind, flat in layout.by_kind().items():
            for label, n in replace(self, least=self.least if least is None else least).listed(state, kind):
                shares = share(state[f"right/{label}"][:, :, flat], n, weights)
                for number in range(len(self.directions)):
                    name = self.quantity(label, number)
                    one = found.setdefault(name, _nothing(name, len(weights), layout.size))
                    one.values[:, flat], one.n[flat] = shares[:, number], n.sum()
                    support = self.support(state, kind, label)
                    one.support.documents[flat], one.support.effective[flat] = support.documents, support.effective
        yield from found.values()

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The scores of the best heads, chosen as in the table of best heads."""
        weights = weights_of(state)
        for kind, flat in layout.by_kind().items():
            ids = [layout.ids()[number] for number in flat]
            for label, n in self.listed(state, kind):
                best = self.choose(n, state[f"right/{label}"][:, :, flat].reshape(GROUPS, -1))
                support = self.support(state, kind, label)[None]
                scores = Resampled(label, best.resampled(weights)[:, None], support, np.array([float(n.sum())]), share_interval)
                yield Champion(kind, label, names_of(ids, best.picks), scores)

    def support(self, state: State, kind: str, label: str) -> Support:
        """The documents of a label's cases. Their effective number follows from their groups, which are resampled.
        States of runs before 1.0 have groups only.
        """
        documents = state.arrays.get(f"documents/{kind}/{label}")
        return Support.in_groups(state[f"n/{kind}/{label}"], None if documents is None else len(documents))

    def choose(self, n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"]) -> SelectedScore:
        """The best entrant, chosen and scored according to `selection` and `folds`."""
        return crossfit(n, right, folds=self.folds) if self.selection == "crossfit" else in_sample(n, right)

    def quantity(self, label: str, direction: int) -> str:
        """The name of a label and a direction (by number) in the table of heads."""
        return label if direction == 0 else f"{label} ({self.directions[direction]})"

    def listed(self, state: State, kind: Kind) -> list[tuple[str, Int64[np.ndarray, "group"]]]:
        """Labels with enough cases: "all" first, then by falling frequency."""
        found = [(name.removeprefix(f"{kind}/"), n) for name, n in state.family("n/").items() if name.startswith(f"{kind}/")]
        enough = [
            (label, n) for label, n in found if n.sum() >= self.least and label not in self.unlisted and not label.startswith(CONTROL)
        ]
        return sorted(enough, key=lambda item: (item[0] != ALL, -int(item[1].sum()), item[0]))

    def _heads(
        self,
        rows: Rows,
        kind: Kind,
        ids: Sequence[HeadId],
        label: str,
        n: Int64[np.ndarray, "group"],
        support: Support,
        right: Int64[np.ndarray, "group direction head"],
        rule: SelectedScore,
        weights: Float64[np.ndarray, "replicate group"],
    ) -> None:
        value = right.sum(0) / n.sum()
        low, high = share_interval(value, share(right, n, weights), support)
        for number, direction in enumerate(self.directions):
            rows.add(
                len(ids),
                kind=kind,
                layer=[id.layer + 1 for id in ids],
                head=[id.head + 1 for id in ids],
                quantity=self.quantity(label, number),
                label=label,
                direction=direction,
                value=value[number],
                low=low[number],
                high=high[number],
                n=int(n.sum()),
                documents=int(support.documents),
                baseline=rule.value,
                lift=value[number] - rule.value,
            )

    def _best(
        self,
        rows: Rows,
        kind: Kind,
        ids: Sequence[HeadId],
        label: str,
        n: Int64[np.ndarray, "group"],
        support: Support,
        right: Int64[np.ndarray, "group entrant"],
        rules: Int64[np.ndarray, "group rule"],
        weights: Float64[np.ndarray, "replicate group"],
        chance: tuple[float, float],
    ) -> None:
        seen = in_sample(n, right), in_sample(n, rules, late=True)
        fair = crossfit(n, right, folds=self.folds), crossfit(n, rules, late=True, folds=self.folds)
        head, rule = fair if self.selection == "crossfit" else seen
        head_shares, rule_shares = head.resampled(weights), rule.resampled(weights)
        bounds = [
            share_interval(np.array(head.value), head_shares, support),
            share_interval(np.array(rule.value), rule_shares, support),
            interval(np.array(head.value - rule.value), head_shares - rule_shares, support, (-1.0, 1.0)),
        ]
        rows.add(
            1,
            kind=kind,
            label=label,
            n=int(n.sum()),
            documents=int(support.documents),
            heads=names_of(ids, head.picks),
            direction=_often(self.directions[pick // len(ids)] for pick in head.picks),
            value=head.value,
            low=bounds[0][0],
            high=bounds[0][1],
            rule=_often(self.rules[pick] for pick in rule.picks),
            baseline=rule.value,
            baseline_low=bounds[1][0],
            baseline_high=bounds[1][1],
            lift=head.value - rule.value,
            lift_low=bounds[2][0],
            lift_high=bounds[2][1],
            in_sample_head=str(ids[seen[0].picks[0] % len(ids)]),
            in_sample=seen[0].value,
            crossfit=fair[0].value,
            chance=chance[0],
            chance_error=chance[1],
        )

    def _chance(self, state: State, kind: Kind, label: str, flat: Sequence[int]) -> tuple[float, float]:
        """The score of the best head on the cases of the control, chosen and scored in the same way: the mean over
        draws, and its standard error.

        Both are NaN without a control; the error is NaN with one draw.
        """
        if f"n/{kind}/{CONTROL}{label}" not in state.arrays:
            return float("nan"), float("nan")
        n = state[f"n/{kind}/{CONTROL}{label}"].reshape(DRAWS, -1)
        right = state[f"right/{CONTROL}{label}"][:, :, flat].reshape(DRAWS, n.shape[1], -1)
        values = np.array([self.choose(*draw).value for draw in zip(n, right, strict=True) if draw[0].any()])
        values = values[np.isfinite(values)]
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return float(values.mean()) if len(values) else float("nan"), float(error)


class _Pending:
    """Batches whose answers are not yet part of the state. They are summed by cell on their device, and the state's
    arrays grow once for all of them.
    """

    def __init__(self, contests: Contests, layout: HeadLayout) -> None:
        self._contests, self._layout, self._bytes = contests, layout, 0
        self._batches: dict[Kind, list[tuple[Cases, Shaped[torch.Tensor, "cell direction head"]]]] = {}

    def add(self, state: State, kind: Kind, cases: Cases, counts: Shaped[torch.Tensor, "cell direction head"]) -> None:
        """Keep a batch. Once there are many, add all of them to the state."""
        batches = self._batches.setdefault(kind, [])
        batches.append((cases, counts))
        self._bytes += counts.nbytes
        if len(batches) == PENDING or self._bytes > PENDING_BYTES:
            self.settle(state)
            self._bytes = 0

    def settle(self, state: State) -> None:
        """Add all batches to the state."""
        for kind, batches in self._batches.items():
            if batches:
                self._settle(state, kind, *zip(*batches, strict=True))
                batches.clear()

    def _settle(
        self, state: State, kind: Kind, cases: Sequence[Cases], counts: Sequence[Shaped[torch.Tensor, "cell direction head"]]
    ) -> None:
        firsts = np.cumsum([0, *(len(counted) for counted in counts)])
        numbers = np.concatenate([of_batch.table[0] + first for of_batch, first in zip(cases, firsts, strict=False)])
        labels, groups, slices, n, *rules = np.concatenate([of_batch.table[1] for of_batch in cases]).T
        keys, right = labels * GROUPS + groups, np.stack(rules, 1) if rules else np.zeros((len(n), 0), dtype=np.int64)
        for part, chosen in state.split(slices):
            self._add_cells(part, kind, keys[chosen], numbers[chosen], counts, n[chosen], right[chosen])
        documents = np.concatenate([of_batch.documents for of_batch in cases])
        for part, rows in state.split(documents[:, 3]):
            self._add_documents(part, kind, documents[rows, :3])

    def _add_cells(
        self,
        state: State,
        kind: Kind,
        keys: Int64[np.ndarray, "chosen"],
        numbers: Int64[np.ndarray, "chosen"],
        counts: Sequence[Shaped[torch.Tensor, "cell direction head"]],
        n_of: Int64[np.ndarray, "chosen"],
        rules_of: Int64[np.ndarray, "chosen rule"],
    ) -> None:
        """Add some cells of many batches, given by set of labels and group; the same cell can occur several times.
        `numbers` are their places among the cells of all batches, in ascending order.
        """
        import torch

        cells, places = np.unique(keys, return_inverse=True)
        total = counts[0].new_zeros((len(cells), *counts[0].shape[1:]), dtype=torch.int64)
        firsts = np.cumsum([0, *map(len, counts)])
        for counted, first, (start, stop) in zip(counts, firsts, pairwise(np.searchsorted(numbers, firsts).tolist()), strict=False):
            where, own = (torch.from_numpy(array[start:stop]).to(total.device) for array in (places, numbers - first))
            total.index_add_(0, where, (counted if stop - start == len(counted) else counted[own]).to(torch.int64))
        right = total.cpu().numpy()
        n, rules = (np.zeros((len(cells), *shape), dtype=np.int64) for shape in ((), (len(self._contests.rules),)))
        np.add.at(n, places, n_of)
        np.add.at(rules, places, rules_of)
        edges = np.flatnonzero(np.diff(cells // GROUPS, prepend=-1, append=-1))
        for start, stop in pairwise(edges.tolist()):
            part = slice(start, stop)
            for label in LABEL_SETS.items[cells[start] // GROUPS]:
                self._add(state, kind, label, cells[part] % GROUPS, right[part], n[part], rules[part])

    def _add(
        self,
        state: State,
        kind: Kind,
        label: str,
        groups: Int64[np.ndarray, "cell"],
        right: Int64[np.ndarray, "cell direction head"],
        n: Int64[np.ndarray, "cell"],
        rules: Int64[np.ndarray, "cell rule"],
    ) -> None:
        """Add cells of one label, each from a different group."""
        contests, size = self._contests, self._layout.size
        heads = np.array(self._layout.by_kind()[kind])
        total = state.member("right/", label, lambda: np.zeros((GROUPS, len(contests.directions), size), dtype=np.int64))
        if len(heads) == size:
            total[groups] += right
        else:
            total[groups[:, None, None], np.arange(len(contests.directions))[:, None], heads] += right
        state.member("n/", f"{kind}/{label}", lambda: np.zeros(GROUPS, dtype=np.int64))[groups] += n
        state.member("rule/", f"{kind}/{label}", lambda: np.zeros((GROUPS, len(contests.rules)), dtype=np.int64))[groups] += rules

    def _add_documents(self, state: State, kind: Kind, rows: Int64[np.ndarray, "row 3"]) -> None:
        """Add, for each label, the keys of documents and the number of cases of each."""
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        edges = np.flatnonzero(np.diff(rows[:, 0], prepend=-1, append=-1))
        by_label: dict[str, list[Int64[np.ndarray, "row 2"]]] = {}
        for start, stop in pairwise(edges.tolist()):
            for label in LABEL_SETS.items[rows[start, 0]]:
                by_label.setdefault(label, []).append(rows[start:stop, 1:])
        for label, parts in by_label.items():
            state.member("documents/", f"{kind}/{label}", lambda: np.zeros((0, 2), dtype=np.int64))
            state.add(f"documents/{kind}/{label}", np.concatenate(parts))


def control_group(draw: Int[torch.Tensor, "draw 1"], group: Int[torch.Tensor, "case"]) -> Int[torch.Tensor, "draw case"]:
    """The group in which a case of the control is counted. Every draw has separate groups, so that all draws fit into
    the array of one label.
    """
    return draw * FOLDS + group % FOLDS


def own_label(label: str) -> str:
    """The label under which cases are counted: a label that is named like the total is renamed."""
    return f"{label} (label)" if label == ALL else label


def names_of(ids: Sequence[HeadId], picks: Sequence[int]) -> str:
    """The names of the heads of some entrants, each once. Entrants are all heads in the first direction, then in the
    next, and so on.
    """
    return _often(str(ids[pick % len(ids)]) for pick in picks)


def _often(names: Iterable[str]) -> str:
    """The distinct names, starting with the one that most folds chose."""
    return " | ".join(name for name, _ in Counter(names).most_common())


def weights_of(state: State) -> Float64[np.ndarray, "replicate+1 group"]:
    """The bootstrap weights of the groups: first those of the data (all ones), then those of every replicate."""
    drawn = group_weights(*(int(number) for number in state["draws"]))
    return np.concatenate([np.ones((1, GROUPS)), drawn])


def _nothing(name: str, rows: int, heads: int) -> Resampled:
    support = Support(np.zeros(heads, dtype=np.int64), np.zeros(heads))
    return Resampled(name, np.full((rows, heads), np.nan), support, np.zeros(heads), share_interval)


def _leads(batch: MapBatch) -> bool:
    """Whether the site is the first of its kind, with which texts are counted."""
    return next(site for site in batch.layout.sites if site.kind == batch.site.kind) == batch.site
