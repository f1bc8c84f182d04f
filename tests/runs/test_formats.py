"""Tables as files and in other libraries: numbers are read back with all their digits, and text for papers is well
formed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from headscope.errors import RunError
from headscope.results.formats import FORMATS, encode, format_of
from headscope.results.table import Table

NUMBERS = [1 / 3, 1e-17, 0.1 + 0.2, 123456789.123456789, -2.5e-300]
TEXTS = ["plain", "tab\there", 'quote "q", comma', "a_b & 5% of $x^{~}\\", "<s> | two\nlines – ±"]
TABLE = Table.of({"text": TEXTS, "n": [1, 2, 3, 4, 2**60], "value": NUMBERS}, {"signature": "headscope:1|model:mini"})


def rows_of_csv(text: str, delimiter: str) -> list[dict[str, Any]]:
    """The rows that Python's csv module reads."""
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [{"text": row["text"], "n": int(row["n"]), "value": float(row["value"])} for row in rows]


def test_other_programs_read_every_digit() -> None:
    rows = list(TABLE)
    assert [row["value"] for row in rows] == NUMBERS
    assert rows_of_csv(TABLE.to_csv(), ",") == rows
    assert rows_of_csv(TABLE.to_text("tsv"), "\t") == rows
    assert json.loads(TABLE.to_text("json")) == rows
    for data, read in ((TABLE.to_parquet(), pyarrow.parquet.read_table), (encode(TABLE.arrow, "arrow"), pyarrow.feather.read_table)):
        read_back = read(pa.BufferReader(data))
        assert read_back.to_pylist() == rows
        assert Table(read_back).metadata == {"signature": "headscope:1|model:mini"}


def test_missing_numbers_are_empty_in_csv() -> None:
    """Readers can then parse the column as numbers."""
    table = Table.of({"name": ["a", "b", "c"], "low": [0.5, math.nan, None]})
    assert table.to_csv() == '"name","low"\n"a",0.5\n"b",\n"c",\n'
    assert table.to_text("tsv").splitlines()[2] == '"b"\t'
    assert pl.read_csv(io.StringIO(table.to_csv()))["low"].to_list() == [0.5, None, None]
    assert math.isnan(table["low"][1]), "the table itself keeps NaN"


def test_nan_and_infinity_are_null_in_json() -> None:
    table = Table.of({"value": [math.nan, math.inf, 1.0], "pair": [[math.nan, 1.0], [2.0], []]})
    assert json.loads(table.to_text("json"), parse_constant=pytest.fail) == [
        {"value": None, "pair": [None, 1.0]}, {"value": None, "pair": [2.0]}, {"value": 1.0, "pair": []}
    ]  # fmt: skip


def test_latex_is_balanced_and_escaped() -> None:
    """Each row has as many cells as columns are declared, and no character that TeX would interpret."""
    lines = TABLE.to_text("latex").splitlines()
    assert lines[:2] == ["% headscope:1|model:mini", r"\begin{tabular}{lrr}"]
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert lines[-1] == r"\end{tabular}"
    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) == 1 + len(TABLE)
    for row in rows:
        bare = re.sub(r"\\[_%&#${}]", "", row.removesuffix(r" \\"))
        assert bare.count("&") == 2, row
        assert bare.count("{") == bare.count("}"), row
        assert bare.count("$") % 2 == 0, row
        assert not re.search(r"[_%#~^<>|]", bare), row
        assert re.fullmatch(r"(?:[^\\]|\\text\w+\{\}|\\pm)*", bare), row
    assert rows[4] == r"a\_b \& 5\% of \$x\textasciicircum{}\{\textasciitilde{}\}\textbackslash{} & 4 & 123456789.1235 \\"
    assert rows[5].startswith(r"\textless{}s\textgreater{} \textbar{} two lines -- $\pm$ & 1152921504606846976 & -2.5e-300")


def test_markdown_has_one_line_per_row() -> None:
    lines = TABLE.to_text("markdown").splitlines()
    assert lines[:3] == ["| text | n | value |", "| :-- | --: | --: |", "| plain | 1 | 0.3333 |"]
    assert lines[-1] == r"| \<s> \| two lines – ± | 1152921504606846976 | -2.5e-300 |"
    assert len(lines) == 2 + len(TABLE)


def test_other_libraries_read_a_table_as_arrow() -> None:
    assert pa.table(TABLE).to_pylist() == TABLE.to_arrow().to_pylist() == list(TABLE)
    assert pl.DataFrame(TABLE).to_dicts() == list(TABLE)
    unnested = pl.from_arrow(TABLE)  # polars converts objects other than pyarrow's classes to a column of structs
    assert isinstance(unnested, pl.Series)
    assert unnested.struct.unnest().to_dicts() == list(TABLE)


def test_duckdb_queries_a_table() -> None:
    duckdb = pytest.importorskip("duckdb")
    heads = TABLE
    assert duckdb.sql("SELECT n, value FROM heads WHERE value < 0.1 ORDER BY n").fetchall() == [(2, 1e-17), (2**60, -2.5e-300)]
    assert len(heads) == 5


@pytest.mark.parametrize(("format", "endings"), FORMATS.items())
def test_the_file_extension_selects_the_format(tmp_path: Path, format: str, endings: tuple[str, ...]) -> None:
    for ending in (*endings, endings[0].upper()):
        assert format_of(f"table{ending}") == format
        path = TABLE.save(tmp_path / f"table{ending}")
        assert path.read_bytes() == encode(TABLE.arrow, format)
    TABLE.save(tmp_path / "other.txt", format)
    assert (tmp_path / "other.txt").read_bytes() == encode(TABLE.arrow, format)


def test_to_csv_and_to_parquet_write_files(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "table.txt")
    TABLE.to_parquet(str(tmp_path / "table"))
    assert (tmp_path / "table.txt").read_text() == TABLE.to_csv()
    assert pyarrow.parquet.read_table(tmp_path / "table").to_pylist() == list(TABLE)


def test_an_unknown_file_extension_is_refused_with_the_known_ones() -> None:
    for name, problem in (("heads.xls", "'.xls'"), ("heads", "a file without an extension")):
        with pytest.raises(RunError, match=problem) as error:
            TABLE.save(name)
        assert str(error.value).endswith("ends in .csv, .tsv, .json, .md, .markdown, .tex, .parquet, .arrow, .feather")
        assert "\n" not in str(error.value)
    with pytest.raises(RunError, match="parquet is not a text format"):
        TABLE.to_text("parquet")


def test_a_table_that_cannot_be_written_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")
    with pytest.raises(RunError, match="cannot be written as csv"):
        Table.of({"pair": [[1, 2]]}).save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_shows_the_first_rows_without_setting_colours() -> None:
    page = TABLE._repr_html_()
    assert page.count("<tr>") == 1 + len(TABLE)
    assert "&lt;s&gt; | two" in page
    assert "<s>" not in page
    assert "headscope:1|model:mini" in page
    assert 'text-align:right;padding:.15em .7em;white-space:nowrap">0.3333</td>' in page
    assert re.findall(r"#[0-9a-f]{3,6}\b|background|(?<![-\w])color:(?!inherit)", page) == []
    many = Table.of({"n": list(range(1000))})._repr_html_()
    assert many.count("<tr>") == 21
    assert "1,000 rows, of which the first 20" in many
