"""Progress bars, or lines where there is no terminal; and the signals that end a command.

SIGINT (Ctrl-C), SIGQUIT, SIGTERM (`kill`) and SIGHUP (a terminal that closes) are treated alike, so that locks,
workers and files are released.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from headscope.engine.shards import Progress

ORDERLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Ended(KeyboardInterrupt):
    """A signal that asks the process to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """What a shell expects of a process that ended for this reason: 128 and the number of the signal."""
    return 128 + (interrupt.number if isinstance(interrupt, Ended) else signal.SIGINT)


def print_line(line: str) -> None:
    """Print a line on standard error, if it is still open."""
    with suppress(OSError, ValueError):
        print(f"headscope: {line}", file=sys.stderr, flush=True)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Turn these signals into an exception while the block runs. Those that are ignored, as under nohup, stay so.

    A second signal of any of these kinds ends the process immediately and silently, also after the block: a finaliser
    would print an exception that is raised while the process ends.
    """
    received: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        received.append(number)
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    before = {number: signal.getsignal(number) for number in ORDERLY}
    taken = [number for number, handler in before.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]
    for number in taken:
        signal.signal(number, handle)
    try:
        yield
    except SystemExit as end:
        if received and end.code == 128 + signal.SIGINT:  # typer knows only Ctrl-C
            sys.exit(128 + received[0])
        raise
    finally:
        for number in taken if not received else ():
            signal.signal(number, before[number])


@contextmanager
def interrupted(out: Path) -> Iterator[None]:
    """On Ctrl-C, or another signal that ends the process, print how to continue the work in a folder, and exit."""
    try:
        yield
    except KeyboardInterrupt as error:
        print_line(f"interrupted. Finished parts are kept in {out}; the same command with --resume continues from there")
        raise typer.Exit(exit_code(error)) from None


class ProgressLines:
    """Progress for a log file: a line for each tenth of the work, and none for work in one step. If the size of the
    work is unknown, a line when the number of texts has doubled.
    """

    def __init__(self, what: str, write: Callable[[str], None] = print_line) -> None:
        from headscope.core.timing import TimeLeft

        self._what, self._write = what, write
        self._left = TimeLeft()
        self._tenths = 0
        self._texts = 100  # number of texts at which the next line is due

    def __call__(self, share: float | None, texts: int, tokens: int) -> None:
        """Print a line if one is due."""
        if share is None:
            if texts >= self._texts:
                self._texts = 2 * texts
                self._write(f"{self._what}: {texts:,} texts")
            return
        self._left.add(share)
        if (tenths := int(10 * share + 1e-9)) > self._tenths:
            at_once = tenths == 10 and not self._tenths
            self._tenths = tenths
            if at_once:  # the work is one step: its result is printed next
                return
            self._write(f"{self._what}: {10 * tenths} %{f', {texts:,} texts' if texts else ''}{self._rest() if tenths < 10 else ''}")

    def _rest(self) -> str:
        from headscope.core.timing import TOLD, spelled

        return "" if (seconds := self._left.seconds) is None or seconds < TOLD else f", {spelled(seconds)} left"


@contextmanager
def bar(what: str, hidden: bool = False) -> Iterator[Progress]:
    """A bar on standard error while the block runs; lines where that is not a terminal; nothing if `hidden`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from headscope.core.timing import TimeLeft, spelled

    left = TimeLeft()

    class TimeLeftColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if (seconds := left.seconds) is None else f"{spelled(seconds)} left", style="progress.remaining")

    console = Console(file=sys.stderr)
    if hidden or not console.is_terminal:
        yield (lambda *_: None) if hidden else ProgressLines(what)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[texts]:,} texts, {task.fields[rate]:,.0f} tokens/s"),
        TimeElapsedColumn(),
        TimeLeftColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, texts=0, rate=0.0)

        def report(share: float | None, texts: int, tokens: int) -> None:
            if share is not None:
                left.add(share)
            elapsed = progress.tasks[0].elapsed or 1e-9
            progress.update(task, total=1.0 if share is not None else None, completed=share or 0.0, texts=texts, rate=tokens / elapsed)

        yield report
