"""Numbers as pages hold them."""

from __future__ import annotations

import math

DIGITS = 5  # more than can be seen, and a third of the size


def rounded(value: float | None) -> float | None:
    """A number with as many digits as a page needs; None for what is missing."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")
