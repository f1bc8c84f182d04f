"""Tables in a terminal that is too narrow for them."""

from __future__ import annotations

import re

import pytest

from headscope.cli.printing.tables import print_table
from headscope.results.table import Table

COLUMNS = {
    "label": ["nsubj", "obj"], "kind": ["encoder"] * 2, "value": [0.6, 0.8], "low": [0.55, 0.75], "high": [0.65, 0.85], "n": [511, 370],
    "documents": [8, 8],
}  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal
    monkeypatch.setenv("TERM", "xterm")
    print_table(Table.of(COLUMNS), "title")
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_no_number_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(capsys, monkeypatch, 36)
    assert lines[1].strip() == "in all rows: kind encoder, documents 8*"
    text = "\n".join(lines)
    assert "…" not in text
    for number in ("0.6000", "0.5500", "0.6500", "511", "0.8000", "0.7500", "0.8500", "370"):
        assert text.count(number) == 1
    assert text.count("nsubj") == 2  # once in each part
    assert max(len(line.rstrip()) for line in lines if "0." in line) <= 36


def test_a_table_that_fits_is_in_one_piece(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(printed(capsys, monkeypatch, 100))
    assert "in all rows" not in text
    assert text.count("nsubj") == 1
