"""How loops are compiled with numba, and run in several threads.

Threads are those of Python, since compiled loops release the interpreter lock. numba's own (`parallel=True`) compile
each loop twice, and a process that compiles a loop may then run other machine code than one that loads it from the
cache: their results differ in the last bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from numba import njit

Loop = Callable[..., Any]


def compiled(function: Loop) -> Loop:
    """Compile a function on its first call, and cache the result on disk for the next process if possible."""
    return _cached(function, True)


def careful(function: Loop) -> Loop:
    """As `compiled`, but numbers that are not finite are preserved: only the order of sums may change."""
    return _cached(function, {"reassoc", "contract", "arcp", "nsz"})


def called(function: Loop) -> Loop:
    """Compile a function that compiled loops call."""
    part: Loop = njit(fastmath=True, nogil=True)(function)
    return part


def _cached(function: Loop, fastmath: bool | set[str]) -> Loop:
    options: dict[str, Any] = {"fastmath": fastmath, "nogil": True}
    try:
        loop: Loop = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        loop = njit(**options)(function)
    return loop


def in_threads(loop: Loop, items: int, *arguments: Any) -> None:
    """Run a compiled loop over items, in as many threads as torch uses. Its last two arguments are the first item and
    the end of its part.
    """
    threads = max(1, min(torch.get_num_threads(), items))
    ends = [items * number // threads for number in range(threads + 1)]
    others = [_pool().submit(loop, *arguments, *part) for part in pairwise(ends[1:])]
    loop(*arguments, 0, ends[1])
    for other in others:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(os.cpu_count() or 1, torch.get_num_threads()), "headscope kernel")
