"""Choices of how importance is summed up, by name. Nothing heavy is imported here, so that specifications can use
them.
"""

from __future__ import annotations

from typing import Literal

AbsOver = Literal["example", "token", "batch"]
Normalise = Literal["layer_l2", "none", "global_minmax"]
BATCH_TEXTS = 8
