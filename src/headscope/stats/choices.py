"""Choices of statistics, by name. Specifications use them, so that nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal, get_args

# How the difference of two systems on the same examples is tested (stats/contrast.py).
Test = Literal["mcnemar", "bootstrap", "paired_t", "unpaired_t"]
TESTS: tuple[Test, ...] = get_args(Test)
# What becomes of a layer that makes a score worse (stats/layers.py).
Negatives = Literal["keep", "clip", "running_max"]
NEGATIVES: tuple[Negatives, ...] = get_args(Negatives)
