from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora, which is no part of the repository."""
    folder = os.environ.get("HEADSCOPE_DATA")
    if not folder:
        pytest.skip("HEADSCOPE_DATA is not set: real-corpus tests skipped")
    return Path(folder)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file as it is given."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


@pytest.fixture
def columns(write: Write) -> Write:
    """Write a file in columns: runs of spaces become tabs, except in comments."""

    def columns(name: str, text: str) -> Path:
        lines = (line if line.startswith("#") else re.sub(" +", "\t", line.strip()) for line in dedent(text).strip().split("\n"))
        return write(name, "\n".join(lines) + "\n\n")

    return columns
