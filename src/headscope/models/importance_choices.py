"""The options for computing importance from gradients, by name. This module imports nothing heavy, so that
specifications can use it.
"""

from __future__ import annotations

from typing import Literal

AbsOver = Literal["example", "token", "batch"]
Normalise = Literal["layer_l2", "none", "global_minmax"]
BATCH_TEXTS = 8
