"""A run that is stopped after some shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from headscope.errors import RunError
from headscope.runs import engines, execute
from headscope.runs.spec import RunSpec


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
