"""Lines of progress, which are printed if standard error is a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headscope.cli.printing.progress import ProgressLines, bar
from headscope.cli.run import run


def test_one_line_is_printed_per_tenth() -> None:
    lines: list[str] = []
    report = ProgressLines("measuring", lines.append)
    for texts in range(1, 1001):
        report(texts / 1000, texts, 0)
    assert [line.split(",")[0] for line in lines] == [f"measuring: {tenth}0 %" for tenth in range(1, 11)]
    assert lines[-1] == "measuring: 100 %, 1,000 texts"


def test_work_in_few_steps_prints_one_line_per_new_tenth() -> None:
    lines: list[str] = []
    report = ProgressLines("probing", lines.append)
    for share in (0.0, 0.34, 0.34, 0.36, 1.0, 1.0):
        report(share, 0, 0)
    assert lines == ["probing: 30 %", "probing: 100 %"]


def test_work_of_unknown_size_prints_a_line_whenever_texts_double() -> None:
    lines: list[str] = []
    report = ProgressLines("measuring", lines.append)
    for texts in range(0, 1000, 10):
        report(None, texts, 0)
    assert lines == [f"measuring: {texts} texts" for texts in (100, 200, 400, 800)]


def test_hidden_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("measuring", hidden=True) as report:
        report(1.0, 5, 5)
    assert capsys.readouterr() == ("", "")


def test_work_in_one_step_prints_no_line() -> None:
    lines: list[str] = []
    report = ProgressLines("finding", lines.append)
    report(0.0, 0, 0)
    report(1.0, 1, 50)
    assert not lines


def test_a_run_prints_progress_lines_unless_it_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"limit": 4, "measures": "entropy", "replicates": 0, "gallery": 0, "batch_tokens": 32, "shard_tokens": 32, "out": tmp_path}
    run(**settings)  # type: ignore[arg-type]
    error = capsys.readouterr().err
    assert re.fullmatch(r"(headscope: measuring: \d+ %, \d texts\n){2,}", error)
    assert "headscope: measuring: 100 %, 4 texts" in error
    run(**settings, overwrite=True, quiet=True)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
