"""Raw texts by the names of their files: what the readers take, folders of plain text, and standard input."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from headscope.core.paths import kind_of
from headscope.corpora import Corpus, OnError, read
from headscope.corpora.files import base_name
from headscope.corpora.formats import guess_format
from headscope.corpora.readers.folders import TEXTS, folder_format
from headscope.errors import CorpusError, HeadscopeError

INPUT = "-"


@contextmanager
def raw_texts(names: Sequence[str | Path], format: str | None = None, on_error: OnError | str = "raise") -> Iterator[Corpus]:
    """The corpus in these files, as long as the block runs: standard input, which can be read only once, is kept on
    disk till then.
    """
    with TemporaryDirectory(prefix="headscope-") as folder:
        paths: list[Path] = []
        for name in names:
            paths += [_kept(Path(folder))] if name == INPUT else _files(Path(name))
        yield read(*paths, format=format or _format(paths), on_error=on_error)  # type: ignore[arg-type]


def _format(paths: Sequence[Path]) -> str | None:
    """Plain text where no file's name tells of a format; else what the names tell."""
    try:
        guess_format(paths[0])
    except CorpusError:
        return "text" if all(kind_of(path) == "file" for path in paths) else None
    return None


def _files(path: Path) -> list[Path]:
    """The file itself; of a folder that is no corpus as a whole, the plain texts in it."""
    if kind_of(path) != "folder" or folder_format(path) is not None:
        return [path]
    found = sorted(file for file in path.iterdir() if kind_of(file) == "file" and base_name(file).lower().endswith(TEXTS))
    if not found:
        raise HeadscopeError(f"there is no text in the folder {path}", f"Put files that end in {' or '.join(TEXTS)} into it")
    return found


def _kept(folder: Path) -> Path:
    path = folder / "standard-input.txt"
    if path.exists():
        raise HeadscopeError("standard input is named twice", f"Name {INPUT} once")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
