"""Statistical methods that can be chosen by name. Specifications import this module, so it imports nothing heavy."""

from __future__ import annotations

from typing import Literal, get_args

# How the difference of two systems on the same examples is tested (stats/contrast.py).
Test = Literal["mcnemar", "bootstrap", "paired_t", "unpaired_t"]
TESTS: tuple[Test, ...] = get_args(Test)
# How a layer that makes a score worse is treated (stats/layers.py).
Negatives = Literal["keep", "clip", "running_max"]
NEGATIVES: tuple[Negatives, ...] = get_args(Negatives)
