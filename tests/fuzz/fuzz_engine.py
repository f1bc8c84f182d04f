"""Runs a reader on one input at a time, with limits of time and memory. Only headscope's errors may escape."""

from __future__ import annotations

import contextlib
import io
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mutations import Mutator

from headscope.errors import HeadscopeError

SECONDS = 5.0  # of CPU time per input, far more than any input needs
MEGABYTES = 400  # by which one input may raise the peak memory
LONGEST = 3000  # characters in a message


@dataclass(frozen=True)
class Target:
    """A reader to test. `check` reads an input, with an empty folder to write to, and asserts what must hold of the
    result.

    `shaped` mutates the structure of an input, for formats that refuse random bytes at once. `share` is the number of
    inputs relative to other targets.
    """

    name: str
    seeds: Sequence[bytes]
    check: Callable[[bytes, Path], object]
    tokens: Sequence[bytes] = ()
    shaped: Callable[[Mutator, bytes], bytes] | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Fault:
    """An error that a reader should not have raised."""

    target: str
    kind: str
    place: str
    trace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The values that identify a fault."""
        return self.target, self.kind, self.place


class TooSlow(BaseException):
    """Raised by the alarm; no `except Exception` catches it."""


def inputs(target: Target, seed: int, start: int, end: int, pool: Sequence[bytes] | None = None) -> Iterator[bytes]:
    """The inputs from `start` to `end`. Each depends only on the target, the seed, its number and the pool."""
    known = target.seeds if pool is None else pool
    for number in range(start, end):
        mutator = Mutator(f"{seed}/{target.name}/{number}", target.tokens)
        data = mutator.random.choice(known)
        way = mutator.random.random() if target.shaped is not None else 1.0
        if target.shaped is not None and way < 0.75:
            with contextlib.suppress(Exception), warnings.catch_warnings():  # some inputs cannot be mutated
                warnings.simplefilter("ignore")
                data = target.shaped(mutator, data)
        yield data if way < 0.65 else mutator.mutated(data, known)


def attempt(target: Target, data: bytes, folder: Path, seconds: float = SECONDS) -> Fault | None:
    """Run a reader on an input and return the fault; None if there is none."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with bounded_work(seconds), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("error")
            try:
                target.check(data, folder)
            except HeadscopeError as error:
                message = str(error)
                assert error.problem.strip(), "an error without a message"
                assert len(message) <= LONGEST, f"a message of {len(message)} characters: {message[:200]}"
                assert "Traceback" not in message
                message.encode("utf-8", "surrogateescape")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert grown < MEGABYTES, f"the peak memory grew by {grown:.0f} MB"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a Rust panic is not an Exception
        return Fault(target.name, type(error).__name__, _place(error), "".join(traceback.format_exception(error))[-8000:])
    return None


@contextlib.contextmanager
def bounded_work(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` if the block takes more than `seconds` of CPU time, or ten times as many by the clock."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"not done after {seconds:g} seconds")

    # CPU time does not depend on the load of the machine. The limit by the clock is for code that only waits.
    timers = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 10 * seconds)}
    before = {number: signal.signal(number, ring) for number, _ in timers.values()}
    for timer, (_, length) in timers.items():
        signal.setitimer(timer, length)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _place(error: BaseException) -> str:
    """The innermost line of headscope in the traceback of an error, else the line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "headscope" in frame.filename and "site-packages" not in frame.filename] or frames[-1:]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"


def smaller(target: Target, data: bytes, fault: Fault, folder: Path, seconds: float = 3.0) -> bytes:
    """A shorter input with the same fault. Parts that the fault does not need are removed until `seconds` are over."""
    step, end = max(1, len(data) // 2), time.monotonic() + seconds
    while step and time.monotonic() < end:
        place = 0
        while place < len(data) and time.monotonic() < end:
            shorter = data[:place] + data[place + step :]
            found = attempt(target, shorter, folder)
            if found is not None and found.key == fault.key:
                data = shorter
            else:
                place += step
        step //= 2
    return data


class Lines:
    """The lines of headscope that calls have executed, to recognise inputs that reach new code."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()

    def new(self, call: Callable[[], Any]) -> bool:
        """Whether a call executes lines that no earlier call executed."""
        before = len(self.seen)
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(None)
        return len(self.seen) > before

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        return self._line if "headscope/" in name and "site-packages" not in name else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line
