"""Signals that end a command: SIGINT (Ctrl-C), SIGQUIT, SIGTERM (`kill`), SIGHUP (a terminal that closes). All are
treated alike, so that locks, workers and files are released.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ORDERLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Ended(KeyboardInterrupt):
    """A signal that asks the process to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """What a shell expects of a process that ended for this reason: 128 and the number of the signal."""
    return 128 + (interrupt.number if isinstance(interrupt, Ended) else signal.SIGINT)


def say(line: str) -> None:
    """Print a last line for the person, if anybody still listens."""
    with suppress(OSError, ValueError):
        print(f"headscope: {line}", file=sys.stderr, flush=True)


@contextmanager
def orderly() -> Iterator[None]:
    """Turn these signals into an exception while the block runs. Those that are ignored, as under nohup, stay so.

    A second signal, of any of these kinds, ends the process at once and without a word, also after the block: an
    exception that is raised while the process ends would be printed by whatever finaliser it meets.
    """
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    before = {number: signal.getsignal(number) for number in ORDERLY}
    taken = [number for number, handler in before.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]
    for number in taken:
        signal.signal(number, hear)
    try:
        yield
    except SystemExit as end:
        if heard and end.code == 128 + signal.SIGINT:  # typer knows of Ctrl-C alone
            sys.exit(128 + heard[0])
        raise
    finally:
        for number in taken if not heard else ():
            signal.signal(number, before[number])
