"""Runs that stop, or wait to be stopped, after some shards: at the same point on a fast or a busy machine."""

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
    """Run, and stop with an error when `after` shards are done."""
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


LATE = 600  # seconds until a test gives up: far more than any machine needs
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
    """A `headscope run` in a separate process group. It has written `parts` parts, and waits until it is stopped."""
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
    """Wait for all processes of a group to end, and return whether they do."""
    for _ in range(100 * LATE):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
