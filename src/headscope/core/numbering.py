"""Numbers for items with few distinct values, so that arrays of numbers can represent them."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Numbering(Generic[T]):
    """The distinct items in the order in which this process first saw them. An item's number is its index."""

    def __init__(self, *items: T) -> None:
        self.items: list[T] = []
        self._numbers: dict[T, int] = {}
        self._lock = Lock()
        for item in items:
            self.number(item)

    def number(self, item: T) -> int:
        """The number of an item, the next one if it is new."""
        number = self._numbers.get(item)
        if number is None:
            with self._lock:
                if (number := self._numbers.get(item)) is None:
                    number = len(self.items)
                    self.items.append(item)  # before its number can be found
                    self._numbers[item] = number
        return number
