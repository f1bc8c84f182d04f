"""Processes that are started for a run: they do not receive a terminal's signals, and end with the process that
started them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A context in which new processes do not receive SIGINT and SIGQUIT, since they inherit blocked signals. The
    starting process receives both afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
    try:
        resource_tracker.ensure_running()  # multiprocessing starts it with the first process, and then unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Let this process end together with the one that started it. Otherwise it would wait for ever for a killed
    parent.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
