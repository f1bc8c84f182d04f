"""The command line without a process of its own, which takes seconds to start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.cli.main import main

Headscope = Callable[..., tuple[int, str, str]]


@pytest.fixture
def headscope(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Headscope:
    """What calls `headscope` as its script does: gives the exit code, what was printed, and what was printed as an error."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return call
