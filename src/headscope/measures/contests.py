"""Heads as classifiers: counts of right answers by label and group of documents, and how they become tables.

Counts are kept for a fixed number of groups of documents, so that choosing the best head on one half of the documents,
scoring it on the other, and resampling can all wait until the stream has ended, in memory that does not grow with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.heads import HeadId, HeadLayout, Kind
from headscope.core.state import Merge, State
from headscope.corpora.permuted import DRAWS
from headscope.errors import MeasureError
from headscope.measures.base import Champion, Columns
from headscope.measures.cases import Cases
from headscope.measures.rows import Rows
from headscope.stats.bootstrap import GROUPS, group_weights
from headscope.stats.inference import Support, interval, share_interval
from headscope.stats.resampled import Resampled
from headscope.stats.selection import SelectedScore, crossfit, in_sample, share

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float64, Int64

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
CONTROL = "\x1f"  # begins the labels of cases that are a control: they are counted as the others are, and not listed
ALL = "all"
FOLDS = GROUPS // DRAWS  # the most there can be: a draw of the control is counted in so many groups of documents


@dataclass(frozen=True)
class Contests:
    """The contests of one measure: each label is one, its entrants are all heads in all directions, and simple rules as
    baselines.

    `counted` names what else is counted about the texts, beside the cases; `folds` is the number of parts of the
    documents, each scored by the head that is best on all others.
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
        """Nothing counted; `draws` remembers how to resample."""
        merges: dict[str, Merge] = {"draws": "max", "n/": "sum", "right/": "sum", "rule/": "sum", "count/": "sum", "documents/": "keyed"}
        return State({"draws": np.array([replicates, seed])}, merges)

    def count(self, state: State, batch: MapBatch, counts: Mapping[str, int]) -> None:
        """Count what is no case, once for all sites of a kind."""
        if _leads(batch):
            total = state.member("count/", batch.site.kind, lambda: np.zeros(len(self.counted), dtype=np.int64))
            total += np.array([counts.get(name, 0) for name in self.counted], dtype=np.int64)

    def add(self, state: State, batch: MapBatch, cases: Cases, right: Bool[torch.Tensor, "direction case head"]) -> None:
        """Count cases: which heads of a site are right; with the last site of a kind they are added up, with n and what
        rules answer.

        The cases are those of the texts, so that all sites of a kind have the same.
        """
        import torch

        kind = batch.site.kind
        waiting: list[torch.Tensor] = batch.shared.setdefault((self.name, "counts", kind), [])
        waiting.append(cases.count(right))
        heads, directions = np.array(batch.layout.by_kind()[kind]), np.arange(len(self.directions))
        if batch.layout.slice(batch.index).stop != heads[-1] + 1:
            return
        counts = torch.cat(waiting, -1).cpu().numpy().astype(np.int64)
        del batch.shared[self.name, "counts", kind]
        for name, cells, groups, documents in cases.parts:
            total = state.member("right/", name, lambda: np.zeros((GROUPS, len(self.directions), batch.layout.size), dtype=np.int64))
            if len(heads) == batch.layout.size:
                total[groups] += counts[cells]
            else:
                total[groups[:, None, None], directions[:, None], heads] += counts[cells]
            state.member("n/", f"{kind}/{name}", lambda: np.zeros(GROUPS, dtype=np.int64))[groups] += cases.n[cells]
            rule = state.member("rule/", f"{kind}/{name}", lambda: np.zeros((GROUPS, len(self.rules)), dtype=np.int64))
            rule[groups] += cases.rules[cells]
            if not name.startswith(CONTROL):
                state.member("documents/", f"{kind}/{name}", lambda: np.zeros((0, 2), dtype=np.int64))
                state.add(f"documents/{kind}/{name}", documents)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """`<name>`: each head, label and direction. `<name>_best`: each label's best head beside its best rule."""
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
        """The share of right answers of each head, by label and direction; NaN where there is no case."""
        weights = _weights(state)
        found: dict[str, Resampled] = {}
        for kind, flat in layout.by_kind().items():
            for label, n in replace(self, least=self.least if least is None else least).listed(state, kind):
                shares = share(state[f"right/{label}"][:, :, flat], n, weights)
                for number in range(len(self.directions)):
                    name = self._quantity(label, number)
                    one = found.setdefault(name, _nothing(name, len(weights), layout.size))
                    one.values[:, flat], one.n[flat] = shares[:, number], n.sum()
                    support = self.support(state, kind, label)
                    one.support.documents[flat], one.support.effective[flat] = support.documents, support.effective
        yield from found.values()

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """What the best heads score, chosen as in the table of best heads."""
        weights = _weights(state)
        for kind, flat in layout.by_kind().items():
            ids = [layout.ids()[number] for number in flat]
            for label, n in self.listed(state, kind):
                best = self.choose(n, state[f"right/{label}"][:, :, flat].reshape(GROUPS, -1))
                support = self.support(state, kind, label)[None]
                scores = Resampled(label, share(best.right, best.n, weights)[:, None], support, np.array([float(n.sum())]), share_interval)
                yield Champion(kind, label, names_of(ids, best.picks), scores)

    def support(self, state: State, kind: str, label: str) -> Support:
        """The documents of a label's cases. Their groups are what is resampled, and say how many are effective;
        states of runs before 1.0 have no more than groups.
        """
        documents = state.arrays.get(f"documents/{kind}/{label}")
        return Support.in_groups(state[f"n/{kind}/{label}"], None if documents is None else len(documents))

    def choose(self, n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"]) -> SelectedScore:
        """The best entrant, chosen and scored as `selection` and `folds` say."""
        return crossfit(n, right, folds=self.folds) if self.selection == "crossfit" else in_sample(n, right)

    def _quantity(self, label: str, direction: int) -> str:
        return label if direction == 0 else f"{label} ({self.directions[direction]})"

    def listed(self, state: State, kind: Kind) -> list[tuple[str, Int64[np.ndarray, "group"]]]:
        """Labels with enough cases: "all" first, then the most frequent."""
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
                quantity=self._quantity(label, number),
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
        head_shares, rule_shares = share(head.right, head.n, weights), share(rule.right, rule.n, weights)
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
        """What the best head scores on the control's cases, chosen and scored in the same way: the mean over draws, and
        its standard error.

        NaN without a control; the error is NaN with one draw.
        """
        if f"n/{kind}/{CONTROL}{label}" not in state.arrays:
            return float("nan"), float("nan")
        n = state[f"n/{kind}/{CONTROL}{label}"].reshape(DRAWS, -1)
        right = state[f"right/{CONTROL}{label}"][:, :, flat].reshape(DRAWS, n.shape[1], -1)
        values = np.array([self.choose(*draw).value for draw in zip(n, right, strict=True) if draw[0].any()])
        values = values[np.isfinite(values)]
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return float(values.mean()) if len(values) else float("nan"), float(error)


def control_group(draw: int, group: Int64[np.ndarray, "case"]) -> Int64[np.ndarray, "case"]:
    """The group that a case of the control is counted in: each draw has its own groups, so that draws share the room
    of one label.
    """
    return draw * FOLDS + group % FOLDS


def own_label(label: str) -> str:
    """A label as it is counted: one that is called as the total is gets a name of its own."""
    return f"{label} (label)" if label == ALL else label


def names_of(ids: Sequence[HeadId], picks: Sequence[int]) -> str:
    """The heads of some entrants, which are all heads in one direction after the other, each named once."""
    return _often(str(ids[pick % len(ids)]) for pick in picks)


def _often(names: Iterable[str]) -> str:
    """The different names, those that most folds chose first."""
    return " | ".join(name for name, _ in Counter(names).most_common())


def _weights(state: State) -> Float64[np.ndarray, "replicate+1 group"]:
    """The weights of the groups: the data as they are, then every replicate."""
    drawn = group_weights(*(int(number) for number in state["draws"]))
    return np.concatenate([np.ones((1, GROUPS)), drawn])


def _nothing(name: str, rows: int, heads: int) -> Resampled:
    support = Support(np.zeros(heads, dtype=np.int64), np.zeros(heads))
    return Resampled(name, np.full((rows, heads), np.nan), support, np.zeros(heads), share_interval)


def _leads(batch: MapBatch) -> bool:
    """Whether the site is the first of its kind: the one with which texts are counted."""
    return next(site for site in batch.layout.sites if site.kind == batch.site.kind) == batch.site
