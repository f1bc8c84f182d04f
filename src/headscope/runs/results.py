"""A finished run: its tables and what they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.runs.store import Folder
from headscope.runs.table import Table


class Results(Mapping[str, Table]):
    """Tables by name, with the manifest that says where they come from; in memory or in a folder, read when asked for."""

    def __init__(self, manifest: Mapping[str, Any], tables: Mapping[str, Table], path: Path | None = None) -> None:
        self.manifest = manifest
        self.path = path
        self._tables = tables

    @classmethod
    def open(cls, path: Path) -> Results:
        """The results in a run folder."""
        folder = Folder(path)
        manifest = folder.read_manifest()
        if manifest["status"] != "complete":
            raise RunError(f"the run in {path} is not finished", "Go on with it by running the same command with --resume")
        return cls(manifest, _Lazy(folder), path)

    @property
    def signature(self) -> str:
        """The line that says what was measured, on what, and how."""
        return str(self.manifest["signature"])

    @property
    def measures(self) -> list[str]:
        """The measures of the run, in its order; each has a table of heads and a table of layers."""
        named = self.manifest["identity"]["settings"].get("measures", {})
        return [name for name in named if name in self and f"{name}_layers" in self]

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            raise RunError(f"the run has no table {name!r}", f"It has {', '.join(self)}")
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class _Lazy(Mapping[str, Table]):
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._names = folder.tables()
        self._read: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._read:
            self._read[name] = self._folder.read_table(name)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
