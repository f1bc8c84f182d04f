"""Overlap: a thread makes the next items while the current one is used."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import TypeVar

T = TypeVar("T")
_intervals: list[float] = []  # in seconds, at the start of each context that has not ended
_lock = Lock()


def ahead(items: Iterable[T], most: int = 1) -> Generator[T]:
    """The same items in the same order. A thread makes up to `most` of them before they are needed. An exception is
    raised in the place of the item whose making raised it.
    """
    source = iter(items)
    with _short_turns(), ThreadPoolExecutor(1) as pool:
        coming = deque(pool.submit(_next, source) for _ in range(most))
        try:
            while found := coming.popleft().result():
                coming.append(pool.submit(_next, source))
                yield found[0]
        finally:
            for future in coming:
                future.cancel()


def _next(source: Iterator[T]) -> tuple[T, ...]:
    """The next item; nothing at the end."""
    return tuple(islice(source, 1))


@contextmanager
def _short_turns() -> Iterator[None]:
    """A context in which threads of this process switch every 0.01 ms instead of 5 ms. The thread that launches GPU
    kernels releases the interpreter lock with every launch, and would otherwise wait for the threads that prepare its
    work.
    """
    with _lock:
        _intervals.append(sys.getswitchinterval())
        sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        with _lock:  # contexts of several threads end in any order: the last one restores what the first one found
            first = _intervals[0]
            _intervals.pop()
            if not _intervals:
                sys.setswitchinterval(first)
