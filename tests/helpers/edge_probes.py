"""Edge probes with little training, for tests that do not need accurate probes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headscope.studies.edge_probe import linear, training

QUICK = {"seeds": 2, "checks": 2, "hidden": 16, "limit": 30, "max_length": 48, "replicates": 40, "examples": 3, "searched": 100}


@contextmanager
def short_training() -> Iterator[None]:
    """Score probes after each epoch, even if it is short, and train linear probes for at most 10 steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "MIN_STEPS", 1)
        patch.setattr(linear, "STEPS", 10)
        yield
