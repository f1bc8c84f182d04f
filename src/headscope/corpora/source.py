"""One file while it is read: how its faults are handled, and what is counted."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headscope.core.paths import printable
from headscope.core.tally import Tally
from headscope.corpora.files import Line, Meter, base_name, lines
from headscope.corpora.spool import spool_of
from headscope.errors import CorpusError

_DIGITS = 9  # the largest number of digits of a number


class Flaw(Exception):
    """A fault in one unit of a file. `kind` is its name in tallies; `problem` and `remedy` are for the message."""

    def __init__(self, line: int, kind: str, problem: str, remedy: str) -> None:
        self.line = line
        self.kind = kind
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)


@dataclass
class Source:
    """A corpus file, whether its faults raise errors or are skipped, and the tally of what was skipped.

    `columns` are the names that a table has for `text`, `id` and others; `unit` is the unit in which places of faults
    are numbered.
    """

    path: Path
    skip: bool = False
    tally: Tally = field(default_factory=Tally)
    meter: Meter | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str = "line"
    _read: list[Generator[Line]] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """The name from which documents without an id are named; bytes of a file name that are not text become question
        marks.
        """
        return printable(base_name(self.path))

    def lines(self, empty: bool = False, pieces: bool = False) -> Iterator[Line]:
        """The lines of the file. An empty file is an error unless `empty`; with `pieces`, long lines come in pieces."""
        self._read.append(lines(self.path, self.meter, empty, pieces))
        return self._read[-1]

    def close(self) -> None:
        """Close the file if it is still open, for example after a reader stopped in the middle of it."""
        for reader in self._read:
            reader.close()

    def where(self, line: int) -> str:
        """A place in the file, without the folder, since tallies are printed in reports that are shared."""
        spool = spool_of(self.path)
        return f"{self.unit} {line} of {self.path.name}" if spool is None else f"{spool.unit} {line} of {spool.whole}"

    def note(self, reason: str, line: int, n: int = 1, *, read: bool = False) -> None:
        """Count something that is not a fault, or that follows from a reported one; `read` if nothing is skipped for
        it.
        """
        self.tally.add(reason, self.where(line), n, read=read)

    def report(self, flaw: Flaw, unit: str = "sentences") -> None:
        """Raise a CorpusError for the flaw or, if faults are skipped, count one `unit` as skipped."""
        if not self.skip:
            remedy = f"{flaw.remedy}, or pass --on-error skip to skip such {unit}"
            if (spool := spool_of(self.path)) is not None:
                raise CorpusError(spool.whole, flaw.line, flaw.problem, remedy, spool.unit) from None
            raise CorpusError(self.path, flaw.line, flaw.problem, remedy, self.unit) from None
        self.note(f"{unit} skipped: {flaw.kind}", flaw.line)


def sound(line: Line) -> str:
    """The text of a line, or a Flaw if it was not UTF-8."""
    if line.invalid:
        raise Flaw(line.number, "not UTF-8", line.invalid, "Save the file as UTF-8")
    return line.text


def natural(text: str) -> int | None:
    """The number that is written in plain digits, None for any other text (int() would also accept `+1`, `1_0` and
    `١`).
    """
    return int(text) if len(text) <= _DIGITS and text.isascii() and text.isdigit() else None


def quoted(value: object, limit: int = 60) -> str:
    """A value for an error message: quoted and shortened."""
    shown = repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
