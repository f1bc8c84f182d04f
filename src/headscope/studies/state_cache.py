"""A large file that is worked out shard by shard, may be interrupted at any moment, and is gone on with afterwards.

    NAME.states   the shards, one after the other
    NAME.sums     a line a shard: its number and its checksum

A shard counts when its line is there and its bytes give its checksum; any other is missing. So nothing half-written
or damaged is read.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import RunError

PIECE = 16 * 2**20  # bytes read at once


class Shards:
    """The shards of one file; shard k is its bytes [bounds[k], bounds[k + 1])."""

    def __init__(self, folder: Path, name: str, bounds: Sequence[int]) -> None:
        self.data, self._sums, self._lock = (folder / f"{name}.{ending}" for ending in ("states", "sums", "lock"))
        self._bounds = bounds

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while shards are written: who asks for the same ones meanwhile waits, and then finds them."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def missing(self) -> list[int]:
        """The shards that do not have their checksum. There must be room on the disk for them."""
        sums: dict[int, int] = {}
        if self._sums.exists():
            for line in self._sums.read_text(encoding="ascii", errors="replace").splitlines():
                number, _, checksum = line.partition(" ")
                if number.isdecimal() and checksum.isdecimal():
                    sums[int(number)] = int(checksum)
        shards = list(range(len(self._bounds) - 1))
        if self.data.exists():
            with self.data.open("rb") as file:
                shards = [number for number in shards if sums.get(number, -1) != self._checksum(file.fileno(), number)]
        self._make_room(sum(self._bounds[number + 1] - self._bounds[number] for number in shards))
        return shards

    def write(self, number: int, data: bytes) -> None:
        """Put a shard in its place, and only then its checksum."""
        with self.data.open("r+b" if self.data.exists() else "w+b") as file:
            file.seek(self._bounds[number])
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with self._sums.open("ab") as file:
            file.write(f"\n{number} {zlib.crc32(data)}\n".encode("ascii"))  # a line of its own, whatever was cut off before it

    def _checksum(self, file: int, number: int) -> int | None:
        """The checksum of a shard as it lies on disk; None if it is cut off."""
        start, stop = self._bounds[number], self._bounds[number + 1]
        found = 0
        while start < stop:
            data = os.pread(file, min(stop - start, PIECE), start)
            if not data:
                return None
            found = zlib.crc32(data, found)
            start += len(data)
        return found

    def _make_room(self, needed: int) -> None:
        free = shutil.disk_usage(self.data.parent).free
        if needed > free:
            raise RunError(
                f"hidden states take {readable(needed)}, and {self.data.parent} has {readable(free)} left",
                "Free some space, name another folder for them, or choose fewer layers or texts",
            )


def readable(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.1f} MiB"
