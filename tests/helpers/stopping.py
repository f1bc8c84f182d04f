"""Runs that are stopped, or wait to be stopped, after some shards: at the same place however busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from headscope.engine import engines
from headscope.engine.spec import RunSpec
from headscope.errors import RunError
from headscope.runs import execute


def stopped(spec: RunSpec, out: Path, after: int) -> None:
    """Run until so many shards are done."""
    local = engines.local

    def stops(work, runner):  # type: ignore[no-untyped-def]
        for count, done in enumerate(local(work, runner)):
            if count == after:
                raise RunError("stopped")
            yield done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "local", stops)
        with pytest.raises(RunError, match="stopped"):
            execute.execute(spec, out)


LATE = 600  # seconds after which a test gives up: far more than any machine needs
_WAITS = """
import sys, time
from pathlib import Path
from headscope.cli.main import main
from headscope.results.folder import Folder

if __name__ == "__main__":
    write, kept = Folder.write_part, []

    def waits(*what):
        write(*what)
        kept.append(what)
        if len(kept) == {parts}:
            Path({marker!r}).touch()
            while True:
                time.sleep(1)

    Folder.write_part = waits
    sys.argv = ["headscope", "run", *{options!r}]
    main()
"""


@contextmanager
def waiting_run(place: Path, options: Sequence[str], parts: int = 1, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `headscope run` in a process group of its own that has kept so many parts, and goes no further until it is
    told to end.
    """
    script, marker = place / "waiting.py", place / "waits"
    script.write_text(_WAITS.format(parts=parts, marker=str(marker), options=list(options)))
    how = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True, "env": {**os.environ, **environment}}
    with subprocess.Popen([sys.executable, str(script)], **how) as process:  # type: ignore[call-overload]
        try:
            for _ in range(100 * LATE):
                if marker.exists():
                    break
                assert process.poll() is None, process.communicate()[1].decode()
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


def ends(group: int) -> bool:
    """Whether all processes of a group end."""
    for _ in range(100 * LATE):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
