"""Choices of how texts become model inputs, by name. Nothing heavy is imported here, so that specifications can use them."""

from __future__ import annotations

from typing import Literal, get_args

Unit = Literal["sentence", "paragraph", "document", "pair", "segment"]
Overlong = Literal["drop", "truncate", "window", "error"]
SegmentIds = Literal["pair", "zeros"]
UNITS: tuple[Unit, ...] = get_args(Unit)
