"""Temporary copies of texts that are not in a file: lists, tables, streams and standard input.

A run reads its corpus more than once. All passes read the copy, so that later changes of texts in memory have no
effect, and a stream of any size needs no memory. The copy is removed together with the last corpus that uses it.
"""

from __future__ import annotations

import shutil
import sys
import weakref
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from headscope.errors import HeadscopeError

INPUT = "-"  # the name of standard input
MEMORY = "memory"  # the name of texts in memory
ONCE = "streams copied to a temporary file, since texts are read more than once"
_CHUNK = 1 << 20


class Spool:
    """A temporary file. `whole` names the original, `unit` the items of it that the lines are, `called` is its name in
    specifications; `once` tells whether the original can be read only once.
    """

    def __init__(self, name: str, whole: str, unit: str = "line", called: str = MEMORY, once: bool = False) -> None:
        folder = mkdtemp(prefix="headscope-")
        self.path = Path(folder) / name
        self.whole, self.unit, self.called, self.once = whole, unit, called, once
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        _SPOOLS[self.path] = self

    def write(self, pieces: Iterable[bytes]) -> Spool:
        """Write the file; an error if it would be empty."""
        try:
            with self.path.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
            empty = not self.path.stat().st_size
        except OSError as error:
            remedy = "Free some space there, or set TMPDIR to a folder that has more"
            raise HeadscopeError(f"{self.whole} cannot be copied to {self.path.parent} ({error.strerror or error})", remedy) from error
        if empty:
            raise HeadscopeError(f"{self.whole} is empty", "Give at least one text")
        return self


_SPOOLS: weakref.WeakValueDictionary[Path, Spool] = weakref.WeakValueDictionary()


def spool_of(path: Path) -> Spool | None:
    """The spool that a path belongs to; None for any other file."""
    return _SPOOLS.get(path)


def standard_input() -> Path:
    """The file with the contents of standard input, which is copied on first use."""
    return _copied(sys.stdin).path


@lru_cache(maxsize=1)
def _copied(stream: Any) -> Spool:
    spool = Spool("standard-input.txt", "standard input", called=INPUT, once=True)
    return spool.write(iter(partial(stream.buffer.read, _CHUNK), b""))
