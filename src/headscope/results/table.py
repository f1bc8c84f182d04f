"""Tables: tidy columns that print well and leave in any format."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from headscope.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMATS = ("csv", "json", "markdown", "latex")
_LATEX = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "|": r"\textbar{}"})


class Table:
    """Rows of named columns over Arrow memory; never changed in place. `table["value"]` is a column, a loop gives rows.

    >>> from headscope.results.table import Table
    >>> table = Table.of({"head": ["8-4", "3-10"], "value": [0.82, 0.97]})
    >>> table.sort("value", descending=True).head(1)["head"], len(table), [row["value"] for row in table]
    (['3-10'], 2, [0.82, 0.97])
    """

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    @classmethod
    def of(cls, columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Table:
        """A table from columns of equal length."""
        return cls(pa.table({name: pa.array(values) for name, values in columns.items()}).replace_schema_metadata(dict(metadata or {})))

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[str, Any]], columns: Iterable[str] | None = None, metadata: Mapping[str, str] | None = None
    ) -> Table:
        """A table from rows; its columns are those of `columns_of`."""
        return cls.of(columns_of(rows, columns), metadata)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.arrow.to_pylist())

    @property
    def columns(self) -> list[str]:
        """Column names in order."""
        return list(self.arrow.column_names)

    @property
    def metadata(self) -> dict[str, str]:
        """What was written down with the table: in a run, its signature."""
        return {key.decode(): value.decode("utf-8", "replace") for key, value in (self.arrow.schema.metadata or {}).items()}

    def __getitem__(self, column: str) -> list[Any]:
        self._known(column)
        return self.arrow[column].to_pylist()  # type: ignore[no-any-return]

    def _known(self, column: str) -> None:
        if column not in self.columns:
            raise RunError(f"no column is called {column!r}", f"The columns are {', '.join(self.columns)}")

    def where(self, **values: object) -> Table:
        """The rows in which each named column has the given value: `where(quantity="to_sep", layer=5)`."""
        arrow = self.arrow
        for column, value in values.items():
            self._known(column)
            try:
                wanted = pa.scalar(value, arrow.schema.field(column).type)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise RunError(f"{column} holds {arrow.schema.field(column).type}, so it is never {value!r}") from None
            arrow = arrow.filter(pc.equal(arrow[column], wanted))
        return Table(arrow)

    def parsed(self, column: str, text: str) -> object:
        """A value of a column from how it is written."""
        self._known(column)
        type = self.arrow.schema.field(column).type
        try:
            return pa.scalar(text).cast(type).as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise RunError(f"{column} holds {type}, so it is never {text!r}") from None

    def without(self, column: str) -> Table:
        """The table without a column."""
        self._known(column)
        return Table(self.arrow.drop_columns([column]))

    def sort(self, column: str, descending: bool = False) -> Table:
        """The rows ordered by a column; missing values last."""
        self._known(column)
        return Table(self.arrow.sort_by([(column, "descending" if descending else "ascending")]))

    def head(self, rows: int) -> Table:
        """The first rows."""
        return Table(self.arrow.slice(0, rows))

    def largest(self, column: str, rows: int) -> Table:
        """The rows that are furthest from 0 in a column, the furthest first."""
        self._known(column)
        order = pc.sort_indices(pc.abs(self.arrow[column]), sort_keys=[("", "descending")])
        return Table(self.arrow.take(order.slice(0, rows)))

    def first(self, *columns: str) -> Table:
        """Of the rows that are alike in some columns only the first; these are then sorted by the columns."""
        rows: dict[tuple[Any, ...], int] = {}
        for number, key in enumerate(zip(*(self[column] for column in columns), strict=True)):
            rows.setdefault(key, number)
        return Table(self.arrow.take(pa.array([rows[key] for key in sorted(rows)], pa.int64())))  # of a table without rows, too

    def to_pandas(self) -> pd.DataFrame:
        """As a pandas data frame (needs pandas)."""
        _need("pandas")
        frame: pd.DataFrame = self.arrow.to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """As a polars data frame (needs polars)."""
        _need("polars")
        import polars

        return polars.DataFrame(self.arrow)

    def to_parquet(self) -> bytes:
        """As the bytes of a Parquet file; the same bytes for the same table."""
        sink = io.BytesIO()
        pyarrow.parquet.write_table(self.arrow, sink, compression="zstd")
        return sink.getvalue()

    def to_text(self, style: str) -> str:
        """The whole table as `csv`, `json` (a list of rows), `markdown` or `latex` (booktabs)."""
        if style == "csv":
            sink = io.BytesIO()
            try:
                pyarrow.csv.write_csv(self.arrow, sink)
            except pa.ArrowException as error:
                raise RunError(f"the table cannot be written as csv ({str(error)[:200]})", "Use json") from None
            return sink.getvalue().decode()
        if style == "json":
            rows = [{name: None if isinstance(v, float) and math.isnan(v) else v for name, v in row.items()} for row in self]
            return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        cells = [[display(value) for value in row.values()] for row in self]
        if style == "markdown":
            escaped = [[cell.replace("|", "\\|") for cell in row] for row in cells]
            lines = [self.columns, [":--" if self._is_text(name) else "--:" for name in self.columns], *escaped]
            return "".join(f"| {' | '.join(line)} |\n" for line in lines)
        if style == "latex":
            spec = "".join("l" if self._is_text(name) else "r" for name in self.columns)
            body = "".join(" & ".join(cell.translate(_LATEX) for cell in row) + " \\\\\n" for row in cells)
            head = " & ".join(name.translate(_LATEX) for name in self.columns)
            return f"\\begin{{tabular}}{{{spec}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"
        raise RunError(f"format {style!r} is unknown", f"Use one of {', '.join(FORMATS)}")

    def _is_text(self, column: str) -> bool:
        return bool(pa.types.is_string(self.arrow.schema.field(column).type))

    def __repr__(self) -> str:
        shown = self.head(12)
        cells = [self.columns, *([display(value) for value in row.values()] for row in shown)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        more = f"\n... {len(self) - len(shown)} more rows" if len(self) > len(shown) else ""
        return "\n".join(lines) + more


def columns_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str] | None = None) -> dict[str, list[Any]]:
    """The columns of rows by name: those named, also if there are no rows; without names, those of the first row."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in (rows[0] if names is None and rows else names or ())}


def display(value: object) -> str:
    """A cell for reading: four decimals, or a power of ten for tiny numbers; a dash for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 0.00005 else f"{value:.4f}"


def _need(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise RunError(f"{package} is not installed", f"pip install {package}, or pip install 'headscope[frames]'")


def interval(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A share with its interval, as in `0.46 [0.45 0.47]`; without the interval, or a dash, where there is none."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f} {high:.2f}]"


def with_error(value: float, error: float | None) -> str:
    """A share with its standard error, as in `0.39 ± 0.012`; without the error, or a dash, where there is none."""
    return interval(value) if error is None or math.isnan(error) else f"{value:.2f} ± {error:.3f}"


def spelled(row: Mapping[str, Any]) -> str:
    """A distance with its interval, as in `0.166 [0.164 0.167]`."""
    digits = 3 if abs(row["value"]) < 10 else 0
    value = f"{row['value']:,.{digits}f}"
    return value if math.isnan(row["low"]) else f"{value} [{row['low']:,.{digits}f} {row['high']:,.{digits}f}]"


def p_value(p: float) -> str:
    """A p-value behind the letter: `= 0.03`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"
