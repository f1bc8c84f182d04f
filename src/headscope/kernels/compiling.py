"""How loops are compiled by numba, and with how many threads they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from numba import config, get_num_threads, njit, set_num_threads

_turn = Lock()  # numba's simplest pool of threads takes one caller at a time


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled when it is first called, and kept on disk for the next process where there is room for
    it.
    """
    return _kept(function, parallel=True)


def careful(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as `compiled`, but numbers that are not finite stay so: sums may be reordered, no more."""
    return _kept(function, parallel=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


def serial(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for what is too small to be shared by threads: `using` is not needed then."""
    return _kept(function, parallel=False)


def _kept(function: Callable[..., Any], parallel: bool, fastmath: bool | set[str] = True) -> Callable[..., Any]:
    options: dict[str, Any] = {"parallel": parallel, "fastmath": fastmath, "nogil": True}
    try:
        loop: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written
        loop = njit(**options)(function)
    return loop


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of compiled loops, compiled with them."""
    part: Callable[..., Any] = njit(fastmath=True, nogil=True)(function)
    return part


@contextmanager
def using(threads: int) -> Iterator[None]:
    """Compiled loops run on so many threads, or as many as there are, one loop at a time.

    When numba starts its threads it tells OpenMP how many there are, and torch goes by that: what torch was told is
    told again.
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
