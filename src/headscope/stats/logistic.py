"""Logistic regression by Newton's method, on all features together or on each feature alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

STEPS, SETTLED = 60, 1e-8
BLOCK = 1 << 14  # rows converted to float64 at a time
MOST = 35.0  # logits are clipped here, where an answer is practically certain


@dataclass(frozen=True)
class LogisticFit:
    """A fitted regression: log odds = intercept + x · coefficients."""

    coefficients: Float64[np.ndarray, "feature"]
    intercept: float

    def logits(self, x: Float[np.ndarray, "n feature"]) -> Float64[np.ndarray, "n"]:
        """The log odds of each row."""
        logits: Float64[np.ndarray, "n"] = x @ self.coefficients + self.intercept
        return logits


def logistic(
    x: Float[np.ndarray, "n feature"], y: Bool[np.ndarray, "n"], penalty: float = 1.0, weights: Float[np.ndarray, "n"] | None = None
) -> LogisticFit:
    """The fit with the least log loss plus half of `penalty` times the squared coefficients. The intercept is not
    penalised.
    """
    n, k = x.shape
    share = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    truth = np.asarray(y, dtype=np.float64)
    at = np.zeros(k + 1)
    at[-1] = _logit(float(share @ truth), float(share.sum()))
    loss = _loss(x, truth, share, at, penalty)
    ridge = np.append(np.full(k, penalty), 0.0)
    for _ in range(STEPS):
        slope, curve = _derivatives(x, truth, share, at)
        step = np.linalg.lstsq(curve + np.diag(ridge), slope + ridge * at, rcond=None)[0]
        size = 1.0
        while (fewer := _loss(x, truth, share, at - size * step, penalty)) > loss + 1e-12 * abs(loss) and size > 1e-6:
            size /= 2
        at, gain, loss = at - size * step, loss - fewer, fewer
        if np.abs(size * step).max() < SETTLED or gain < 1e-13 * abs(loss):
            break
    return LogisticFit(at[:-1], float(at[-1]))


def _derivatives(
    x: Float[np.ndarray, "n feature"], truth: Float64[np.ndarray, "n"], share: Float64[np.ndarray, "n"], at: Float64[np.ndarray, "term"]
) -> tuple[Float64[np.ndarray, "term"], Float64[np.ndarray, "term term"]]:
    """Gradient and Hessian of the sum of log losses; the last term is the intercept."""
    slope, curve = np.zeros(len(at)), np.zeros((len(at), len(at)))
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        rows = np.concatenate([x[part].astype(np.float64), np.ones((len(x[part]), 1))], 1)
        chance = _chance(rows @ at)
        slope += rows.T @ (share[part] * (chance - truth[part]))
        curve += (rows * (share[part] * chance * (1 - chance))[:, None]).T @ rows
    return slope, curve


def _loss(
    x: Float[np.ndarray, "n feature"],
    truth: Float64[np.ndarray, "n"],
    share: Float64[np.ndarray, "n"],
    at: Float64[np.ndarray, "term"],
    penalty: float,
) -> float:
    total = 0.5 * penalty * float(at[:-1] @ at[:-1])
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        total += float(share[part] @ log_losses(x[part].astype(np.float64) @ at[:-1] + at[-1], truth[part]))
    return total


def one_by_one(
    x: Float[np.ndarray, "n feature"], y: Bool[np.ndarray, "n"], penalty: float = 1.0
) -> tuple[Float64[np.ndarray, "feature"], Float64[np.ndarray, "feature"]]:
    """Slope and intercept of a separate regression for each feature, all computed at once."""
    truth = np.asarray(y, dtype=np.float64)[:, None]
    slope, base = np.zeros(x.shape[1]), np.full(x.shape[1], _logit(float(truth.sum()), len(truth)))
    for _ in range(STEPS):
        sums = np.zeros((5, x.shape[1]))
        for start in range(0, len(x), BLOCK):
            rows, true = x[start : start + BLOCK].astype(np.float64), truth[start : start + BLOCK]
            chance = _chance(rows * slope + base)
            off, spread = chance - true, chance * (1 - chance)
            sums += [(off * rows).sum(0), off.sum(0), (spread * rows * rows).sum(0), (spread * rows).sum(0), spread.sum(0)]
        first, second, xx, x1, ones = sums
        first, xx = first + penalty * slope, xx + penalty
        size = np.maximum(xx * ones - x1 * x1, 1e-300)
        # Long steps would overshoot if the classes are nearly separable.
        by, base_by = (np.clip(step, -4.0, 4.0) for step in ((ones * first - x1 * second) / size, (xx * second - x1 * first) / size))
        slope, base = slope - by, base - base_by
        if max(np.abs(by).max(), np.abs(base_by).max()) < SETTLED:
            break
    return slope, base


def log_losses(logits: Float64[np.ndarray, "*shape"], truth: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The log loss of each answer, in nats."""
    losses: Float64[np.ndarray, "*shape"] = np.logaddexp(0, logits) - truth * logits
    return losses


def _chance(logits: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    chance: Float64[np.ndarray, "*shape"] = 1 / (1 + np.exp(-np.clip(logits, -MOST, MOST)))
    return chance


def _logit(part: float, whole: float) -> float:
    """The log odds of a share, which is kept away from 0 and 1."""
    share = min(max(part / whole, 1e-9), 1 - 1e-9) if whole else 0.5
    return float(np.log(share / (1 - share)))
