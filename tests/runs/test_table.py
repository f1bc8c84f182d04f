"""Tables: rows, columns, conversions and text formats."""

from __future__ import annotations

import json
import math

import pytest

from headscope.errors import RunError
from headscope.results.table import Table

TABLE = Table.of({"kind": ["encoder"] * 3, "layer": [1, 2, 10], "quantity": ["to_a|b", "x_y", "x_y"], "value": [0.25, math.nan, 0.5]})


def test_a_table_is_indexed_filtered_and_sorted() -> None:
    assert len(TABLE) == 3
    assert TABLE.columns == ["kind", "layer", "quantity", "value"]
    assert TABLE["layer"] == [1, 2, 10]
    assert [row["layer"] for row in TABLE.where(quantity="x_y")] == [2, 10]
    assert len(TABLE.where(quantity="x_y", layer=3)) == 0
    assert TABLE.sort("layer", descending=True)["layer"] == [10, 2, 1]
    assert TABLE.head(1)["value"] == [0.25]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TABLE["joy"], "there is no column 'joy'"),
        (lambda: TABLE.where(joy=1), "there is no column 'joy'"),
        (lambda: TABLE.sort("joy"), "there is no column 'joy'"),
        (lambda: TABLE.where(layer="first"), "layer holds int64"),
        (lambda: TABLE.to_text("docx"), "format 'docx' is unknown"),
    ],
)
def test_unknown_columns_formats_and_wrong_types_are_refused(call: object, says: str) -> None:
    assert callable(call)
    with pytest.raises(RunError, match=says):
        call()


def test_a_table_is_converted_to_pandas_and_polars() -> None:
    pandas, polars = TABLE.to_pandas(), TABLE.to_polars()
    assert pandas["layer"].tolist() == polars["layer"].to_list() == [1, 2, 10]
    assert list(pandas.columns) == polars.columns == TABLE.columns


def test_a_table_is_written_as_csv_json_markdown_and_latex() -> None:
    assert TABLE.to_text("csv").splitlines()[1] == '"encoder",1,"to_a|b",0.25'
    assert json.loads(TABLE.to_text("json"))[1] == {"kind": "encoder", "layer": 2, "quantity": "x_y", "value": None}
    assert TABLE.to_text("markdown").splitlines() == [
        "| kind | layer | quantity | value |",
        "| :-- | --: | :-- | --: |",
        "| encoder | 1 | to_a\\|b | 0.2500 |",
        "| encoder | 2 | x_y | – |",
        "| encoder | 10 | x_y | 0.5000 |",
    ]
    latex = TABLE.to_text("latex")
    assert latex.startswith("\\begin{tabular}{lrlr}\n\\toprule\n")
    assert r"encoder & 1 & to\_a\textbar{}b & 0.2500 \\" in latex


def test_parquet_bytes_are_reproducible_and_the_repr_is_short() -> None:
    assert TABLE.to_parquet() == TABLE.to_parquet()
    many = Table.of({"n": list(range(100))})
    assert repr(many).endswith("... 88 more rows")
    assert len(repr(many).splitlines()) == 14


def test_a_small_p_is_never_printed_as_0() -> None:
    table = Table.of({"p": [0.0, 3.2e-7, -4e-5, 0.00006, 0.5, None]})
    assert table.to_text("markdown").split("\n")[2:-1] == [
        "| 0.0000 |", "| 3.2e-07 |", "| -4.0e-05 |", "| 0.0001 |", "| 0.5000 |", "| – |"
    ]  # fmt: skip
