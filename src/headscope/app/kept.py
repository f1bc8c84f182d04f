"""The last few things that were made, so that they need not be made for every visitor."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

from headscope.results.results import Results

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by the names of the runs they are about, each good as long as these are the runs it was made of."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[tuple[str, ...], tuple[tuple[Results, ...], T]] = OrderedDict()

    def get(self, names: tuple[str, ...], runs: tuple[Results, ...]) -> T | None:
        """The value, if it is there; from any thread."""
        held, value = self._held.get(names, ((), None))
        if len(held) != len(runs) or any(one is not other for one, other in zip(held, runs, strict=True)):
            return None
        with suppress(KeyError):  # the thread that puts may just have dropped it
            self._held.move_to_end(names)
        return value

    def put(self, names: tuple[str, ...], runs: tuple[Results, ...], value: T) -> None:
        """Keep a value, and drop what was used least lately; from one thread only."""
        self._held[names] = runs, value
        self._held.move_to_end(names)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
