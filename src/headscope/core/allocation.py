"""Settings of when memory is freed: by the C library, and by Python's garbage collector."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COLLECTED = 50_000, 20, 100  # new objects before generation 0 is scanned; scans of a generation before the next one is
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of mallopt's parameters in glibc
_LARGEST = 32 << 20  # bytes: the largest threshold that glibc accepts
_KEPT = 256 << 20  # bytes


def keep_freed_memory() -> bool:
    """Let glibc keep up to 256 MiB of freed memory for the next arrays. Return whether the setting took effect.

    By default arrays of more than some 100 KiB are given back to the system as soon as they are freed, and the system
    clears every page again for the next one. Preparing a batch of 32,768 tokens spent half its time on that.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python's garbage collector run rarely. A run holds many texts and makes no reference cycles. At the default
    thresholds, garbage collection takes as long as the work on the texts.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTED)
    try:
        yield
    finally:
        gc.set_threshold(*before)
