"""Tables as files: complete numbers for other programs, rounded ones for Markdown and LaTeX."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from headscope.core.suggest import choose_from
from headscope.errors import RunError

# Each format with the endings of its files; the first ending is the usual one.
FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv",),
    "json": (".json",),
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
}
FOR_READING = ("markdown", "latex")  # with rounded numbers
BINARY = ("parquet", "arrow")
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "_%&#${}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "−": "$-$", "±": r"$\pm$"},
    }
)
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\|<*`"})


def format_of(path: str | Path) -> str:
    """The format that belongs to the ending of a file name."""
    ending = Path(path).suffix.lower()
    for name, endings in FORMATS.items():
        if ending in endings:
            return name
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    ending = repr(ending) if ending else "a file without an extension"
    raise RunError(f"{path}: tables cannot be written as {ending}", f"Use a name that ends in {known}")


def encode(table: pa.Table, format: str) -> bytes:
    """A table as the bytes of a file; the same table gives the same bytes."""
    if format not in FORMATS:
        raise RunError(f"format {format!r} is unknown", choose_from(format, FORMATS))
    return _WRITERS[format](table)


def display(value: object) -> str:
    """A cell for reading: four decimals, or a power of ten for tiny numbers; a dash for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 0.00005 else f"{value:.4f}"


def is_text(table: pa.Table, column: str) -> bool:
    """Whether a column holds text, which is aligned to the left."""
    kind = table.schema.field(column).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _csv(table: pa.Table, delimiter: str = ",") -> bytes:
    """CSV with empty cells for missing numbers, since not all programs read `nan` as a number."""
    import pyarrow.compute
    import pyarrow.csv

    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            numbers = table[field.name]
            table = table.set_column(place, field, pa.compute.if_else(pa.compute.is_nan(numbers), None, numbers))
    sink = io.BytesIO()
    try:
        pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))
    except pa.ArrowException as error:
        raise RunError(f"the table cannot be written as csv ({str(error)[:200]})", "Use json") from None
    return sink.getvalue()


def _json(table: pa.Table) -> bytes:
    """A list of rows; null for NaN and infinities, which JSON does not have."""
    return (json.dumps(_plain(table.to_pylist()), indent=1, ensure_ascii=False) + "\n").encode()


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(table: pa.Table) -> bytes:
    rule = [":--" if is_text(table, name) else "--:" for name in table.column_names]
    rows = [[_single_line(cell).translate(_MARKDOWN) for cell in row] for row in _cells(table)]
    head = [_single_line(name).translate(_MARKDOWN) for name in table.column_names]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *rows)).encode()


def _latex(table: pa.Table) -> bytes:
    """A tabular with the rules of booktabs, and the signature as a comment."""
    spec = "".join("l" if is_text(table, name) else "r" for name in table.column_names)
    lines = [" & ".join(_single_line(cell).translate(_LATEX) for cell in row) + " \\\\" for row in (table.column_names, *_cells(table))]
    signature = (table.schema.metadata or {}).get(b"signature", b"").decode("utf-8", "replace")
    comment = [f"% {_single_line(signature)}"] if signature else []
    frame = [f"\\begin{{tabular}}{{{spec}}}", "\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"]
    return ("\n".join([*comment, *frame]) + "\n").encode()


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _arrow(table: pa.Table) -> bytes:
    """The file format of Arrow's inter-process communication, which is also that of Feather 2."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _cells(table: pa.Table) -> list[list[str]]:
    return [[display(value) for value in row.values()] for row in table.to_pylist()]


def _single_line(cell: str) -> str:
    return " ".join(cell.splitlines())


_WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "csv": _csv,
    "tsv": lambda table: _csv(table, "\t"),
    "json": _json,
    "markdown": _markdown,
    "latex": _latex,
    "parquet": _parquet,
    "arrow": _arrow,
}
