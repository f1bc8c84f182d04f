"""Whether files stay as they were while a corpus is read, which happens more than once: numbers of two versions must not be mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headscope.errors import CorpusError

_Stamp = tuple[int, int, int, int]
_REMEDY = "Read it again once it stays as it is; work that was begun on it starts afresh with --overwrite"


class Watch:
    """Files as they were when they were first looked at. `same` is asked of a file that looks changed whether its content is not."""

    def __init__(self, same: Callable[[Path], bool]) -> None:
        self._same = same
        self._stamps: dict[Path, _Stamp] = {}

    def begin(self, paths: Sequence[Path]) -> None:
        """Remember files that are now to be read; an error if one that is known is not as it was, or if there are others than before."""
        known = bool(self._stamps)
        for path in paths:
            if known and path not in self._stamps:
                raise CorpusError(path, None, "the file was not there before", _REMEDY)
            self.check(path)

    def check(self, path: Path) -> None:
        """An error if a file is not as it was. What was read of it before this returns is what it held when it was first looked at."""
        now = _stamp(path)
        before = self._stamps.get(path, now)
        if now != before and (now is None or not self._same(path)):
            raise CorpusError(path, None, f"the file {'is gone' if now is None else 'has changed'} while it was being read", _REMEDY)
        if now is not None:
            self._stamps[path] = now


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:  # whoever opens it says why
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
