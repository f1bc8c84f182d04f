"""The coverage of intervals and the error rates of p values, simulated by number of documents, before (percentiles) and
after (`stats.inference`).

    python benchmarks/interval_coverage.py [--quick] [--trials 300] [--documents 4 6 8 ...] [--markdown]

Documents are drawn from a synthetic population whose lengths, skewness and tails are fitted to EWT: lengths are
lognormal, documents differ from each other in ways that heads share, and averaging within a document adds noise. The
true value of each of 144 heads is known. Each row of the table is a kind of number that headscope prints. `coverage` is
the share of 95 % intervals that contain the true value. `p<.05` and `p<.01` are the shares of p values below these
levels if there is no effect. `family` is the share of trials in which at least one of 144 heads passes Holm's
correction at .05 although there is no effect. All are in per cent; the nominal values are 95, 5, 1 and at most 5. A
dash means that nothing is printed: means have no p value, and below 6 documents there is neither interval nor p.
Numbers in brackets are those of the earlier methods: percentile intervals; p values by the normal approximation (runs),
by the share of replicates beyond 0 (loss; 500 replicates are too few for any head to pass Holm, with 10,000 some do)
and by McNemar's test over examples (right or wrong).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import gamma

from headscope.stats.bootstrap import poisson_weights
from headscope.stats.classification import Accuracy
from headscope.stats.contrast import contrast, mcnemar, replicated_differences
from headscope.stats.inference import FEWEST, Support, interval, p_value
from headscope.stats.scores import Mean
from headscope.stats.selection import crossfit, share
from headscope.stats.significance import holm

HEADS = 144
REPLICATES = 500
DOCUMENTS = (4, 6, 8, 10, 20, 50, 100)
POPULATION = 100_000  # documents from which true values are computed


class Bounds(NamedTuple):
    """Intervals and p values of all heads in one trial, and the true values that the p values test."""

    truth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray


Trial = tuple[Bounds, Bounds]  # before, after


class Documents(NamedTuple):
    """Lengths [document], and the value of every head in every document [document, head]."""

    length: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Population:
    """Documents with lengths and head values. `tail` is the standard deviation of log length, `between` that of
    documents (logits).
    """

    tail: float = 0.8
    between: float = 0.35
    within: float = 1.0
    seed: int = 0

    def heads(self) -> tuple[np.ndarray, np.ndarray]:
        """For each head, its mean (a logit) and its loadings on three traits of documents."""
        rng = np.random.default_rng(self.seed)
        return rng.normal(-1.5, 1.2, HEADS), rng.normal(0, 1, (3, HEADS)) / np.sqrt(3)

    def draw(self, number: int, rng: np.random.Generator, even: bool = False) -> Documents:
        """Documents drawn at random; all of the same length if `even`."""
        level, loading = self.heads()
        length = np.full(number, 20.0) if even else np.maximum(1, np.rint(12 * np.exp(self.tail * rng.standard_normal(number))))
        traits = rng.standard_t(5, (number, 3)) + 0.3 * (np.log(length)[:, None] - np.log(12))  # long documents differ in kind
        own = rng.standard_normal((number, HEADS))
        noise = rng.standard_normal((number, HEADS)) / np.sqrt(length)[:, None]
        return Documents(length, expit(level + self.between * (traits @ loading + 0.5 * own) + self.within * noise))

    @cache  # noqa: B019
    def truth(self, even: bool = False) -> np.ndarray:
        """The value of every head over very many documents."""
        documents = self.draw(POPULATION, np.random.default_rng([self.seed, even]), even)
        found: np.ndarray = mean_of(documents, np.ones((POPULATION, 1)))[0]
        return found


def mean_of(documents: Documents, weights: np.ndarray) -> np.ndarray:
    """Means over all documents, for every column of weights."""
    drawn = weights.T @ documents.length
    with np.errstate(invalid="ignore", divide="ignore"):
        means: np.ndarray = (weights.T @ (documents.values * documents.length[:, None])) / drawn[:, None]
    return means


def _names(trial: int, number: int, run: str = "") -> list[str]:
    return [f"{run}{trial}/{document}" for document in range(number)]


def _both(truth: np.ndarray, value: np.ndarray, drawn: np.ndarray, support: Support, before_p: str) -> Trial:
    """The results of percentiles and of the package for values with replicates."""
    drawn = drawn[np.isfinite(drawn).all(1)]  # with few documents, some replicates draw none
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    gap, gaps = value - truth, drawn - truth
    if before_p == "none":
        p = np.full(gap.shape, np.nan)
    elif before_p == "normal":
        p = 2 * ndtr(-np.abs(gap) / gaps.std(axis=0, ddof=1))
    else:
        p = np.maximum(2 / len(gaps), 2 * np.minimum((gaps <= 0).sum(0), (gaps >= 0).sum(0)) / len(gaps))
    after = Bounds(truth, *interval(value, drawn, support), p_value(gap, gaps, support) if before_p != "none" else p)
    return Bounds(truth, low, high, np.minimum(1, p)), after


def means(population: Population, number: int, trials: int, even: bool) -> Iterator[Trial]:
    """A mean over texts or rows, from documents of equal length or not."""
    rng = np.random.default_rng([number, 1, even])
    truth = population.truth(even)
    for trial in range(trials):
        documents = population.draw(number, rng, even)
        drawn = mean_of(documents, poisson_weights(_names(trial, number), REPLICATES))
        yield _both(truth, drawn[0], drawn[1:], Support.of(documents.length), "none")


def paired_runs(population: Population, number: int, trials: int) -> Iterator[Trial]:
    """The difference of two runs over the same documents, in which another model gives every head other values."""
    rng = np.random.default_rng([number, 2])
    order = np.random.default_rng(3).permutation(HEADS)

    truth = population.truth() - population.truth()[order]
    for trial in range(trials):
        documents = population.draw(number, rng)
        drawn = mean_of(documents, poisson_weights(_names(trial, number), REPLICATES))
        drawn = drawn - drawn[:, order]
        support = Support.of(documents.length)
        yield _both(truth, drawn[0], drawn[1:], support.both(support), "normal")


def separate_runs(population: Population, number: int, trials: int) -> Iterator[Trial]:
    """The difference of two runs over different documents, the same number in each."""
    rng = np.random.default_rng([number, 4])
    for trial in range(trials):
        runs = [population.draw(number, rng) for _ in range(2)]
        drawn = [mean_of(one, poisson_weights(_names(trial, number, name), REPLICATES)) for name, one in zip("ab", runs, strict=True)]
        supports = [Support.of(one.length) for one in runs]
        variances = [np.nanvar(one[1:], axis=0, ddof=1) for one in drawn]
        support = supports[0].apart(supports[1], (variances[0], variances[1]))
        yield _both(np.zeros(HEADS), drawn[1][0] - drawn[0][0], drawn[1][1:] - drawn[0][1:], support, "normal")


def best_heads(population: Population, number: int, trials: int) -> Iterator[Trial]:
    """The cross-fitted best head of a label with about three cases per document. Coverage is that
    of the chosen heads.
    """
    rng = np.random.default_rng([number, 5])
    level, _ = population.heads()
    for trial in range(trials):
        documents = population.draw(number, rng)
        n = rng.poisson(documents.length * 0.25)
        ability = expit(level + population.between * 2 * rng.standard_normal((number, 1)) + rng.standard_normal((number, HEADS)) * 0.3)
        right = rng.binomial(n[:, None], ability)
        best = crossfit(n, right)
        if not best.n.sum():
            continue
        half = (np.cumsum(n > 0) - 1) % 2
        true = _mean_ability(population)[np.array(best.picks)][half]
        truth = np.array([(true * n).sum() / n.sum()])
        weights = poisson_weights(_names(trial, number), REPLICATES).T
        before, drawn = share(best.right, best.n, weights)[:, None], best.resampled(weights)[:, None]
        fixed, after = (_both(truth, values[0], values[1:], Support.of(best.n), "none") for values in (before, drawn))
        yield fixed[0], after[1]


@cache
def _mean_ability(population: Population) -> np.ndarray:
    level, _ = population.heads()
    draws = np.random.default_rng(6).standard_normal(20_000)[:, None] * np.hypot(population.between * 2, 0.3)
    found: np.ndarray = expit(level + draws).mean(0)
    return found


def contrasts(population: Population, number: int, trials: int) -> Iterator[Trial]:
    """The change of the loss without a head (ablation, pruning), for systems that equal the base over all documents."""
    rng = np.random.default_rng([number, 7])
    score = Mean("loss", "lower")
    for trial in range(trials):
        documents = population.draw(number, rng)
        examples = documents.length.astype(int)
        names = np.repeat(_names(trial, number), examples).tolist()
        own = gamma.rvs(2, size=(number, HEADS), random_state=rng) - 2  # skewed: a head matters much in few documents
        gaps = 0.1 * np.repeat(own, examples, 0) + 0.3 * rng.standard_normal((len(names), HEADS))
        base = rng.gamma(4, 1, len(names))
        systems = score.statistics((base[:, None] + gaps).T)
        start = score.statistics(base)
        drawn = replicated_differences(score, start, systems, names, REPLICATES, 0)
        found = contrast(score, start, systems, names, "bootstrap", REPLICATES)
        before, _ = _both(np.zeros(HEADS), found.difference, drawn, Support.of(documents.length), "flips")
        yield before, Bounds(np.zeros(HEADS), found.low, found.high, found.p)


def answers(population: Population, number: int, trials: int) -> Iterator[Trial]:
    """The same for answers that are right or wrong. The earlier method is McNemar's test, which treats the examples of
    a document as independent.
    """
    rng = np.random.default_rng([number, 8])
    score = Accuracy()
    for trial in range(trials):
        documents = population.draw(number, rng)
        examples = documents.length.astype(int)
        names = np.repeat(_names(trial, number), examples).tolist()
        lean = np.repeat(0.5 + 0.4 * np.tanh(rng.standard_normal((number, HEADS))), examples, 0).T  # which system is better in a document
        base = rng.random(len(names)) < 0.5
        system = base ^ (rng.random((HEADS, len(names))) < 0.3 * np.where(base, 1 - lean, lean))
        ones = np.ones(len(names), dtype=int)
        start, others = (score.statistics(side.astype(int), ones) for side in (base, system))
        found = contrast(score, start, others, names, "bootstrap", REPLICATES)
        drawn = replicated_differences(score, start, others, names, REPLICATES, 0)
        truth = np.zeros(HEADS)
        before, _ = _both(truth, found.difference, drawn, Support.of(documents.length), "flips")
        yield before._replace(p=mcnemar(base, system)), Bounds(truth, found.low, found.high, found.p)


@dataclass
class Tally:
    """The coverage and error rates of one method, trial by trial."""

    held: list[float] = field(default_factory=list)
    five: list[float] = field(default_factory=list)
    one: list[float] = field(default_factory=list)
    family: list[float] = field(default_factory=list)

    def add(self, bounds: Bounds) -> None:
        """Count one trial. Intervals and p values that are missing do not count."""
        given = np.isfinite(bounds.low)
        if given.any():
            self.held.append(float(((bounds.low <= bounds.truth) & (bounds.truth <= bounds.high))[given].mean()))
        if (tested := np.isfinite(bounds.p)).any():
            p = bounds.p[tested]
            self.five.append(float((p < 0.05).mean()))
            self.one.append(float((p < 0.01).mean()))
            self.family.append(float((holm(p) < 0.05).any()))

    def cells(self) -> list[str]:
        """Percentages; a dash if a method gives nothing."""
        return [f"{100 * np.mean(one):.1f}" if one else "–" for one in (self.held, self.five, self.one, self.family)]


KINDS: dict[str, Callable[[Population, int, int], Iterator[Trial]]] = {
    "mean, documents alike": lambda population, number, trials: means(population, number, trials, even=True),
    "ratio, documents of unequal length": lambda population, number, trials: means(population, number, trials, even=False),
    "difference of runs, same documents": paired_runs,
    "difference of runs, other documents": separate_runs,
    "best head (cross-fitted)": best_heads,
    "ablation and pruning, loss": contrasts,
    "ablation, right or wrong": answers,
}


def table(numbers: Sequence[int], trials: int) -> Iterator[list[str]]:
    """Rows: kind, documents, then coverage, errors at .05 and .01 and of the family, each for the new method and, in
    brackets, for the earlier one.
    """
    population = Population()
    for name, simulate in KINDS.items():
        for number in numbers:
            before, after = Tally(), Tally()
            for first, second in simulate(population, number, trials):
                before.add(first)
                after.add(second)
            pairs = zip(after.cells(), before.cells(), strict=True)
            yield [name, str(number), *(f"{new} ({old})" if (new, old) != ("–", "–") else "–" for new, old in pairs)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="coverage of intervals and error rates of p values by number of documents")
    parser.add_argument("--quick", action="store_true", help="30 trials: a test that it works")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--documents", type=int, nargs="+", default=list(DOCUMENTS))
    parser.add_argument("--markdown", action="store_true", help="as the table of docs/believe.md")
    options = parser.parse_args()
    head = ["number", "documents", "coverage", "p<.05", "p<.01", "family"]
    print(f"after (before), per cent; below {FEWEST} documents nothing is printed\n")
    line = "| {} |" if options.markdown else "{}"
    join = " | " if options.markdown else "  "
    widths = [36, 9, 14, 14, 14, 14]
    print(line.format(join.join(cell.ljust(width) for cell, width in zip(head, widths, strict=True))))
    if options.markdown:
        print("|" + "---|" * len(head))
    for row in table(options.documents, 30 if options.quick else options.trials):
        print(line.format(join.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))), flush=True)


if __name__ == "__main__":
    main()
