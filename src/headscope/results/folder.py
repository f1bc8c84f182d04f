"""The run folder: what is in it, and how it is written so that a crash at any moment does not damage it.

    run.json              settings, signature, versions, counts
    tables/NAME.parquet   one file per table; tables/NAME.slices.parquet: the same table for each slice
    states.safetensors    the merged states, from which the tables can be made again
    gallery.safetensors   maps of some texts: results/gallery.py
    partial/A-B.safetensors   while running: merged shards A to B
    states/               while a probe is trained: hidden states

A folder may also hold other people's files. Only the files that `run.json` lists, and those whose names match a pattern
below, are ever removed, and folders only when they are empty.

A file appears under its name only when it is complete: it is written under a temporary name, synced, and renamed.
`run.json` holds the checksums of finished files under `files`, and its own; each part contains its checksum.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headscope.core.packed import PackedArray
from headscope.core.paths import kind_of, remove_if_empty, remove_matching, unusable
from headscope.core.state import Array, State, States
from headscope.errors import RunError, StaleError
from headscope.results.files import TEMPORARY, checksum, open_arrays, open_record, seal_arrays, seal_record, write_atomically
from headscope.results.table import Table

__all__ = ["Folder", "encode_states", "read_states", "write_atomically"]

FORMAT = 1
STATES = "states.safetensors"
_GALLERY = "gallery.safetensors"
_REPORT = "report.html"
_LISTED = re.compile(r"tables/[^/]+\.parquet")  # other files that a manifest lists are not removed: it may have been edited
_WORKING = {  # by sub-folder, the files that are needed only until a run is complete
    "partial": re.compile(r"[0-9]+-[0-9]+\.safetensors|training\.safetensors"),
    "states": re.compile(r"[0-9a-f]{24}\.(states|sums|lock)"),
}
_PART = "@"  # between the name of a state and that of its part
_ROWS = "rows of "  # begins the name of the index of a packed array
_SUBFOLDERS = ("tables", *_WORKING)
_ABANDONED = re.compile(rf"(?!\.report){TEMPORARY.pattern}")  # a report may be written at any time, by another process
_RESUME = "Free some space, and continue with --resume: finished parts are kept"
_OVERWRITE = "Run again with --overwrite"
_held: dict[Path, tuple[int, int]] = {}  # the lock files that this process holds, by folder


def encode_states(states: Mapping[str, State], metadata: Mapping[str, str]) -> bytes:
    """States as one safetensors file; its metadata hold merges and a checksum. The parts of a divided state follow
    under their own names, as in `entropy@news`.
    """
    arrays: dict[str, np.ndarray] = {f"{name}/{key}": array for name, state in states.items() for key, array in state.arrays.items()}
    for name, state in states.items():
        for part, packed in state.parts.items():
            place = f"{name}{_PART}{quote(part, safe='')}"
            for key, array in packed.items():
                if isinstance(array, PackedArray):
                    arrays |= {f"{place}/{_ROWS}{key}": array.places, f"{place}/{key}": array.rows}
                else:
                    arrays[f"{place}/{key}"] = array
    merges = {name: state.merges for name, state in states.items()}
    return seal_arrays(arrays, {"merges": json.dumps(merges), **metadata})


def read_states(path: Path) -> tuple[States, dict[str, str]]:
    """States and metadata from a file that `encode_states` made."""
    try:
        arrays, metadata = open_arrays(path)
        merges = json.loads(metadata["merges"])
        by_state: dict[str, dict[str, Array]] = {name: {} for name in merges}
        parts: dict[str, dict[str, dict[str, PackedArray | Array]]] = {name: {} for name in merges}
        for key, array in arrays.items():
            name, _, place = key.partition("/")
            measure, _, part = name.rpartition(_PART)
            if name in merges:
                by_state[name][place] = array
            elif not place.startswith(_ROWS):
                index = arrays.get(f"{name}/{_ROWS}{place}")
                parts[measure].setdefault(unquote(part), {})[place] = array if index is None else PackedArray(index, array)
        return {name: State(by_state[name], merges[name], parts[name]) for name in merges}, metadata
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = f"{path} is damaged ({str(error)[:200]})"
        raise RunError(problem, "Remove that file and run again with --resume: its part is computed again") from error


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
        return self.path / _GALLERY

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A lock that a run holds while it writes here; the system releases it when the process ends in any way. The
        lock file is kept: if it were removed, two runs could hold locks on two files of this name.
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
            place = self.path.resolve()
            _held[place] = _inode(os.fstat(lock.fileno()))
            try:
                yield
            finally:
                del _held[place]

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the run. An error if the folder was removed or replaced meanwhile."""
        held = _held.get(self.path.resolve())
        try:
            gone = held is not None and held != _inode((self.path / ".lock").stat())
        except OSError:
            gone = True
        if gone:
            raise RunError(f"{self.path} was removed or replaced while it was written to", "Run again, into a folder that is not removed")
        write_atomically(self.path / name, data, self.path, _RESUME)

    def read_manifest(self) -> dict[str, Any]:
        """The contents of `run.json`."""
        if wrong := unusable(self.path):
            raise RunError(f"{self.path}: {wrong[0]}", wrong[1])
        try:
            manifest = open_record(self.manifest.read_bytes())
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run folder: it has no run.json", "Name a folder written by headscope run") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{self.manifest} cannot be read ({error})", f"{_OVERWRITE}, or into another folder") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise RunError(f"{self.manifest} is not of format {FORMAT}", "It was written by another version of headscope; run again")
        return manifest

    def expect(self, manifest: Mapping[str, Any]) -> None:
        """Raise an error if `run.json` is now of another run. The list of what was skipped may differ: a gallery may
        have been added, or have failed.

        A new run replaces `run.json` before its other files, so all files read before this check belong to this run.
        """
        try:
            known = self.read_manifest()
        except RunError:
            known = {}
        if json.dumps({**known, "dropped": None}, sort_keys=True) != json.dumps({**manifest, "dropped": None}, sort_keys=True):
            raise StaleError(f"the run in {self.path} has changed since it was opened", "Open it again")

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace `run.json`."""
        self.write(self.manifest.name, seal_record({"format": FORMAT, **manifest}))

    def refuse_others(self) -> None:
        """Raise an error if the folder is not empty and not a run folder, or if a sub-folder is a symbolic link: the
        files that it leads to may be another person's.
        """
        if wrong := unusable(self.path):
            raise RunError(f"{self.path}: {wrong[0]}", wrong[1])
        if (kind := kind_of(self.path)) not in ("missing", "folder"):
            raise RunError(f"{self.path} is a {kind}", "Name a folder with --out")
        self.refuse_links(_SUBFOLDERS)
        others = self._others() if not self.manifest.exists() else [self.manifest.name] if self._is_foreign() else []
        if others:
            raise RunError(f"{self.path} is not empty and not a run folder (it contains {others[0]})", "Choose another folder with --out")

    def _is_foreign(self) -> bool:
        """Whether `run.json` is a record of another program; one that cannot be read counts as damaged."""
        try:
            record = json.loads(self.manifest.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return not (isinstance(record, dict) and "format" in record)

    def refuse_links(self, names: Iterable[str]) -> None:
        """Raise an error if a sub-folder of one of these names is a symbolic link."""
        for name in names:
            if (self.path / name).is_symlink():
                raise RunError(f"{self.path / name} is a symbolic link", "Replace it by a folder, or choose another folder with --out")

    def _others(self) -> list[str]:
        """The names in this folder that are not those of a manifest, a lock or an abandoned write."""
        if not self.path.is_dir():
            return []
        names = sorted(path.name for path in self.path.iterdir())
        return [name for name in names if name not in (".lock", self.manifest.name) and not TEMPORARY.fullmatch(name)]

    def require_writable(self) -> None:
        """Raise an error, before any work is done, if the folder cannot be created or written to."""
        there = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise RunError(f"{there} cannot be written to", "Choose another folder with --out")

    def clear(self) -> None:
        """Remove the files of the run in this folder, its report included, and nothing else."""
        self.refuse_others()
        self.mark_cleared()
        self._remove_listed()
        for name in _WORKING:
            self.drop(name)
        for place in (self.path.resolve(), self.path / "tables"):
            remove_matching(place, TEMPORARY)
        names = [STATES, _GALLERY, *([_REPORT] if _is_report(self.path / _REPORT) else [])]
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        remove_if_empty(self.path / "tables")
        if not self._others():  # without the manifest, a folder with other files would not count as a run folder
            self.manifest.unlink(missing_ok=True)

    def mark_cleared(self) -> None:
        """Mark in the manifest that the files it lists are no longer results, before they are removed."""
        if self.manifest.exists():
            self.write_manifest({"status": "cleared", "files": dict.fromkeys(self._listed(), "")})

    def remove(self) -> None:
        """Remove the run, and the folder if it holds nothing else."""
        self.clear()
        if not self._others():
            (self.path / ".lock").unlink(missing_ok=True)
        remove_if_empty(self.path)

    def _listed(self) -> list[str]:
        try:
            manifest = self.read_manifest()
        except RunError:
            return []
        files, tables = manifest.get("files"), manifest.get("tables")
        names = list(files) if isinstance(files, dict) else []
        names += [f"tables/{name}.parquet" for name in tables] if isinstance(tables, list) else []  # of versions without `files`
        return sorted({name for name in names if _LISTED.fullmatch(name)})

    def _remove_listed(self) -> None:
        for name in self._listed():
            (self.path / name).unlink(missing_ok=True)

    def tidy(self, complete: bool) -> None:
        """Remove what a killed run left: temporary files, parts of a complete run, tables of an unfinished one."""
        for place in (self.path.resolve(), *(self.path / name for name in _SUBFOLDERS)):
            remove_matching(place, _ABANDONED)
        if complete:
            self.drop("partial")
        else:
            self._remove_listed()

    def drop(self, name: str) -> None:
        """Remove the files of an unfinished run in a sub-folder, and the sub-folder if it is then empty."""
        for pattern in (_WORKING[name], TEMPORARY):
            remove_matching(self.path / name, pattern)
        remove_if_empty(self.path / name)

    def begun(self) -> bool:
        """Whether there are parts from which a run can be continued."""
        return bool(self._parts())

    def write_part(self, first: int, last: int, states: States, key: str) -> None:
        """Save the merged states of shards `first` to `last`, and remove the parts that they contain."""
        self.write(f"partial/{first:08d}-{last:08d}.safetensors", encode_states(states, {"key": key}))
        for (start, end), path in self._parts().items():
            if first <= start and end <= last and (start, end) != (first, last):
                path.unlink(missing_ok=True)

    def _parts(self) -> dict[tuple[int, int], Path]:
        parts = {}
        for path in sorted((self.path / "partial").glob("*-*.safetensors")):
            if _WORKING["partial"].fullmatch(path.name):
                first, _, last = path.stem.partition("-")
                parts[int(first), int(last)] = path
        return parts

    def read_parts(self, key: str) -> dict[tuple[int, int], States]:
        """The saved parts, without those that larger ones contain. Parts of other settings or shards are refused."""
        parts = {}
        spans = self._parts()
        for (first, last), path in spans.items():
            if any(start <= first and last <= end and (start, end) != (first, last) for start, end in spans):
                continue
            parts[first, last], metadata = read_states(path)
            if metadata.get("key") != key:
                raise RunError(f"{path} belongs to another run", "Use --overwrite to start again")
        return parts

    def finish(self, tables: Mapping[str, Table], states: States, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Write the results, the manifest last: only this makes a folder complete. Return the manifest."""
        files = {f"tables/{name}.parquet": table.to_parquet() for name, table in tables.items()}
        files[STATES] = encode_states(states, {})
        complete = {**manifest, "files": {name: checksum(data) for name, data in files.items()}}
        self.write_manifest({**complete, "status": "running"})  # lists the files, in case this ends here
        for name, data in files.items():
            self.write(name, data)
        self.write_manifest(complete)
        self.drop("partial")
        return complete

    def read(self, name: str, manifest: Mapping[str, Any], remedy: str = _OVERWRITE) -> bytes:
        """The bytes of a file of a finished run, which must have its checksum in the manifest, if it has one there."""
        path = self.path / name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise RunError(f"{path} is missing", remedy) from None
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror})", remedy) from None
        expected = manifest.get("files", {}).get(name)
        if expected is not None and checksum(data) != expected:
            raise RunError(f"{path} is damaged (its checksum does not match)", remedy)
        return data

    def read_table(self, name: str, manifest: Mapping[str, Any]) -> Table:
        """One table."""
        place = f"tables/{name}.parquet"
        data = self.read(place, manifest)
        try:
            table = Table(pq.ParquetFile(pa.BufferReader(data)).read())  # `read_table` would import pandas
            if len({*table.columns}) < len(table.columns):
                raise ValueError("two columns have the same name")
            return table
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunError(f"{self.path / place} is damaged ({error})", _OVERWRITE) from None


def _is_report(path: Path) -> bool:
    """Whether a file is a page that headscope wrote, not another page of that name."""
    try:
        with path.open("rb") as file:
            return b"<title>headscope: " in file.read(2000)
    except OSError:
        return False


def _inode(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
