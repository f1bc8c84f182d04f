"""What can be said of a claim once our number is there: no more than the numbers say.

A verdict is about direction, order, or an interval. None of them says that a paper is replicated: data, models and ways differ, and the
row tells how.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from headscope.errors import RunError
from headscope.replication.numbers import LackingError, Number, by_head, curve, find
from headscope.replication.recipe import Claim
from headscope.runs.results import Results
from headscope.stats.correlation import pearson, spearman
from headscope.stats.significance import two_sided

SAME, ORDERED, WITHIN, OUTSIDE = "same direction", "same order", "in our interval", "outside our interval"
UNCLEAR, DIFFERS = "unclear", "differs"
INCOMPARABLE, NOT_DONE = "cannot be compared", "not done"
VERDICTS = (SAME, ORDERED, WITHIN, OUTSIDE, UNCLEAR, DIFFERS, INCOMPARABLE, NOT_DONE)


@dataclass(frozen=True)
class Outcome:
    """Our number beside a claim, what it says, and why it says no more."""

    verdict: str
    why: str = ""
    ours: Number | None = None
    told: str = ""


def judge(claim: Claim, done: Mapping[str, Results], reasons: Mapping[str, str]) -> Outcome:
    """The outcome of a claim: `done` are the results of steps, `reasons` why others were not done."""
    lacking = [place.step for place in claim.places if place.step in reasons]
    if lacking and len(claim.items) - len(lacking) < 2:
        return Outcome(NOT_DONE, reasons[lacking[0]])
    if unlike := _unlike(claim, done):
        return Outcome(INCOMPARABLE, unlike)
    try:
        return _judged(claim, done)
    except LackingError as error:
        return Outcome(INCOMPARABLE, error.problem)
    except RunError as error:  # of a recipe that names what is not there; the rest can still be said
        return Outcome(INCOMPARABLE, str(error))


def _unlike(claim: Claim, done: Mapping[str, Results]) -> str:
    """What a step was done with that leaves nothing to compare."""
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
        one, two = by_head(results, claim.where), by_head(done[claim.other.step], claim.other)
        heads = [head for head in one if head in two]
        return _correlated(claim, [one[head] for head in heads], [two[head] for head in heads])
    ours = find(results, claim.where)
    if claim.expect in ("above", "below"):
        assert claim.threshold is not None
        return _beyond(ours, claim.threshold, claim.expect == "above")
    if claim.expect == "sign":
        assert isinstance(claim.published, float)
        return _signed(ours, claim.published - (claim.baseline or 0.0))
    if claim.expect == "within":
        assert isinstance(claim.published, float)
        return _inside(ours, claim.published)
    return Outcome(INCOMPARABLE, "" if claim.differs else "a number of other data", ours)


def _beyond(ours: Number, threshold: float, above: bool) -> Outcome:
    difference = ours.value - threshold
    if difference == 0 and math.isnan(ours.sure_low):
        return Outcome(DIFFERS, "", ours)  # of what is counted there is none
    return Outcome(_sure(1.0 if above else -1.0, difference, ours.sure_low - threshold, ours.sure_high - threshold), "", ours)


def _signed(ours: Number, theirs: float) -> Outcome:
    if theirs == 0:
        return Outcome(INCOMPARABLE, "the paper's own difference is 0", ours)
    difference = ours.value - (0.0 if math.isnan(ours.baseline) else ours.baseline)
    if ours.p >= 0.05:
        return Outcome(UNCLEAR, f"p {ours.p:.2f}", ours)
    return Outcome(_sure(theirs, difference, ours.sure_low, ours.sure_high), "", ours)


def _sure(theirs: float, difference: float, low: float, high: float) -> str:
    """Whether a difference has the sign of theirs, where its interval leaves no doubt; without one, the sign alone speaks."""
    if low <= 0 <= high or difference == 0:
        return UNCLEAR
    return SAME if (difference > 0) == (theirs > 0) else DIFFERS


def _inside(ours: Number, published: float) -> Outcome:
    if math.isnan(ours.low):
        return Outcome(INCOMPARABLE, "there is no interval", ours)
    if ours.high - ours.low > 2 * abs(published):
        return Outcome(UNCLEAR, "the interval is wider than twice the published number", ours)
    return Outcome(WITHIN if ours.low <= published <= ours.high else OUTSIDE, "", ours)


def _shaped(claim: Claim, values: Sequence[float]) -> Outcome:
    assert isinstance(claim.published, tuple)
    if len(values) != len(claim.published):
        return Outcome(INCOMPARABLE, f"{len(values)} layers here, {len(claim.published)} there")
    if np.isnan(values).all():
        raise LackingError("no layer has a value")
    r, n = spearman(np.array(values), np.array(claim.published))
    return _by_chance(float(r), int(n), f"highest in layer {int(np.nanargmax(values)) + 1}")


def _correlated(claim: Claim, one: Sequence[float], two: Sequence[float]) -> Outcome:
    r, n = pearson(np.array(one), np.array(two))
    return _by_chance(float(r), int(n), "")


def _by_chance(r: float, n: int, told: str) -> Outcome:
    """A correlation that is to be above 0; one that chance gives more often than once in twenty leaves it open."""
    if math.isnan(r):
        return Outcome(INCOMPARABLE, "no correlation: the values are all alike")
    t = np.array(r * math.sqrt(max(n - 2, 0) / max(1 - r * r, 1e-12)))
    p = float(two_sided(t, np.array(float(max(n - 2, 1)))))
    verdict = UNCLEAR if p >= 0.05 else SAME if r > 0 else DIFFERS
    return Outcome(verdict, "", Number(r, n=n), told)


def _ordered(claim: Claim, done: Mapping[str, Results]) -> Outcome:
    found: list[tuple[float, Number, str]] = []
    lacking: list[str] = []
    for item in claim.items:
        try:
            if item.where.step not in done:
                raise LackingError("not done")
            found.append((item.published, find(done[item.where.step], item.where), item.name))
        except LackingError:
            lacking.append(item.name)
    if len(found) < 2:
        raise LackingError(f"of {', '.join(lacking)} there is none")
    pairs = [(a, b) for a, b in combinations(sorted(found, key=lambda one: one[0]), 2) if a[0] < b[0]]
    turned = [(a, b) for a, b in pairs if a[1].value >= b[1].value]
    sure = [(a, b) for a, b in turned if _least(a[1]) > _most(b[1])]
    tau = (len(pairs) - 2 * len(turned)) / len(pairs)
    told = " < ".join(f"{name} {number.value:.3g}" for _, number, name in sorted(found, key=lambda one: one[1].value))
    why = [f"without {', '.join(lacking)}"] if lacking else []
    why += ["what stands the other way round may be due to chance: intervals overlap"] if turned and not sure else []
    verdict = ORDERED if not turned else DIFFERS if sure else UNCLEAR
    return Outcome(verdict, "; ".join(why), Number(tau, n=len(found)), told)


def _least(number: Number) -> float:
    return number.value if math.isnan(number.low) else number.low


def _most(number: Number) -> float:
    return number.value if math.isnan(number.high) else number.high


def published(claim: Claim) -> str:
    """What the paper has, as a cell."""
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
    told = {"by eye": "read off by eye", "recalled": "from memory, not checked", "recomputed": "worked out from the notebook's scores"}
    told |= {"notebook": "notebook", "results": "result file"}
    notes = [note for note in (claim.remark, told.get(claim.source, "")) if note]
    return f"{text} [{'; '.join(notes)}]" if text and notes else text or "; ".join(notes) or "–"


def ours(outcome: Outcome, claim: Claim) -> str:
    """What we have, as a cell."""
    number = outcome.ours
    if number is None:
        return "–"
    label = {"curve": "ρ ", "correlation": "r ", "order": "τ "}.get(claim.expect if not claim.items else "order", "")
    text = label + _short(number.value)
    text += f" [{_short(number.low)} {_short(number.high)}]" if not math.isnan(number.low) else ""
    text += f" ({number.named})" if number.named else ""
    text += f", baseline {_short(number.baseline)}" if not math.isnan(number.baseline) else ""
    return f"{text}: {outcome.told}" if outcome.told else text


def _plain(value: float) -> str:
    return f"{value:g}"


def _short(value: float) -> str:
    """A number to three places that count, and no more digits after the point than help."""
    if not math.isfinite(value) or value.is_integer():
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"


def row(claim: Claim, outcome: Outcome, differs: str) -> dict[str, Any]:
    """A row of the table of claims."""
    number = outcome.ours or Number(math.nan)
    single = claim.published if isinstance(claim.published, float) else None
    return {
        **{"id": claim.id, "place": claim.place, "says": claim.says, "unit": claim.unit},
        **{"published": published(claim), "ours": ours(outcome, claim), "verdict": outcome.verdict, "why": outcome.why},
        **{"differs": differs, "source": claim.source, "expect": claim.expect, "published_value": single},
        **{"value": number.value, "low": number.low, "high": number.high, "n": number.n},
        "step": ", ".join(dict.fromkeys(place.step for place in claim.places)),
    }
