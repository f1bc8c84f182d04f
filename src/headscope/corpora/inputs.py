"""Names of corpora: files, folders, `sampler`, `-` for standard input; and names of columns in a file.

`posts.csv?text=body&id=post` is the file posts.csv with the text in the column `body`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from headscope.core.paths import kind_of
from headscope.corpora.files import require_file
from headscope.corpora.formats import by_name
from headscope.corpora.readers.fields import require_known
from headscope.corpora.readers.folders import KEYS, folder_format
from headscope.corpora.source import quoted
from headscope.corpora.spool import INPUT, standard_input
from headscope.errors import CorpusError, HeadscopeError

SAMPLER = "sampler"
REPEATS, NEEDLES = "repeats:", "needles:"  # prefixes of the names of corpora of repeated sequences, and of texts with needles
_SAVED, _SPLITS = "state.json", "dataset_dict.json"  # of a dataset saved by Hugging Face's `datasets`, and of several
_QUERY = "Write columns as in posts.csv?text=body&id=post"


class Resolved(NamedTuple):
    """The files to read, the named columns, and the files of folders that are skipped."""

    paths: tuple[Path, ...]
    columns: dict[str, str]
    passed_over: tuple[Path, ...] = ()


def resolve(names: Sequence[str | Path], format: str | None = None) -> Resolved:
    """The files that names refer to. `sampler` is the corpus in the package, `-` standard input. A folder stands for
    its files, or for itself if it contains texts with keys.
    """
    if not names:
        raise HeadscopeError("no corpus is named", f"Name files, or `{SAMPLER}` for the corpus that comes with headscope")
    paths: list[Path] = []
    passed_over: list[Path] = []
    columns: dict[str, str] | None = None
    for name in names:
        bare, named = split_columns(str(name)) if isinstance(name, str) else (str(name), {})
        if columns not in (None, named):
            raise HeadscopeError("the files name different columns", "Name the same for all, or read them one at a time")
        columns = named
        if name == SAMPLER:
            paths += _sampler()
        elif name == INPUT:
            if standard_input() in paths:
                raise HeadscopeError("standard input is named twice", f"Name {INPUT} once")
            paths.append(standard_input())
        elif kind_of(bare) == "folder" and (format or folder_format(Path(bare))) not in KEYS:
            inside, others = _members(Path(bare), format)
            paths += inside
            passed_over += others
        else:
            _require(Path(bare))
            paths.append(Path(bare))
    require_known(columns or {})
    return Resolved(tuple(paths), columns or {}, tuple(passed_over))


def names_files(texts: object) -> bool:
    """Whether an argument names files: a path, or a list of paths or file names. A list of other strings is a list of
    texts.
    """
    if isinstance(texts, str | Path):
        return True
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(name, str | Path) for name in texts):
        return False
    there = [isinstance(name, Path) or _exists(name) for name in texts]
    if all(known or by_name(Path(name)) is not None for known, name in zip(there, texts, strict=True)):
        return True
    if any(there):
        file, text = texts[there.index(True)], texts[there.index(False)]
        problem = f"{quoted(str(file))} is the name of a file, but {quoted(text)} is not"
        raise HeadscopeError(problem, 'Give only file names, or only texts; {"text": ...} is always a text')
    return False


def _exists(name: str) -> bool:
    """Whether a string names an existing file or another input."""
    if name in (SAMPLER, INPUT) or is_generated(name):
        return True
    return bool(name.strip()) and kind_of(split_columns(name)[0]) not in ("missing", "unusable")


def is_generated(name: str | Path) -> bool:
    """Whether a name is that of a generated corpus."""
    return str(name).startswith((REPEATS, NEEDLES))


def split_columns(name: str) -> tuple[str, dict[str, str]]:
    """The path in a name, and the columns after its question mark, unless a file has the whole name."""
    bare, mark, query = name.rpartition("?")
    if not mark or kind_of(name) != "missing" or kind_of(bare) != "file":
        return name, {}
    try:
        return bare, dict(parse_qsl(query, strict_parsing=True))
    except ValueError:
        raise HeadscopeError(f"{query!r} after the question mark of {name} names no columns", _QUERY) from None


def with_columns(name: str, columns: Mapping[str, str]) -> str:
    """A name with columns, as `split_columns` reads it."""
    return f"{name}?{urlencode(columns)}" if columns else name


def _require(path: Path) -> None:
    """Raise an error if there is nothing to read. Its remedy also covers texts given in place of files."""
    if kind_of(path) == "missing" and " " in path.name:
        remedy = "Check the spelling and the working directory. Give texts as a list in Python, or as standard input (--corpus -)"
        raise CorpusError(path, None, "there is no such file", remedy)
    if kind_of(path) != "folder":
        require_file(path)


def _members(folder: Path, format: str | None) -> tuple[list[Path], list[Path]]:
    """The files of a folder that belong to the corpus, by name, and the others. Files belong to it if their names
    indicate a format, or the given format.
    """
    try:
        inside = sorted(path for path in folder.iterdir() if kind_of(path) == "file" and not path.name.startswith("."))
        parts = sorted(path.name for path in folder.iterdir() if kind_of(path) == "folder")
        if (folder / _SPLITS) in inside:
            remedy = f"Name one of them, as in {folder / parts[0]}" if parts else "Save it again"
            raise CorpusError(folder, None, f"this is a saved dataset of several splits: {', '.join(parts)}", remedy)
        if (folder / _SAVED) in inside and (folder / "dataset_info.json") in inside:
            return _saved(folder), []
    except OSError as error:
        raise CorpusError(folder, None, f"the folder cannot be read ({error.strerror or error})", "Check its permissions") from None
    known = {path: by_name(path) for path in inside}
    chosen = [path for path, guess in known.items() if guess is not None and format in (None, guess)]
    if not chosen and format is not None:
        chosen = inside
    if not chosen:
        more = f", or one of the folders in it: {', '.join(parts[:5])}" if parts else ""
        problem = "no file in this folder has a name that shows its format"
        raise CorpusError(folder, None, problem, f"Name files{more}, or a format with --corpus-format")
    return chosen, [path for path in inside if path not in chosen]


def _saved(folder: Path) -> list[Path]:
    """The Arrow files of a dataset that `save_to_disk` of `datasets` wrote."""
    try:
        state = json.loads((folder / _SAVED).read_text(encoding="utf-8"))
        names = [Path(file["filename"]).name for file in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        names = []
    if not names:
        raise CorpusError(folder / _SAVED, None, "it names no data files of a saved dataset", "Save the dataset again with save_to_disk")
    for name in names:
        require_file(folder / name)
    return [folder / name for name in names]


def _sampler() -> list[Path]:
    folder = Path(str(files("headscope.corpora"))) / SAMPLER
    paths = sorted(folder.glob("*.conllu"))
    if not paths:
        raise CorpusError(folder, None, "the sampler corpus is missing", "Install headscope again, or name a file as ./sampler")
    return paths
