"""Run folders that are shown, reported, compared, served and resumed; maps saved by other tools; specifications."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_corpora import CONLLU, npz, npz_shaped
from fuzz_engine import Target
from mutations import VALUES, Mutator
from safetensors.numpy import save

import headscope as hs
from headscope.app.limits import Limits
from headscope.app.served_runs import ServedRuns, find_runs
from headscope.cli.printing.summary import summarise
from headscope.comparison.runs import compare
from headscope.corpora import read
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.spec import make_spec, read_spec
from headscope.errors import HeadscopeError
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.report import write_report
from headscope.results.results import Results
from headscope.runs.given_maps import measure_maps, read_maps
from helpers.architectures import build
from helpers.families import FAMILIES

MEASURES: dict[str, dict[str, int]] = {"tokens": {}, "entropy": {}, "relations": {"least": 1}}
FILES = ("run.json", "tables/tokens.parquet", "tables/relations_best.parquet", "states.safetensors", "gallery.safetensors")
SPEC = b"""model = "mini"
corpus = ["sampler"]
preset = "paper"
layers = [1, 2]
limit = 3

[measures.entropy]
level = "word"
[measures.tokens]
"""


@cache
def tiny() -> Model:
    """A BERT with two layers."""
    tokens = FAMILIES["wordpiece"]()
    network = build("bert", vocabulary=len(tokens))
    return Model("bert", network, Tokenizer(tokens), *find_sites(network))


@cache
def run_folder() -> Path:
    """A small run, made once. Its checksums are removed, so that a changed file is read instead of refused."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-fuzz-")) / "run"
    corpus = folder.parent / "small.conllu"
    corpus.write_text(CONLLU.replace("Haus", "cat") * 3, encoding="utf-8")
    hs.run(tiny(), read(corpus), MEASURES, folder, max_length=60, replicates=3, gallery=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest.pop("files", None)
    manifest.pop("sha256", None)
    (folder / "run.json").write_text(json.dumps(manifest))
    for name in ("states", "gallery"):
        path = folder / f"{name}.safetensors"
        path.write_bytes(with_header(path.read_bytes(), lambda header: header))
    return folder


def with_header(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """A safetensors file with a changed header and without its checksum."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    about = header.get("__metadata__", {})
    if "about" in about:
        inner = json.loads(about["about"])
        inner.pop("sha256", None)
        header["__metadata__"] = {name: value if isinstance(value, str) else json.dumps(value) for name, value in inner.items()}
    text = json.dumps(change(header)).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def header_shaped(mutator: Mutator, data: bytes) -> bytes:
    """A safetensors file with a mutated header, or with mutated JSON in its metadata."""

    def change(header: Any) -> Any:
        about = header.get("__metadata__", {})
        if about and mutator.random.random() < 0.6:
            name = mutator.random.choice(list(about))
            try:
                inner = json.loads(about[name])
            except ValueError:
                inner = {}
            about[name] = json.dumps(mutator.value(inner))
            return header
        return mutator.value(header)

    try:
        return with_header(data, change)
    except (ValueError, struct.error, TypeError, AttributeError, RecursionError):
        return data


def table_shaped(mutator: Mutator, data: bytes) -> bytes:
    """A Parquet file in which a column is removed, renamed, emptied or of another type, or with other rows."""
    try:
        table = pq.read_table(BytesIO(data))
    except (OSError, ValueError):
        return data
    chance = mutator.random
    if not table.num_columns:
        return data
    place = chance.randrange(table.num_columns)
    name, n = table.column_names[place], table.num_rows
    ways: tuple[Callable[[], pa.Table], ...] = (
        lambda: table.drop_columns([name]),
        lambda: table.rename_columns(["x" if one == name else one for one in table.column_names]),
        lambda: table.set_column(place, name, pa.nulls(n)),
        lambda: table.set_column(place, name, pa.array([chance.choice(["", "x" * 500, "-1", "cross/1-1"])] * n)),
        lambda: table.set_column(place, name, pa.array([chance.choice([0, -5, 10**9, 2**62])] * n)),
        lambda: table.set_column(place, name, pa.array([chance.choice([float("nan"), float("inf"), -1.0])] * n)),
        lambda: table.set_column(place, name, pa.array([[1, 2]] * n)),
        lambda: table.slice(0, chance.choice([0, 1, 3])),
        lambda: table.append_column(name, table.column(place)),
        lambda: table.replace_schema_metadata({}),
        lambda: table.take(list(range(n)) * 2),
    )
    try:
        changed = chance.choice(ways)()
    except (pa.ArrowException, TypeError, ValueError):
        return data
    sink = BytesIO()
    pq.write_table(changed, sink, compression="zstd")
    return sink.getvalue()


def show(folder: Path) -> None:
    """Print every table and the summary of a run."""
    results = Results.open(folder)
    for name in results:
        for style in ("csv", "json", "markdown", "latex"):
            results[name].head(5).to_text(style)
    summarise(results)


def page(folder: Path) -> None:
    write_report(Results.open(folder))


def compare_both_ways(folder: Path) -> None:
    """Compare a run with the unchanged run, in both orders."""
    whole = Results.open_run(run_folder())
    compare([whole, Results.open_run(folder)])
    compare([Results.open_run(folder), whole])


def serve(folder: Path) -> None:
    """Serve a run as the web app does."""
    import asyncio

    runs = ServedRuns(find_runs([folder]), Limits())

    async def visit() -> None:
        runs.describe()
        await runs.inside("run")

    try:
        asyncio.run(visit())
    finally:
        runs.close()


WAYS = (show, show, show, compare_both_ways, compare_both_ways, page, serve)  # the quick functions more often


def open_run(file: str, data: bytes, folder: Path) -> None:
    """Use a run folder in which one file is replaced. The content of the file selects one of four uses."""
    path = folder / "run"
    shutil.copytree(run_folder(), path)
    (path / file).write_bytes(data)
    WAYS[zlib.crc32(data) % len(WAYS)](path)


def resume_partial(data: bytes, folder: Path) -> None:
    """Resume a stopped run whose partial result is replaced."""
    path, corpus = folder / "run", run_folder().parent / "small.conllu"
    shutil.copytree(run_folder(), path)
    manifest = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**manifest, "status": "running"}))
    (path / "partial").mkdir()
    (path / "partial" / "00000000-00000000.safetensors").write_bytes(data)
    hs.run(tiny(), read(corpus), MEASURES, path, max_length=60, replicates=3, gallery=2, resume=True)


def maps(suffix: str, data: bytes, folder: Path) -> None:
    """Read a file of attention maps and measure them."""
    path = folder / f"maps{suffix}"
    path.write_bytes(data)
    try:
        found = read_maps(path)
    except HeadscopeError as error:
        assert str(path) in str(error)
        raise
    measure_maps([found], {"entropy": {}, "tokens": {}}, replicates=2, gallery=0)


def specification(data: bytes, folder: Path) -> None:
    """Read the specification of a run."""
    path = folder / "spec.toml"
    path.write_bytes(data)
    make_spec(read_spec(path), str(path))


def toml_shaped(mutator: Mutator, data: bytes) -> bytes:
    """A TOML file with another value after one of the equals signs."""
    lines = data.split(b"\n")
    places = [number for number, line in enumerate(lines) if b"=" in line]
    if not places:
        return data
    place = mutator.random.choice(places)
    value = json.dumps(mutator.random.choice(VALUES))
    lines[place] = lines[place].partition(b"=")[0] + b"= " + value.replace(": ", " = ").encode()
    return b"\n".join(lines)


def given_maps() -> dict[str, Any]:
    """Attention maps of two layers with two heads each, over three tokens."""
    return {
        "attention": np.full((2, 2, 3, 3), 1 / 3, np.float32),
        "tokens": np.array(["[CLS]", "cat", "[SEP]"]),
        "words": np.array([-1, 0, -1]),
    }


def targets() -> list[Target]:
    """The targets of this module. The first call makes a run."""
    shaped = {".json": Mutator.json, ".parquet": table_shaped, ".safetensors": header_shaped}
    whole = given_maps()
    as_arrays = save({"attention": whole["attention"]}, metadata={"tokens": '["[CLS]", "cat", "[SEP]"]', "words": "[-1, 0, null]"})
    spec_tokens = (
        b"[measures.",
        b"]",
        b"[[",
        b"= ",
        b'"""',
        b"{",
        b"true",
        b"1979-05-27",
        b"inf",
        b"entropy",
        b"unit",
        b"corpus",
        b"own = ",
        b"seed = ",
    )
    folder = run_folder()
    return [
        *(
            Target(f"run/{file}", [(folder / file).read_bytes()], partial(open_run, file), shaped=shaped[Path(file).suffix], share=0.04)
            for file in FILES
        ),
        Target("run/partial", [(folder / "states.safetensors").read_bytes()], resume_partial, shaped=header_shaped, share=0.01),
        Target("maps/npz", [npz(**whole)], lambda data, folder: maps(".npz", data, folder), shaped=npz_shaped, share=0.5),
        Target("maps/safetensors", [as_arrays], lambda data, folder: maps(".safetensors", data, folder), shaped=header_shaped, share=0.5),
        Target("spec", [SPEC], specification, spec_tokens, shaped=toml_shaped),
    ]
