"""Tables of named columns, which can be printed, filtered, and written in many formats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from headscope.core import html
from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.results.formats import BINARY, display, encode, format_of, is_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

SHOWN = 12  # rows that are printed of a longer table
SHOWN_IN_NOTEBOOKS = 20


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
        """The metadata of the table: in a run, its signature."""
        return {key.decode(): value.decode("utf-8", "replace") for key, value in (self.arrow.schema.metadata or {}).items()}

    def __getitem__(self, column: str) -> list[Any]:
        self._known(column)
        return self.arrow[column].to_pylist()  # type: ignore[no-any-return]

    def _known(self, column: str) -> None:
        if column not in self.columns:
            raise RunError(f"there is no column {column!r}", choose_from(column, self.columns, "The columns are"))

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
        """The value of a column that a text stands for, such as the number 3 for `3`."""
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
        """The first of all rows with equal values in these columns, sorted by the columns."""
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

    def to_arrow(self) -> pa.Table:
        """As a table of pyarrow, whose metadata hold the signature."""
        return self.arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that reads Arrow data: `pa.table(t)`, `pl.DataFrame(t)`, `duckdb.sql("FROM t")`."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    @overload
    def to_csv(self, path: None = None) -> str: ...
    @overload
    def to_csv(self, path: str | Path) -> None: ...
    def to_csv(self, path: str | Path | None = None) -> str | None:
        """As CSV with complete numbers: the text, or, with a path, a file."""
        if path is None:
            return self.to_text("csv")
        self.save(path, "csv")
        return None

    @overload
    def to_parquet(self, path: None = None) -> bytes: ...
    @overload
    def to_parquet(self, path: str | Path) -> None: ...
    def to_parquet(self, path: str | Path | None = None) -> bytes | None:
        """As Parquet: the bytes, the same for the same table, or, with a path, a file."""
        if path is None:
            return encode(self.arrow, "parquet")
        self.save(path, "parquet")
        return None

    def to_text(self, format: str) -> str:
        """The whole table as `csv`, `tsv`, `json` (a list of rows), `markdown` or `latex` (booktabs). Markdown and
        LaTeX have rounded numbers, the others complete ones.
        """
        if format in BINARY:
            raise RunError(f"{format} is not a text format", "Use Table.save")
        return encode(self.arrow, format).decode()

    def save(self, path: str | Path, format: str | None = None) -> Path:
        """Write the table to a file, completely or not at all, and return its path. Without a format the ending of the
        name decides: .csv, .tsv, .json, .md, .tex, .parquet or .arrow.
        """
        from headscope.results.files import write_atomically

        target = Path(path)
        write_atomically(target, encode(self.arrow, format or format_of(target)))
        return target

    def __repr__(self) -> str:
        shown = self.head(SHOWN)
        cells = [self.columns, *([display(value) for value in row.values()] for row in shown)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        more = f"\n... {len(self) - len(shown)} more rows" if len(self) > len(shown) else ""
        return "\n".join(lines) + more

    def _repr_html_(self) -> str:
        """The first rows and the signature, for a notebook."""
        size = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        size += f", of which the first {SHOWN_IN_NOTEBOOKS}" if len(self) > SHOWN_IN_NOTEBOOKS else ""
        rows = ([display(value) for value in row.values()] for row in self.head(SHOWN_IN_NOTEBOOKS))
        cells = html.table(self.columns, rows, [is_text(self.arrow, name) for name in self.columns])
        return html.card(size, inside=cells, note=self.metadata.get("signature", ""))


def columns_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str] | None = None) -> dict[str, list[Any]]:
    """The columns of rows by name: the named ones, even if there are no rows; without names, those of the first row."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in (rows[0] if names is None and rows else names or ())}


def _need(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise RunError(f"{package} is not installed", f"pip install {package}, or pip install 'headscope[frames]'")


def interval(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """A share with its interval, as in `0.46 [0.45 0.47]`; the share alone if it has no interval; a dash for NaN."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f} {high:.2f}]"


def with_error(value: float, error: float | None) -> str:
    """A share with its standard error, as in `0.39 ± 0.012`; the share alone if it has no error; a dash for NaN."""
    return interval(value) if error is None or math.isnan(error) else f"{value:.2f} ± {error:.3f}"


def spelled(row: Mapping[str, Any]) -> str:
    """A distance with its interval, as in `0.166 [0.164 0.167]`."""
    digits = 3 if abs(row["value"]) < 10 else 0
    value = f"{row['value']:,.{digits}f}"
    return value if math.isnan(row["low"]) else f"{value} [{row['low']:,.{digits}f} {row['high']:,.{digits}f}]"


def p_value(p: float) -> str:
    """A p-value as it follows the letter p: `= 0.03`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"
