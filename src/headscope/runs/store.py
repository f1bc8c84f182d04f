"""The run folder: what is in it, and how it is written so that a crash at any moment leaves it whole.

    run.json              settings, signature, versions, counts
    tables/NAME.parquet   one a table
    states.safetensors    the merged states, from which the tables can be made again
    gallery.safetensors   maps of some of its texts: runs/gallery.py
    partial/A-B.safetensors   while running: merged shards A to B

Files appear under their name only when complete: they are written beside it, synced, and renamed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from headscope.core.state import Array, State, States
from headscope.errors import RunError, StaleError
from headscope.runs.table import Table

FORMAT = 1


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is either there in full or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(f"{path} cannot be written ({error.strerror})", "Choose another folder with --out, or free some space") from error


def _is_temporary(path: Path) -> bool:
    """Whether a write that never ended left this file."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def encode_states(states: Mapping[str, State], metadata: Mapping[str, str]) -> bytes:
    """States as one safetensors file; merges are kept in its metadata. An array whose axes are in another order in memory, which
    safetensors would write as it lies there, is put in order first.
    """
    arrays = {f"{name}/{key}": np.ascontiguousarray(array) for name, state in states.items() for key, array in state.arrays.items()}
    merges = {name: state.merges for name, state in states.items()}
    data: bytes = save(arrays, metadata={"merges": json.dumps(merges), **metadata})
    return data


def read_states(path: Path) -> tuple[States, dict[str, str]]:
    """States and metadata from a file of `encode_states`."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata: dict[str, str] = file.metadata() or {}
            merges = json.loads(metadata["merges"])
            arrays: dict[str, dict[str, Array]] = {name: {} for name in merges}
            for key in file.keys():  # noqa: SIM118 - not a mapping
                name, _, array = key.partition("/")
                arrays[name][array] = file.get_tensor(key)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error})", "Remove that file and run again with --resume: its part is computed anew") from error
    return {name: State(arrays[name], merges[name]) for name in merges}, metadata


class Folder:
    """A run folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def manifest(self) -> Path:
        """`run.json`."""
        return self.path / "run.json"

    @property
    def gallery(self) -> Path:
        """`gallery.safetensors`."""
        return self.path / "gallery.safetensors"

    @property
    def _partial(self) -> Path:
        return self.path / "partial"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while a run writes here; the system lets go of it when the process ends, however it ends. The file stays:
        removing it would let two runs hold locks on two files of the same name.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise RunError(f"{self.path} cannot be written ({error.strerror})", "Choose another folder with --out") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"another run is writing to {self.path}", "Wait for it, or choose another folder with --out") from None
            except OSError as error:
                raise RunError(f"{self.path} cannot be locked ({error.strerror})", "Choose a folder on a local disk with --out") from None
            yield

    def read_manifest(self) -> dict[str, Any]:
        """The contents of `run.json`."""
        try:
            manifest = json.loads(self.manifest.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run folder: it has no run.json", "Name a folder that headscope run wrote") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{self.manifest} cannot be read ({error})") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise RunError(f"{self.manifest} is not of format {FORMAT}", "It was written by another version of headscope; run again")
        return manifest

    def expect(self, manifest: Mapping[str, Any]) -> None:
        """An error if `run.json` is of another run, but for what it passed over: a gallery may still be made, or fail.

        A new run removes it first and writes it last, so what was read before belongs to this one.
        """
        try:
            found = self.read_manifest()
        except RunError:
            found = {}
        if json.dumps({**found, "dropped": None}, sort_keys=True) != json.dumps({**manifest, "dropped": None}, sort_keys=True):
            raise StaleError(f"the run in {self.path} has changed since it was opened", "Open it again")

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace `run.json`."""
        text = json.dumps({"format": FORMAT, **manifest}, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.manifest, text.encode("utf-8", "backslashreplace"))  # of file names that are no text: JSON has escapes

    def refuse_others(self) -> None:
        """An error if the folder holds anything and is not a run folder: nothing of somebody else's is ever touched."""
        if self.manifest.exists() or not self.path.is_dir():
            return
        for path in sorted(self.path.iterdir()):
            if path.name != ".lock" and not _is_temporary(path):
                raise RunError(f"{self.path} is not empty and no run folder (it holds {path.name})", "Choose another folder with --out")

    def clear(self) -> None:
        """Remove the files of the run in this folder, its report included, and nothing else."""
        self.refuse_others()
        names = ["run.json", "states.safetensors", self.gallery.name, "report.html"]
        own = [self.path / name for name in names] + [*self._partial.glob("*.safetensors"), *(self.path / "tables").glob("*.parquet")]
        for path in [*own, *filter(_is_temporary, self.path.rglob(".*.tmp"))]:
            path.unlink(missing_ok=True)

    def begun(self) -> bool:
        """Whether there is anything to go on with."""
        return bool(self._parts())

    def write_part(self, first: int, last: int, states: States, key: str) -> None:
        """Keep the merged states of shards `first` to `last`, and drop the parts they contain."""
        write_atomically(self._partial / f"{first:08d}-{last:08d}.safetensors", encode_states(states, {"key": key}))
        for (start, end), path in self._parts().items():
            if first <= start and end <= last and (start, end) != (first, last):
                path.unlink()

    def _parts(self) -> dict[tuple[int, int], Path]:
        found = {}
        for path in sorted(self._partial.glob("*-*.safetensors")):
            first, _, last = path.stem.partition("-")
            found[int(first), int(last)] = path
        return found

    def read_parts(self, key: str) -> dict[tuple[int, int], States]:
        """The kept parts, those inside larger ones left out. Refused if they belong to other settings."""
        parts = {}
        spans = self._parts()
        for (first, last), path in spans.items():
            if any(start <= first and last <= end and (start, end) != (first, last) for start, end in spans):
                continue
            parts[first, last], metadata = read_states(path)
            if metadata.get("key") != key:
                raise RunError(f"{path} belongs to another run", "Use --overwrite to start afresh")
        return parts

    def finish(self, tables: Mapping[str, Table], states: States, manifest: Mapping[str, Any]) -> None:
        """Write the results, the manifest last: a folder is complete when its manifest says so."""
        for name, table in tables.items():
            write_atomically(self.path / "tables" / f"{name}.parquet", table.to_parquet())
        write_atomically(self.path / "states.safetensors", encode_states(states, {}))
        self.write_manifest(manifest)
        shutil.rmtree(self._partial, ignore_errors=True)

    def read_table(self, name: str) -> Table:
        """One table."""
        path = self.path / "tables" / f"{name}.parquet"
        if not path.is_file():
            raise RunError(f"{path} is missing", "Run again with --overwrite")
        try:
            return Table(pq.read_table(path))
        except (OSError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error})", "Run again with --overwrite") from None
