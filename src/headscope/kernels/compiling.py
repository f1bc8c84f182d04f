"""Options with which numba compiles loops, and the number of threads they use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from numba import config, get_num_threads, njit, set_num_threads

_turn = Lock()  # numba's simplest pool of threads takes one caller at a time


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, and cache the result on disk for the next process if possible."""
    return _kept(function, parallel=True)


def careful(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, but numbers that are not finite are preserved: only the order of sums may change."""
    return _kept(function, parallel=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


def serial(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for functions too small for several threads; they need no `using`."""
    return _kept(function, parallel=False)


def _kept(function: Callable[..., Any], parallel: bool, fastmath: bool | set[str] = True) -> Callable[..., Any]:
    options: dict[str, Any] = {"parallel": parallel, "fastmath": fastmath, "nogil": True}
    try:
        loop: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        loop = njit(**options)(function)
    return loop


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that compiled loops call."""
    part: Callable[..., Any] = njit(fastmath=True, nogil=True)(function)
    return part


@contextmanager
def using(threads: int) -> Iterator[None]:
    """A context in which compiled loops use this number of threads (all if None), one loop at a time.

    When numba starts its threads it changes the number of OpenMP threads, which torch uses too. So the setting of torch
    is restored.
    """
    with _turn:
        others = torch.get_num_threads()
        before = get_num_threads()  # starts them
        if torch.get_num_threads() != others:
            torch.set_num_threads(others)
        set_num_threads(max(1, min(threads, int(config.NUMBA_NUM_THREADS))))
        try:
            yield
        finally:
            set_num_threads(before)
