"""Parquet and Arrow files: tables of texts with one row per document and the columns of JSON Lines."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headscope.core.document import Document
from headscope.corpora.files import opened
from headscope.corpora.readers.fields import text_fields
from headscope.corpora.readers.json_values import plain
from headscope.corpora.readers.jsonl import documents_of
from headscope.corpora.source import Source
from headscope.errors import CorpusError, HeadscopeError

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1024  # rows that are converted to Python values together
_INDEX = "__index_level_"  # columns in which pandas keeps an index without a name


def read_arrow(source: Source, parquet: bool = False) -> Iterator[Document]:
    """A document for each row."""
    source.unit = "row"
    with opened(source.path, source.meter) as stream, closing(_rows(stream, source.path, parquet)) as entries:
        yield from documents_of(source, ((number, partial(dict, row)) for number, row in enumerate(entries, 1)), "rows")


def holds_pairs(path: Path, columns: Mapping[str, str], parquet: bool = False) -> bool:
    """Whether the rows are pairs of texts; False if the file is invalid, which reading will report."""
    try:
        with opened(path) as stream, closing(_rows(stream, path, parquet)) as entries:
            names = [name for name in next(entries) if name not in columns.values()]
            return len(text_fields([*columns, *names])) == 2
    except (HeadscopeError, StopIteration):
        return False


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    """The rows of a table as plain values; columns of bytes or structs and the unnamed index of pandas are skipped."""
    import pyarrow as pa

    for batch in batches:
        wanted = [number for number, field in enumerate(batch.schema) if not _is_skipped(pa, field)]
        for start in range(0, batch.num_rows, _ROWS):
            for row in batch.slice(start, _ROWS).select(wanted).to_pylist():
                yield {name: plain(value) for name, value in row.items()}


def _is_skipped(pa: Any, field: pa.Field) -> bool:
    types = pa.types
    return field.name.startswith(_INDEX) or any(
        is_type(field.type) for is_type in (types.is_struct, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    )


def _rows(stream: IO[bytes], path: Path, parquet: bool) -> Generator[dict[str, object]]:
    """The rows of a file; any fault in it becomes a CorpusError."""
    import pyarrow as pa

    try:
        if parquet:
            from pyarrow.parquet import ParquetFile

            batches = ParquetFile(stream).iter_batches(batch_size=_ROWS)
        else:
            batches = _ipc(stream)
        yield from rows(map(_validated, batches))
    except (pa.ArrowException, OSError, MemoryError, ValueError, KeyError) as error:
        kind = "Parquet" if parquet else "Arrow"
        cause = str(error).strip().partition("\n")[0]
        raise CorpusError(path, None, f"this cannot be read as {kind} data ({cause})", "Write or download the file again") from None


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch itself, after validation: offsets in a damaged file could point anywhere."""
    batch.validate(full=True)
    return batch


def _ipc(stream: IO[bytes]) -> Iterator[Any]:
    """The batches of an Arrow file, which has an index at its end, or of an Arrow stream, as `datasets` saves it."""
    import pyarrow as pa

    is_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    if is_file:
        reader = pa.ipc.open_file(stream)
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(stream)
