"""How often `headscope replicate` gives a verdict by chance alone.

    python benchmarks/verdicts.py [--trials 400] [--seed 0]

Each kind of claim is judged on data without any effect, with intervals from the functions that runs and studies use.
The first table shows, by number of documents, how often a verdict agrees with the paper and how often it contradicts
it; together these should be 5 %. The second shows the candidate tests of curves over layers, on pairs of independent
random walks over 12 layers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from headscope.replication.recipe import Claim
from headscope.replication.verdicts import DIFFERS, ORDERED, SAME, judge
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.correlation import spearman
from headscope.stats.resampled import difference, mean
from headscope.stats.significance import two_sided, welch

DOCUMENTS = (4, 8, 20, 50)
LAYERS, HEADS, TEXTS = 12, 12, 6  # texts per document
Draw = Callable[[np.random.Generator, int], tuple[Claim, Results]]


def claim(expect: str, **fields: Any) -> Claim:
    """A claim about the table `t` of the step `s`."""
    where = {"step": "s", "table": "t", "column": "value", "interval": ("low", "high"), **fields.pop("where", {})}
    place = {} if "items" in fields else {"where": where}
    return Claim.model_validate({"id": "c", "place": "p", "says": "x", "expect": expect, **place, **fields})


def results(**tables: dict[str, Any]) -> Results:
    """Results of a run with these tables."""
    sites = [{"kind": "encoder", "layer": layer, "heads": HEADS} for layer in range(1, LAYERS + 1)]
    return Results({"sites": sites, "settings": {}}, {name: Table.of(columns) for name, columns in tables.items()})


def measured(generator: np.random.Generator, documents: int, columns: int) -> dict[str, Any]:
    """Numbers whose true value is 0: means over texts, from documents that differ, with intervals over documents."""
    names = [f"d{number}" for number in range(documents) for _ in range(TEXTS)]
    values = np.repeat(generator.normal(size=(documents, columns)), TEXTS, 0) + generator.normal(size=(documents * TEXTS, columns))
    found = mean(values, names, seed=int(generator.integers(2**31)))
    columns_of = {"value": found.value, "low": found.low, "high": found.high, "n": found.n, "documents": found.documents}
    return {"label": ["all"] * columns, "layer": list(range(1, columns + 1)), **{name: part.tolist() for name, part in columns_of.items()}}


def direction(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The sign of one number."""
    return claim("sign", published=1.0), results(t=measured(generator, documents, 1))


def extreme(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The largest of 144 heads against a threshold that all of them equal."""
    return claim("above", threshold=0, where={"take": "most"}), results(t=measured(generator, documents, LAYERS * HEADS))


def count(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The number of 144 heads above a threshold that all of them equal."""
    return claim("above", threshold=0, where={"take": "count", "more_than": 0.0}), results(t=measured(generator, documents, LAYERS * HEADS))


def best(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The best of 144 heads, scored on the data on which it was chosen, against a baseline that all of them equal."""
    heads = measured(generator, documents, LAYERS * HEADS)
    top = int(np.argmax(heads["value"]))
    chosen = {name: [column[top]] for name, column in heads.items()} | {"baseline": [0.0]}
    where = {"surely": ("low", "high"), "baseline": "baseline", "chosen_from": "heads"}
    return claim("sign", published=1.0, baseline=0.5, where=where), results(t=chosen, heads=heads)


def order(several: int) -> Draw:
    """The order of `several` equal numbers."""

    def draw(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
        place = {"step": "s", "table": "t", "column": "value", "interval": ("low", "high")}
        items = [{"name": str(k), "published": float(k), "where": {**place, "rows": {"layer": k}}} for k in range(1, several + 1)]
        return claim("order", items=items), results(t=measured(generator, documents, several))

    return draw


def pooled(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The t of two kinds of pairs, with the 12 layers of each pair counted as observations, tested with one value per
    pair.
    """
    parts = [np.repeat(generator.normal(size=(documents * TEXTS, 1)), LAYERS, 1) for _ in range(2)]
    parts = [part + generator.normal(size=part.shape) for part in parts]
    names = [f"d{number}" for number in range(documents) for _ in range(TEXTS)]
    means = [part.mean(1) for part in parts]
    by_layer, by_pair = welch(*(part.ravel() for part in parts)), welch(*means)
    gap = difference(means[0], names, means[1], names, seed=int(generator.integers(2**31)))
    table = {"preset": ["reference", "recommended"], "t": [float(by_layer.t), float(by_pair.t)], "p": [float(by_layer.p), float(by_pair.p)]}
    table |= {"low": [float(gap.low)] * 2, "high": [float(gap.high)] * 2, "n": [len(names) * LAYERS, len(names)]}
    where = {"column": "t", "rows": {"preset": "reference"}, "test_rows": {"preset": "recommended"}, "surely": ("low", "high"), "p": "p"}
    return claim("sign", published=9.0, published_error=1.0, where=where), results(t=table)


def over_heads(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """A correlation over 144 heads of two independent fields: random walks over layers and heavy
    tails within layers.
    """
    del documents
    places = [(layer, head) for layer in range(1, LAYERS + 1) for head in range(1, HEADS + 1)]
    columns = {"kind": ["encoder"] * len(places), "layer": [layer for layer, _ in places], "head": [head for _, head in places]}
    fields = [(walks(generator, 1).T + generator.standard_t(2, size=(LAYERS, HEADS))).ravel().tolist() for _ in range(2)]
    tables = {name: {**columns, "value": values, "n": [1] * len(places)} for name, values in zip("tu", fields, strict=True)}
    other = {"step": "s", "table": "u", "column": "value"}
    return claim("correlation", published=0.5, where={"interval": None}, other=other), results(**tables)


def curve(generator: np.random.Generator, documents: int) -> tuple[Claim, Results]:
    """The shape of a random walk over layers against that of another."""
    del documents
    theirs, ours = walks(generator, 2).tolist()
    table = {"layer": list(range(1, LAYERS + 1)), "value": ours, "n": [1] * LAYERS}
    return claim("curve", published=tuple(theirs), where={"interval": None}), results(t=table)


def walks(generator: np.random.Generator, several: int) -> np.ndarray:
    """Random walks over layers."""
    return generator.normal(size=(several, LAYERS)).cumsum(1)


KINDS: dict[str, Draw] = {
    "direction of one number": direction,
    "direction, layers pooled": pooled,
    "most of 144 heads": extreme,
    "count of 144 heads": count,
    "best of 144 heads beside a baseline": best,
    "order of 2": order(2),
    "order of 4": order(4),
    "order of 8": order(8),
    "correlation over heads": over_heads,
    "curve over layers": curve,
}


def rates(draw: Draw, documents: int, trials: int, seed: int) -> tuple[float, float]:
    """The shares of verdicts that agree and that contradict, if there is no effect."""
    generator = np.random.default_rng([seed, documents])
    found = []
    for _ in range(trials):
        asked, done = draw(generator, documents)
        found.append(judge(asked, {"s": done}, {}).verdict)
    return sum(verdict in (SAME, ORDERED) for verdict in found) / trials, found.count(DIFFERS) / trials


def curve_tests(trials: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of p < .05 in tests of a rank correlation between two independent random walks."""
    generator = np.random.default_rng(seed)
    drawn = [walks(generator, 2) for _ in range(trials)]
    for name, test in (
        ("t of ρ", _student),
        ("circular shifts", _shifts),
        ("blocks of 3 layers, permuted", _blocks),
        ("t of ρ of steps", _steps),
    ):
        yield name, sum(test(*pair) < 0.05 for pair in drawn) / trials


def _student(x: np.ndarray, y: np.ndarray) -> float:
    r, n = (float(part) for part in spearman(x, y))
    return float(two_sided(np.array(r * np.sqrt((n - 2) / max(1 - r * r, 1e-12))), np.array(n - 2)))


def _steps(x: np.ndarray, y: np.ndarray) -> float:
    return _student(np.diff(x), np.diff(y))


def _shifts(x: np.ndarray, y: np.ndarray) -> float:
    return _among(x, [np.roll(y, shift) for shift in range(LAYERS)])


def _blocks(x: np.ndarray, y: np.ndarray) -> float:
    parts = np.split(y, LAYERS // 3)
    return _among(x, [np.concatenate([parts[place] for place in places]) for places in permutations(range(len(parts)))])


def _among(x: np.ndarray, several: list[np.ndarray]) -> float:
    """The share of rearrangements, the first of which is the data, with a correlation at least as far from 0."""
    found = [abs(float(spearman(x, one)[0])) for one in several]
    return sum(value >= found[0] - 1e-12 for value in found) / len(found)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("| agrees / contradicts, % | " + " | ".join(f"{number} documents" for number in DOCUMENTS) + " |")
    print("|---|" + "--:|" * len(DOCUMENTS))
    for name, draw in KINDS.items():
        cells = [rates(draw, number, asked.trials, asked.seed) for number in DOCUMENTS]
        print(f"| {name} | " + " | ".join(f"{100 * same:.1f} / {100 * other:.1f}" for same, other in cells) + " |", flush=True)
    print("\n| test of a curve over layers | p < .05, % |\n|---|--:|")
    for name, share in curve_tests(asked.trials, asked.seed):
        print(f"| {name} | {100 * share:.1f} |")


if __name__ == "__main__":
    main()
