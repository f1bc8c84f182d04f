"""A progress bar that knows how far the corpus is read, and how fast."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headscope.cli.printing.signals import exit_code, say

if TYPE_CHECKING:
    from headscope.engine.shards import Progress


@contextmanager
def interrupted(out: Path) -> Iterator[None]:
    """What Ctrl-C, and whatever else ends a process, says of work that is kept in a folder."""
    try:
        yield
    except KeyboardInterrupt as error:
        say(f"interrupted. What was finished is kept in {out}; the same command with --resume goes on from there")
        raise typer.Exit(exit_code(error)) from None


@contextmanager
def bar(what: str, hidden: bool = False) -> Iterator[Progress]:
    """A bar on standard error while the block runs; nothing where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[texts]:,} texts, {task.fields[rate]:,.0f} tokens/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=hidden or not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None, texts=0, rate=0.0)

        def tell(share: float | None, texts: int, tokens: int) -> None:
            elapsed = progress.tasks[0].elapsed or 1e-9
            progress.update(task, total=1.0 if share is not None else None, completed=share or 0.0, texts=texts, rate=tokens / elapsed)

        yield tell
