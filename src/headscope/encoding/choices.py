"""The options for how texts become inputs, and how maps of tokens become maps of words. Quick to import, for
specifications.
"""

from __future__ import annotations

from typing import Literal, get_args

Unit = Literal["sentence", "paragraph", "document", "pair", "segment"]
Overlong = Literal["drop", "truncate", "window", "error"]
SegmentIds = Literal["pair", "zeros"]
Rows = Literal["mean", "first", "max"]
UNITS: tuple[Unit, ...] = get_args(Unit)
ROWS: tuple[Rows, ...] = get_args(Rows)
