"""Progress where standard error is a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headscope.cli.printing.progress import ProgressLines, bar
from headscope.cli.run import run


def test_a_line_for_each_tenth() -> None:
    lines: list[str] = []
    tell = ProgressLines("measuring", lines.append)
    for texts in range(1, 1001):
        tell(texts / 1000, texts, 0)
    assert [line.split(",")[0] for line in lines] == [f"measuring: {tenth}0 %" for tenth in range(1, 11)]
    assert lines[-1] == "measuring: 100 %, 1,000 texts"


def test_work_in_a_few_steps_has_a_line_for_each() -> None:
    lines: list[str] = []
    tell = ProgressLines("probing", lines.append)
    for share in (0.0, 0.34, 0.34, 0.36, 1.0, 1.0):
        tell(share, 0, 0)
    assert lines == ["probing: 30 %", "probing: 100 %"]


def test_of_unknown_size_a_line_whenever_texts_double() -> None:
    lines: list[str] = []
    tell = ProgressLines("measuring", lines.append)
    for texts in range(0, 1000, 10):
        tell(None, texts, 0)
    assert lines == [f"measuring: {texts} texts" for texts in (100, 200, 400, 800)]


def test_no_line_if_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("measuring", hidden=True) as tell:
        tell(1.0, 5, 5)
    assert capsys.readouterr() == ("", "")


def test_work_in_one_step_has_no_line() -> None:
    lines: list[str] = []
    tell = ProgressLines("finding", lines.append)
    tell(0.0, 0, 0)
    tell(1.0, 1, 50)
    assert not lines


def test_a_run_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"limit": 4, "measures": "entropy", "replicates": 0, "gallery": 0, "batch_tokens": 32, "shard_tokens": 32, "out": tmp_path}
    run(**settings)  # type: ignore[arg-type]
    error = capsys.readouterr().err
    assert re.fullmatch(r"(headscope: measuring: \d+ %, \d texts\n){2,}", error)
    assert "headscope: measuring: 100 %, 4 texts" in error
    run(**settings, overwrite=True, quiet=True)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
