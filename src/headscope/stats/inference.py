"""Intervals and p values from bootstrap replicates over documents, valid for few or unequal documents too.

A percentile interval from few documents is too narrow, because it treats the spread between documents as known. Here
the spread is an estimate, so the quantiles are those of Student's t. The degrees of freedom are the effective number of
documents: ten documents, one of which has half of the cases, are as informative as about four. If documents are skewed,
the side on which t is too narrow is widened by Hall's transformation (1992) with the skewness of the replicates.
Skewness is limited to .4, since the transformation widens less again beyond that, and the widening to twice the width.
Since this also widens by chance, simulation shows that no degree of freedom needs to be subtracted.
`benchmarks/interval_coverage.py` measures the coverage (docs/believe.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.stats.significance import two_sided

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int64

Bounds = tuple[np.ndarray, np.ndarray]  # lower and upper

FEWEST = 6  # documents: with fewer, there is neither interval nor p
FEW = 20  # documents: with fewer, results are marked
SHARE = (0.0, 1.0)  # the limits of a share
_SKEWED = 0.4  # the largest skewness used: beyond it, Hall's transformation widens less again
_WIDEST = 2.0  # times t: the largest widening by skewness
_STRAIGHT = 1e-6  # skewness below which nothing is transformed
_ROUNDING = 0.02  # by which a value may be beyond its limits: rows of weights in bfloat16 sum to 1.004


@dataclass(frozen=True)
class Support:
    """The documents behind a number, and their effective number: how many documents of equal weight would give as much
    information.
    """

    documents: Int64[np.ndarray, "*shape"]
    effective: Float64[np.ndarray, "*shape"]

    @classmethod
    def of(cls, weights: Float[np.ndarray, "document *shape"]) -> Support:
        """The documents whose weight (cases, texts, rows) is above 0, counted; the effective number is Kish's."""
        sizes = np.asarray(weights, dtype=np.float64)
        return cls(np.asarray((sizes > 0).sum(0)), np.asarray(_effective(sizes.sum(0), (sizes**2).sum(0))))

    @classmethod
    def alike(cls, documents: int) -> Support:
        """Documents of equal weight."""
        return cls.of(np.ones(documents))

    @classmethod
    def in_groups(cls, weights: Float[np.ndarray, "group"], documents: int | None) -> Support:
        """Documents whose groups, with these weights, are resampled. If documents were not counted, groups are counted
        instead.
        """
        groups = cls.of(weights)
        return groups if documents is None else cls(np.array(documents), groups.effective)

    @classmethod
    def drawn(cls, weight: Float64[np.ndarray, "replicate+1 *shape"]) -> Support:
        """An estimate from replicates, if documents were not counted: the variance of their total weight is the sum of
        squared weights. There are at least as many documents as the effective number. A total that is always a whole
        multiple of the data is that of one document.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            times = weight[1:] / weight[:1]
            squares = ((times - 1) ** 2).sum(0) / max(1, len(times))
            several = (np.abs(times - np.rint(times)) > 1e-9).any(0)
        effective = np.where(several, _effective(np.ones_like(squares), squares), weight[0] > 0)
        return cls(np.ceil(effective - 1e-9).astype(np.int64), effective)

    def both(self, other: Support) -> Support:
        """The support of a difference between numbers of the same documents: the smaller of the two."""
        return Support(np.minimum(self.documents, other.documents), np.minimum(self.effective, other.effective))

    def apart(self, other: Support, variances: tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]) -> Support:
        """The support of a difference of independent numbers with these variances (Welch and Satterthwaite)."""
        first, second = variances
        with np.errstate(invalid="ignore", divide="ignore"):
            effective = (first + second) ** 2 / (first**2 / self.effective + second**2 / other.effective)
        return Support(
            np.minimum(self.documents, other.documents),
            np.where(np.isfinite(effective), effective, np.minimum(self.effective, other.effective)),
        )

    def where(self, chosen: Bool[np.ndarray, "*shape"]) -> Support:
        """The same support, with no documents wherever `chosen` is False."""
        return Support(np.where(chosen, self.documents, 0), np.where(chosen, self.effective, 0.0))

    def __getitem__(self, place: Any) -> Support:
        return Support(self.documents[place], self.effective[place])

    @property
    def usable(self) -> Bool[np.ndarray, "*shape"]:
        """Whether there are enough documents for an interval, and no single one has nearly all of the weight."""
        return (self.documents >= FEWEST) & (self.effective >= 2)


def reason(documents: int, usable: bool = False) -> str:
    """Why a number from `documents` documents has no interval; "" if it has one."""
    if usable:
        return ""
    if documents < FEWEST:
        return f"{documents} document{'s' * (documents != 1)}: intervals and p values need {FEWEST} or more"
    return "one document has nearly all cases, so there is no interval"


def interval(
    value: Float64[np.ndarray, "*shape"],
    replicates: Float64[np.ndarray, "replicate *shape"],
    support: Support,
    within: tuple[float | Float64[np.ndarray, "*shape"], float | Float64[np.ndarray, "*shape"]] = (-np.inf, np.inf),
    confidence: float = 0.95,
) -> Bounds:
    """Bounds of a value; NaN if its support is not usable. `within` are the limits of the true value, which a value may
    exceed a little by rounding.
    """
    from scipy.special import stdtrit

    if np.any((value < within[0] - _ROUNDING) | (value > within[1] + _ROUNDING)):
        raise ValueError(f"a value is not within its limits {within}: {value}")

    error, skewness, usable = _moments(value, replicates, support)
    t = stdtrit(np.where(usable, support.effective, 1.0), 0.5 + confidence / 2)
    below, above = (np.clip(sign * _untransformed(sign * t, skewness), t, _WIDEST * t) * error for sign in (1, -1))
    return np.maximum(value - below, np.minimum(value, within[0])), np.minimum(value + above, np.maximum(value, within[1]))


def share_interval(value: Float64[np.ndarray, "*shape"], replicates: Float64[np.ndarray, "replicate *shape"], support: Support) -> Bounds:
    """Bounds of a share of cases; if replicates do not vary, those of the exact binomial interval."""
    low, high = interval(value, replicates, support, SHARE)
    least = 0.025 ** (1 / np.maximum(support.effective, 1))
    return np.where((value == 1) & (low == 1), least, low), np.where((value == 0) & (high == 0), 1 - least, high)


def p_value(
    value: Float64[np.ndarray, "*shape"], replicates: Float64[np.ndarray, "replicate *shape"], support: Support
) -> Float64[np.ndarray, "*shape"]:
    """The two-sided p of a value against 0: below .05 if the 95 % interval excludes 0.

    NaN if the support is not usable. If replicates do not vary, all documents agree, and the sign test over documents
    gives p.
    """
    error, skewness, usable = _moments(value, replicates, support)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(error > 0, value / error, 0.0)
    far = np.clip(np.sign(t) * _transformed(t, skewness), np.abs(t) / _WIDEST, np.abs(t))
    p = np.where(
        error > 0, two_sided(far, np.where(usable, support.effective, 1.0)), np.where(value == 0, 1.0, 2.0 ** (1 - support.documents))
    )
    return np.where(usable, p, np.nan)


def _moments(
    value: Float64[np.ndarray, "*shape"], replicates: Float64[np.ndarray, "replicate *shape"], support: Support
) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"], Bool[np.ndarray, "*shape"]]:
    """Standard deviation and limited skewness of the finite replicates, and where they are usable."""
    valid = np.isfinite(replicates)
    n = valid.sum(0)
    usable = np.broadcast_to(support.usable, np.shape(value)) & np.isfinite(value) & (n > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = replicates - np.where(valid, replicates, 0).sum(0) / n
        drawn[~valid] = 0
        error = np.sqrt((drawn**2).sum(0) / (n - 1))
        same = error <= 1e-12 * np.abs(value)  # replicates of the same value differ by rounding only
        skewness = np.where(same, 0.0, (drawn**3).sum(0) / n / error**3)
    return np.where(usable, np.where(same, 0.0, error), np.nan), np.where(usable, np.clip(skewness, -_SKEWED, _SKEWED), 0.0), usable


def _transformed(t: Float64[np.ndarray, "*shape"], skewness: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Hall's transformation of a t statistic, which removes the effect of its numerator's skewness."""
    transformed: Float64[np.ndarray, "*shape"] = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
    return transformed


def _untransformed(t: Float64[np.ndarray, "*shape"], skewness: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    bent = np.where(np.abs(skewness) > _STRAIGHT, skewness, 1.0)
    return np.where(bent == skewness, 3 / bent * (np.cbrt(1 + bent * (t - bent / 6)) - 1), t)


def _effective(total: np.ndarray, squares: np.ndarray) -> Float64[np.ndarray, "*shape"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        effective: Float64[np.ndarray, "*shape"] = np.where(squares > 0, total**2 / squares, 0.0)
    return effective
