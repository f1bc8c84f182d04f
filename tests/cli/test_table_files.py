"""Tables of `headscope show` and other commands: `--format` or the ending of the file chooses the format."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import RunError
from headscope.results.formats import FORMATS

MAPS = np.random.default_rng(1).dirichlet(np.ones(3), (2, 2, 3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables") / "run"
    hs.measure(MAPS, ["[CLS]", "a", "[SEP]"], ["tokens", "distances"], out=out)
    return out


def call(*arguments: str | Path) -> bytes:
    """Run a command and return its standard output. Errors of headscope are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, RunError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


@pytest.mark.parametrize(("format", "ending"), [(name, ending) for name, endings in FORMATS.items() for ending in endings])
def test_a_file_and_standard_output_have_the_same_content(folder: Path, tmp_path: Path, format: str, ending: str) -> None:
    target = tmp_path / f"tokens{ending}"
    assert call("show", folder, "tokens", "-o", target) == f"{target}\n".encode()
    assert call("show", folder, "tokens", "--format", format) == target.read_bytes()
    assert list(tmp_path.iterdir()) == [target]


def test_only_selected_rows_are_written_with_unrounded_numbers(folder: Path, tmp_path: Path) -> None:
    """The attention to [SEP] equals that of the maps (which are stored in 32 bits), and exactly that of the table."""
    to_sep = MAPS[..., 2].mean(-1)
    options = ("--quantity", "to_sep", "--sort", "value", "--limit", "2")
    call("show", folder, "tokens", *options, "-o", tmp_path / "two.tsv")
    with (tmp_path / "two.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    expected = sorted(to_sep.flatten(), reverse=True)[:2]
    assert [float(row["value"]) for row in rows] == pytest.approx(expected, rel=1e-6)
    table = hs.open_run(folder)["tokens"].table.where(quantity="to_sep")
    assert [float(row["value"]) for row in rows] == sorted(table["value"], reverse=True)[:2]
    read = pyarrow.parquet.read_table(pa.BufferReader(call("show", folder, "tokens", *options, "--format", "parquet")))
    assert read["value"].to_pylist() == [float(row["value"]) for row in rows]
    assert read.schema.metadata[b"signature"].decode() == hs.open_run(folder).signature


def test_format_has_priority_over_the_ending_of_the_file(folder: Path, tmp_path: Path) -> None:
    call("show", folder, "tokens", "--limit", "1", "--format", "json", "-o", tmp_path / "tokens.txt")
    assert len(json.loads((tmp_path / "tokens.txt").read_text())) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["show", "RUN", "tokens", "-o", "tokens.xlsx"],
            r"tokens.xlsx: tables cannot be written as '.xlsx'. Use a name that ends in .csv, ",
        ),
        (
            ["show", "RUN", "tokens", "--format", "xlsx"],
            "format 'xlsx' is unknown. Use one of csv, tsv, json, markdown, latex, parquet, arrow",
        ),
        (["show", "RUN", "-o", "tokens.csv"], "no table was named. Name one of tokens"),
        (["compare", "RUN", "RUN", "--format", "xlsx"], "format 'xlsx' is unknown"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(folder: Path, arguments: list[str], says: str) -> None:
    with pytest.raises(RunError) as error:
        call(*(folder if argument == "RUN" else argument for argument in arguments))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert not Path("tokens.csv").exists()


def test_binary_formats_are_not_printed_in_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.cli.printing import tables

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    with pytest.raises(RunError, match=r"parquet is not a text format, and cannot be shown in a terminal\. Name a file with -o"):
        tables.table_format("parquet", None)
    assert tables.table_format("parquet", Path("x")) == "parquet"
    assert tables.table_format("csv", None) == "csv"
    assert tables.table_format(None, None) is None


def test_compare_and_alike_write_the_same_formats(folder: Path, tmp_path: Path) -> None:
    difference = pyarrow.feather.read_table(pa.BufferReader(call("compare", folder, folder, "--format", "arrow")))
    assert set(difference["difference"].to_pylist()) == {0.0}
    assert call("alike", folder, "-o", tmp_path / "heads.tsv").endswith(b"heads.tsv\n")
    assert call("alike", folder, "--format", "tsv") == (tmp_path / "heads.tsv").read_bytes()
