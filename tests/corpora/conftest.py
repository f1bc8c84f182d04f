from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a text to a file, unchanged."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


@pytest.fixture
def columns(write: Write) -> Write:
    """A function that writes a text in columns: runs of spaces become tabs, except in comments."""

    def columns(name: str, text: str) -> Path:
        lines = (line if line.startswith("#") else re.sub(" +", "\t", line.strip()) for line in dedent(text).strip().split("\n"))
        return write(name, "\n".join(lines) + "\n\n")

    return columns
