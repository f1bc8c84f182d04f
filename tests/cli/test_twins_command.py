"""`headscope twins` from the command line."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from architectures import build
from families import FAMILIES
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.errors import HeadscopeError


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random model."""
    folder = tmp_path_factory.mktemp("models") / "small"
    tokens = FAMILIES["wordpiece"]()
    build("bert", vocabulary=len(tokens)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


def call(*arguments: str | int | Path) -> str:
    result = CliRunner().invoke(app, ["twins", *map(str, arguments)])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output.lstrip("\n")


def test_it_tells_and_writes(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options: list[str | int] = ["--max-length", 60, "--limit", 6, "--replicates", 5, "--epsilon", "0.03", "--epsilon", "0.2", "--pairs", 2]
    text = call(small, small, *options, "-o", folder)
    lines = text.splitlines()
    assert lines[0].startswith("8 heads of small (a) and 8 of small (b), encoder attention between words, ")
    assert re.match(r"A head of small \(a\) is 0\.000 from its twin in small \(b\), on average and 0\.\d+ from its nearest", lines[1])
    assert lines[2].startswith("Heads of small (a) with a twin in small (b): 100 % closer than 0.03 (small (a) ")
    assert "100 % closer than 0.2 (" in lines[2]
    assert "8 pairs are each other's twins; the closest are 1-1 and 1-1 (0.000), 1-2 and 1-2" in text
    assert "the 2 closest pairs of each other's twins" in text
    assert "|limit:6|" in text
    assert lines[-1] == str(folder / "twins.svg")
    rows = list(csv.DictReader(io.StringIO((folder / "twins.csv").read_text())))
    assert len(rows) == 16
    assert all(row["mutual"] == "true" and float(row["distance"]) == 0 for row in rows)
    assert list(folder.glob(".*")) == [], "nothing unfinished is left"


def test_quiet_prints_files_alone(small: Path, tmp_path: Path) -> None:
    options: list[str | int] = ["--max-length", 60, "--limit", 1, "--replicates", 0, "--level", "token", "--control", "-q"]
    text = call(small, small, *options, "--out", tmp_path)
    assert [Path(line).parent for line in text.split()] == [tmp_path] * 9
    assert "nan" not in (tmp_path / "twins_summary.csv").read_text().split("\n")[1].split(",")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["small", "./nowhere"], "./nowhere is not a folder"),
        (["small", "small", "--max-length", "60", "--corpus", "nothing.txt"], "there is no such file"),
        (["small", "small", "--max-length", "60", "--kind", "encoder,decoder"], "small has no decoder self-attention"),
        (["small", "small", "--max-length", "60", "--kind", "encoder,encoder,encoder"], "names 3 kinds"),
        (["small", "small", "--max-length", "60", "--level", "letter"], "Use word or token"),
        (["small", "small", "--max-length", "5"], "no text of sampler is left that both models read"),
        (["small", "small", "--max-length", "60", "--out", __file__], "is a file"),
    ],
)
def test_each_mistake_is_explained(arguments: list[str], says: str, small: Path) -> None:
    with pytest.raises(HeadscopeError, match=says):
        call(*(small if name == "small" else name for name in arguments))
