"""How the C library gives freed memory back to the system."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of mallopt's parameters in glibc
_LARGEST = 32 << 20  # bytes: the largest threshold that glibc accepts
_KEPT = 256 << 20  # bytes


def keep_freed_memory() -> bool:
    """Let glibc keep up to 256 MiB of freed memory for the next arrays; whether it could be told so.

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
