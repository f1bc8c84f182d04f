"""Inputs that are nearly valid: the bytes of a valid input, changed as damaged files are and as attackers would."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

# Line breaks, also LS, PS, NEL and others
BREAKS = (b"\r", b"\r\n", b"\n\n", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c")
SPACES = (b"\t", b" ", b"\xc2\xa0", b"\xe3\x80\x80", b"\xe2\x80\x8b", b"\t\t")
BROKEN = (
    *(
        b"\x00",
        b"\xff",
        b"\xc0\xaf",
        b"\xe2\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
    ),  # NUL, overlong, cut off, surrogate, out of range
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff\x00", b"\\ud800", b"\\u0000", b"\xcc\x88", b"\xe2\x80\xae", b"\xf0\x9f\x90\x88"),
)
NUMBERS = (b"0", b"-1", b"1", b"2", b"00", b"+1", b"1_0", b"1e999", b"NaN", b"-inf", b"0x10", b"1.5", b"\xd9\xa1", b"\xc2\xb2")
HUGE = (b"9" * 10, b"9" * 20, b"9" * 400, b"9" * 5000, b"-" + b"9" * 30, b"2147483648", b"18446744073709551616", b"1e308")
NESTS = ((b"(", b")"), (b"[", b"]"), (b'{"a":', b"}"), (b"<e1>", b"</e1>"), (b"(1", b"1)"), (b"(NP", b")"), (b"a.", b""))
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**64, 10**30, -(10**9), 0.5, 1e308, float("nan"), float("inf"), "", " ", "a", "0", "\x00"),
    *("../../etc/passwd", "/etc/passwd", "<script>", "{{7*7}}", "%s%n", "\ud800", "é" * 300, "x" * 20_000, [], {}, [[]], [None], {"": {}}),
    *([0] * 50, ["a", 1, None], {"a": {"b": {"c": []}}}, [[[[[[[[]]]]]]]]),
)
_NUMBER = re.compile(rb"[0-9]+")


class Mutator:
    """Changes inputs at random; the same seed makes the same changes. `tokens` are meaningful in the format."""

    def __init__(self, seed: str, tokens: Sequence[bytes] = ()) -> None:
        self.random = random.Random(seed)
        self._tokens = (*tokens, *BREAKS, *SPACES, *BROKEN, *NUMBERS)
        self._ways: tuple[Callable[[bytes], bytes], ...] = (
            *(self._flip, self._delete, self._duplicate, self._insert, self._insert, self._replace, self._replace, self._truncate),
            *(self._number, self._lines, self._lines, self._cells, self._cells, self._breaks, self._repeat, self._nest, self._again),
        )

    def mutated(self, data: bytes, others: Sequence[bytes]) -> bytes:
        """The input after a few changes, cut to at most 100,000 bytes."""
        if others and self.random.random() < 0.1:
            data = self._splice(data, self.random.choice(others))
        for _ in range(min(1 + int(self.random.expovariate(0.6)), 8)):
            data = self.random.choice(self._ways)(data)
        return data[:100_000]

    def _place(self, data: bytes, longest: int = 16) -> tuple[int, int]:
        start = self.random.randint(0, len(data))
        return start, min(len(data), start + self.random.randint(0, longest))

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        place = self.random.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << self.random.randrange(8)]) + data[place + 1 :]

    def _delete(self, data: bytes) -> bytes:
        start, end = self._place(data, 40)
        return data[:start] + data[end:]

    def _duplicate(self, data: bytes) -> bytes:
        start, end = self._place(data, 200)
        return data[:end] + data[start:]

    def _truncate(self, data: bytes) -> bytes:
        return data[: self.random.randint(0, len(data))]

    def _insert(self, data: bytes) -> bytes:
        start, _ = self._place(data)
        return data[:start] + self.random.choice(self._tokens) + data[start:]

    def _replace(self, data: bytes) -> bytes:
        start, end = self._place(data, 6)
        return data[:start] + (self.random.choice(self._tokens) if self.random.random() < 0.8 else self.random.randbytes(3)) + data[end:]

    def _number(self, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return data
        one = self.random.choice(found)
        return data[: one.start()] + self.random.choice((*NUMBERS, *HUGE)) + data[one.end() :]

    def _lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        a, b = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        way = self.random.randrange(4)
        if way == 0:
            lines[a], lines[b] = lines[b], lines[a]
        elif way == 1:
            del lines[a]
        elif way == 2:
            lines.insert(b, lines[a])
        else:
            lines.insert(b, b"")
        return b"\n".join(lines)

    def _cells(self, data: bytes) -> bytes:
        """Swap two cells of a row, or replace a cell by one from another row."""
        lines = data.split(b"\n")
        a, b = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        mark = next((mark for mark in (b"\t", b",", b" ") if mark in lines[a]), b" ")
        first, second = lines[a].split(mark), lines[b].split(mark)
        x, y = self.random.randrange(len(first)), self.random.randrange(len(second))
        if a == b:
            first[x], first[min(y, len(first) - 1)] = first[min(y, len(first) - 1)], first[x]
        else:
            first[x] = second[y]
        lines[a] = mark.join(first)
        return b"\n".join(lines)

    def _breaks(self, data: bytes) -> bytes:
        return data.replace(b"\n", self.random.choice(BREAKS), self.random.choice((1, 2, -1)))

    def _repeat(self, data: bytes) -> bytes:
        """Insert a token many times, which makes lines of unexpected length."""
        start, _ = self._place(data)
        piece = self.random.choice(self._tokens) or b"x"
        return data[:start] + piece * min(self.random.choice((10, 100, 3000)), 30_000 // len(piece)) + data[start:]

    def _nest(self, data: bytes) -> bytes:
        start, end = self._place(data, 30)
        opening, closing = self.random.choice(NESTS)
        deep = self.random.choice((2, 50, 3000))
        return data[:start] + opening * deep + data[start:end] + closing * self.random.choice((deep, deep - 1, 0)) + data[end:]

    def _again(self, data: bytes) -> bytes:
        """The input in another encoding, twice, or with a byte order mark."""
        text = data.decode("utf-8", "replace")
        return self.random.choice((data + data, text.encode("utf-16"), text.encode("latin-1", "replace"), b"\xef\xbb\xbf" + data))

    def _splice(self, data: bytes, other: bytes) -> bytes:
        return data[: self.random.randint(0, len(data))] + other[self.random.randint(0, len(other)) :]

    def value(self, data: Any) -> Any:
        """A JSON value in which one element is changed, removed, duplicated or moved to a wrong place."""
        spots = list(_spots(data))
        if not spots:
            return self.random.choice(VALUES)
        holder, key = self.random.choice(spots)
        way = self.random.randrange(5)
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder[self.random.choice(("", "a", "format", "kind", str(key) * 2))] = holder[key]
        elif way == 2:
            other, name = self.random.choice(spots)
            holder[key] = json.loads(json.dumps(other[name])) if _holds(other, name) else None
        else:
            holder[key] = self.random.choice(VALUES)
        return data

    def json(self, data: bytes) -> bytes:
        """A JSON file with some values changed; bytes that are not JSON are returned unchanged."""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return data
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            value = self.value(value)
        return json.dumps(value).encode()


def _holds(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _spots(data: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: its container, and its key or index there."""
    found: list[tuple[Any, Any]] = []
    for key in list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        found.append((data, key))
        found += _spots(data[key])
    return found
