"""The time of a run by section. Unless `profiling` is on, no time is measured and no device is waited for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

T = TypeVar("T")
OTHER = "everything else"
_WIDTH = 52  # characters of a section's name


def settle() -> None:
    """Wait for the pending work of a GPU, so that its time counts for the section that started it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Profile:
    """Seconds per section. The time of a nested section counts only for the inner section, so that the sections add up
    to the total. Other threads are not counted.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, wait: Callable[[], None] = settle) -> None:
        self._clock = clock
        self._wait = wait
        self._thread = threading.get_ident()
        self._seconds: dict[str, float] = {OTHER: 0.0}
        self._open = [OTHER]
        self._since = clock()

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Count the time of the block for the section `name`."""
        if threading.get_ident() != self._thread:
            yield
            return
        self._turn()
        self._open.append(name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def _turn(self) -> None:
        """Count the time since the last turn for the innermost section."""
        self._wait()
        now = self._clock()
        self._seconds[self._open[-1]] = self._seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now

    def sections(self) -> dict[str, float]:
        """Seconds of each section so far, in the order in which they first ended; `OTHER` is the last."""
        self._turn()
        return {**{name: seconds for name, seconds in self._seconds.items() if name != OTHER}, OTHER: self._seconds[OTHER]}

    def lines(self) -> list[str]:
        """A table of at most 80 columns: section, seconds, share."""
        sections = self.sections()
        total = sum(sections.values())
        rows = [(name if len(name) <= _WIDTH else f"{name[: _WIDTH - 1]}…", seconds) for name, seconds in sections.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"{'section':{width}}  {'seconds':>10}  {'share':>7}"]
        for name, seconds in [*rows, ("total", total)]:
            share = seconds / total if total else 0.0
            lines.append(f"{name:{width}}  {seconds:10,.3f}  {share:7.1%}")
        return lines


_active: Profile | None = None


@contextmanager
def profiling(profile: Profile | None = None) -> Iterator[Profile]:
    """A profile that `timing` writes to while the block runs."""
    global _active
    before, _active = _active, profile or Profile()
    try:
        yield _active
    finally:
        _active = before


def is_profiling() -> bool:
    """Whether a profile is being made."""
    return _active is not None


def timing(name: str) -> AbstractContextManager[None]:
    """Count the time of a block for the section `name`, if a profile is being made."""
    return nullcontext() if _active is None else _active.timing(name)


def timed(items: Iterable[T], name: str) -> Iterable[T]:
    """Iterate over the items. The time to produce each item counts for the section `name`, if a profile is being
    made.
    """
    return items if _active is None else _each(iter(items), name)


def _each(items: Iterator[T], name: str) -> Iterator[T]:
    end = object()
    while True:
        with timing(name):
            item = next(items, end)
        if item is end:
            return
        yield item  # type: ignore[misc]  # of type T: it is not the end
