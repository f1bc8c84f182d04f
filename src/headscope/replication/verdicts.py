"""Verdicts on claims.

A verdict is about direction, order, or an interval, and needs an interval or a p of our number: chance alone gives a
verdict of direction or order in at most 5 % of cases (benchmarks/verdicts.py). No verdict says that a paper is
replicated: data, models and settings differ, and the row says how. Claims, numbers and verdicts become rows of a
table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from headscope.errors import RunError
from headscope.replication.numbers import LEVEL, LackingError, Number, by_head, curve, difference, find, widened, within_layers
from headscope.replication.recipe import Claim
from headscope.results.results import Results
from headscope.stats.correlation import pearson, spearman

SAME, ORDERED, WITHIN, OUTSIDE = "same direction", "same order", "in our interval", "outside our interval"
UNCLEAR, DIFFERS, NOT_TESTED = "unclear", "differs", "not tested"
INCOMPARABLE, NOT_DONE, DATA = "cannot be compared", "not done", "property of the data"
VERDICTS = (SAME, ORDERED, WITHIN, OUTSIDE, UNCLEAR, DIFFERS, NOT_TESTED, INCOMPARABLE, NOT_DONE, DATA)
CRITICAL = 1.96  # standard errors: a published number that is nearer to 0 has no direction


@dataclass(frozen=True)
class Outcome:
    """The verdict on a claim, the reason, our number, and further words on it."""

    verdict: str
    why: str = ""
    ours: Number | None = None
    detail: str = ""


def judge(claim: Claim, done: Mapping[str, Results], reasons: Mapping[str, str]) -> Outcome:
    """The outcome of a claim: `done` are the results of steps, `reasons` why others were not done."""
    lacking = [place.step for place in claim.places if place.step in reasons]
    if lacking and len(claim.items) - len(lacking) < 2:
        return Outcome(NOT_DONE, reasons[lacking[0]])
    if unlike := _unlike(claim, done):
        return Outcome(INCOMPARABLE, unlike)
    try:
        outcome = _judged(claim, done)
    except LackingError as error:
        return Outcome(INCOMPARABLE, error.problem)
    except RunError as error:  # the recipe names something that does not exist; other claims can still be judged
        return Outcome(INCOMPARABLE, str(error))
    if claim.about == "data":  # it is no evidence for or against a model
        why = {WITHIN: "the published number is in our interval", OUTSIDE: "the published number is outside our interval"}
        return replace(outcome, verdict=DATA, why=why.get(outcome.verdict, outcome.why))
    return outcome


def _unlike(claim: Claim, done: Mapping[str, Results]) -> str:
    """A setting of a step that makes the claim incomparable; "" if there is none."""
    for place in (place for place in claim.places if place.step in done):
        settings = done[place.step].manifest["settings"]
        for name, value in claim.comparable_if.items():
            if settings.get(name) != value:
                return f"{name} is {settings.get(name)} here and {value} there"
    return ""


def _judged(claim: Claim, done: Mapping[str, Results]) -> Outcome:
    if claim.items:
        return _ordered(claim, done)
    assert claim.where is not None
    results = done[claim.where.step]
    if claim.expect == "curve":
        return _shaped(claim, curve(results, claim.where))
    if claim.expect == "correlation":
        assert claim.other is not None
        first, two = by_head(results, claim.where), by_head(done[claim.other.step], claim.other)
        heads = [head for head in first if head in two]
        return _correlated([first[head] for head in heads], [two[head] for head in heads], [head[:2] for head in heads])
    ours = find(results, claim.where)
    if claim.expect in ("above", "below"):
        assert claim.threshold is not None
        return _beyond(ours, claim.threshold, claim.expect == "above")
    if claim.expect == "sign":
        assert isinstance(claim.published, float)
        return _signed(ours, claim.published - (claim.baseline or 0.0), claim.published_error or 0.0)
    if claim.expect == "within":
        assert isinstance(claim.published, float)
        return _inside(ours, claim.published)
    return Outcome(INCOMPARABLE, "" if claim.differs else "a number from other data", ours)


def _beyond(ours: Number, threshold: float, above: bool) -> Outcome:
    """Whether a number is above a threshold, or below it; a number equal to the threshold is neither."""
    if ours.untested:
        return Outcome(NOT_TESTED, ours.untested, ours)
    low, high = (ours.sure_low, ours.sure_high) if above else (-ours.sure_high, -ours.sure_low)
    line = threshold if above else -threshold
    return Outcome(SAME if low > line else DIFFERS if high <= line else UNCLEAR, "", ours)


def _signed(ours: Number, theirs: float, error: float) -> Outcome:
    if theirs == 0 or abs(theirs) < CRITICAL * error:
        return Outcome(INCOMPARABLE, "the paper's difference is not significant: there is no direction to agree with", ours)
    if ours.untested:
        return Outcome(NOT_TESTED, ours.untested, ours)
    if ours.p >= LEVEL:
        return Outcome(UNCLEAR, f"p {ours.p:.2f}", ours)
    low, high = ours.sure_low, ours.sure_high
    if math.isnan(low):  # the recipe names a p alone
        low = high = ours.value - (0.0 if math.isnan(ours.baseline) else ours.baseline)
    low, high = (low, high) if theirs > 0 else (-high, -low)
    return Outcome(SAME if low > 0 else DIFFERS if high < 0 else UNCLEAR, "", ours)


def _inside(ours: Number, published: float) -> Outcome:
    if math.isnan(ours.low):
        return Outcome(NOT_TESTED, ours.untested or "there is no interval", ours)
    if ours.high - ours.low > 2 * abs(published):
        return Outcome(UNCLEAR, "the interval is wider than twice the published number", ours)
    return Outcome(WITHIN if ours.low <= published <= ours.high else OUTSIDE, "", ours)


def _shaped(claim: Claim, values: Sequence[float]) -> Outcome:
    """The rank correlation of a curve over layers with the published one, without a verdict."""
    assert isinstance(claim.published, tuple)
    if len(values) != len(claim.published):
        return Outcome(INCOMPARABLE, f"{len(values)} layers here, {len(claim.published)} there")
    if np.isnan(values).all():
        raise LackingError("no layer has a value")
    r, n = spearman(np.array(values), np.array(claim.published))
    if math.isnan(r):
        return Outcome(INCOMPARABLE, "no correlation: all values are equal")
    detail = f"highest in layer {int(np.nanargmax(values)) + 1}"
    return Outcome(NOT_TESTED, "layers are not independent observations", Number(float(r), n=int(n)), detail)


def _correlated(first: Sequence[float], two: Sequence[float], layers: Sequence[object]) -> Outcome:
    """The outcome for a correlation over heads that should be above 0."""
    r, n = pearson(np.array(first), np.array(two))
    if math.isnan(r):
        return Outcome(INCOMPARABLE, "no correlation: all values are equal")
    p = within_layers(first, two, layers)
    ours = Number(float(r), n=int(n), p=p)
    if math.isnan(p):
        return Outcome(NOT_TESTED, "no layer has two heads that differ", ours)
    verdict = UNCLEAR if p >= LEVEL else SAME if r > 0 else DIFFERS
    return Outcome(verdict, f"p {p:.2g}, heads permuted within layers", ours)


def _ordered(claim: Claim, done: Mapping[str, Results]) -> Outcome:
    """Whether numbers are in the published order. A pair counts for or against the order if the interval of its
    difference, widened for the number of pairs, excludes 0.
    """
    ours: list[tuple[float, Number, str]] = []
    lacking: list[str] = []
    for item in claim.items:
        try:
            if item.where.step not in done:
                raise LackingError("not done")
            ours.append((item.published, find(done[item.where.step], item.where), item.name))
        except LackingError:
            lacking.append(item.name)
    if len(ours) < 2:
        raise LackingError(f"there is no number for {', '.join(lacking)}")
    pairs = [(a, b) for a, b in combinations(sorted(ours, key=lambda triple: triple[0]), 2) if a[0] < b[0]]
    sides = [_side(a[1], b[1], len(pairs)) for a, b in pairs]
    turned = sum(a[1].value > b[1].value for a, b in pairs)
    tied = sum(a[1].value == b[1].value for a, b in pairs)
    tau = (len(pairs) - tied - 2 * turned) / len(pairs)
    detail = " < ".join(f"{name} {number.value:.3g}" for _, number, name in sorted(ours, key=lambda triple: triple[1].value))
    without = [f"without {', '.join(lacking)}"] if lacking else []
    untested = [name for _, number, name in ours if number.untested]
    if -1 in sides:
        verdict, why = DIFFERS, ""
    elif untested:
        verdict, why = NOT_TESTED, f"there is no interval for {', '.join(untested)}"
    else:
        verdict = ORDERED if all(side == 1 for side in sides) else UNCLEAR
        why = "" if verdict == ORDERED else f"the order of {sides.count(0)} of {len(pairs)} pairs is not significant"
    return Outcome(verdict, "; ".join([*without, *filter(None, [why])]), Number(tau, n=len(ours)), detail)


def _side(first: Number, other: Number, pairs: int) -> int:
    """1 if `other` is significantly larger, -1 if significantly smaller, else 0."""
    low, high = difference(first.value, (first.sure_low, first.sure_high), other.value, (other.sure_low, other.sure_high))
    known = [number.documents for number in (first, other) if number.documents is not None]
    low, high = widened(other.value - first.value, (low, high), pairs, min(known, default=None))
    return 1 if low > 0 else -1 if high < 0 else 0


def published(claim: Claim) -> str:
    """The paper's number, as the text of a cell."""
    if claim.items:
        text = " < ".join(f"{item.name} {item.published:g}" for item in sorted(claim.items, key=lambda item: item.published))
    elif isinstance(claim.published, tuple):
        text = (
            f"by layer, highest in {int(np.argmax(claim.published)) + 1}"
            if claim.expect == "curve"
            else " ".join(map(_plain, claim.published))
        )
    else:
        text = "" if claim.published is None else _plain(claim.published)
        text += f" ({claim.named})" if claim.named else ""
        text += f", baseline {_plain(claim.baseline)}" if claim.baseline is not None else ""
    sources = {"by eye": "read off by eye", "recalled": "from memory, not checked", "recomputed": "computed from the notebook's scores"}
    sources |= {"notebook": "notebook", "results": "result file"}
    notes = [note for note in (claim.remark, sources.get(claim.source, "")) if note]
    return f"{text} [{'; '.join(notes)}]" if text and notes else text or "; ".join(notes) or "–"


def ours(outcome: Outcome, claim: Claim) -> str:
    """Our number, as the text of a cell."""
    number = outcome.ours
    if number is None:
        return "–"
    label = {"curve": "ρ ", "correlation": "r ", "order": "τ "}.get(claim.expect if not claim.items else "order", "")
    text = label + _short(number.value)
    text += f" [{_short(number.low)} {_short(number.high)}]" if not math.isnan(number.low) else ""
    text += f" ({number.named})" if number.named else ""
    text += f", baseline {_short(number.baseline)}" if not math.isnan(number.baseline) else ""
    text += f" ({number.tested})" if number.tested else ""
    return f"{text}: {outcome.detail}" if outcome.detail else text


def _plain(value: float) -> str:
    return f"{value:g}"


def _short(value: float) -> str:
    """A number with three significant digits, and at most four digits after the point."""
    if not math.isfinite(value) or value.is_integer():
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"


def counted(claim: Claim) -> str:
    """What n counts."""
    names = {"curve": "layers", "correlation": "heads"}
    return "numbers in order" if claim.items else names.get(claim.expect) or (claim.where.n_counts if claim.where is not None else "")


def row(claim: Claim, outcome: Outcome, differs: str, repeats: str = "") -> dict[str, Any]:
    """A row of the table of claims; `repeats` is the claim in which the same number is counted."""
    number = outcome.ours or Number(math.nan)
    single = claim.published if isinstance(claim.published, float) else None
    return {
        **{"id": claim.id, "place": claim.place, "says": claim.says, "unit": claim.unit},
        **{"published": published(claim), "ours": ours(outcome, claim), "verdict": outcome.verdict},
        **{"why": "; ".join(filter(None, [outcome.why, f"the same number as in {repeats}, counted there" if repeats else ""]))},
        **{"differs": differs, "source": claim.source, "expect": claim.expect, "published_value": single},
        **{"value": number.value, "low": number.low, "high": number.high, "n": number.n, "documents": number.documents},
        **{"n_counts": counted(claim) if number.n is not None else "", "repeats": repeats},
        "step": ", ".join(dict.fromkeys(place.step for place in claim.places)),
    }
