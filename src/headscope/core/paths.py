"""Paths: what a path leads to, short names of paths, and removing files from a folder."""

from __future__ import annotations

import errno
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Literal

Kind = Literal["file", "folder", "missing", "pipe", "socket", "device", "unusable"]

_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_REMEDIES = {
    errno.ENAMETOOLONG: "Use a shorter name",
    errno.EACCES: "Check the permissions of the folders that it lies in",
    errno.ELOOP: "Replace the symbolic links, which lead to each other",
}
_NO_NAMES = ("model", "checkpoint", "final")  # of folders, which do not tell one model from another


def kind_of(path: str | Path) -> Kind:
    """The kind of file that a path leads to, through symbolic links; `unusable` if the system cannot determine it."""
    kind = _asked(path)
    return kind if isinstance(kind, str) else "unusable"


def unusable(path: str | Path) -> tuple[str, str] | None:
    """Problem and remedy of a path that the system cannot use: name too long, no permission, NUL byte."""
    return problem_of(path) if kind_of(path) == "unusable" else None


def problem_of(path: str | Path, wanted: Literal["file", "folder"] = "file") -> tuple[str, str] | None:
    """Problem and remedy of a path that does not lead to an existing regular file, or folder; None if it does."""
    kind = _asked(path)
    if kind == wanted:
        return None
    if isinstance(kind, OSError):
        return f"the path cannot be used ({kind.strerror})", _REMEDIES.get(kind.errno or 0, "Check the path and its permissions")
    if isinstance(kind, ValueError):
        return f"the path cannot be used ({kind})", "Write the path without NUL bytes and other characters that file names cannot contain"
    if kind == "missing":
        return f"there is no such {wanted}", "Check the spelling and the working directory"
    if wanted == "folder":
        return f"this is a {kind} where a folder is needed", "Name a folder"
    if kind == "folder":
        return "this is a directory", "Name a file in it"
    return f"this is a {kind}, which cannot be read more than once", "Save it to a file first, and name that file"


def _asked(path: str | Path) -> Kind | OSError | ValueError:
    try:
        return _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode), "device")
    except OSError as error:
        return "missing" if error.errno in _ABSENT else error
    except ValueError as error:  # a NUL byte, or a lone surrogate that no encoding has
        return error


def remove_matching(folder: Path, pattern: re.Pattern[str]) -> None:
    """Remove the files of a folder whose whole names match; sub-folders and linked folders stay."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in list(folder.iterdir()):
        if pattern.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty. Keep other folders, and links to folders."""
    with suppress(OSError):
        folder.rmdir()


def printable(text: str) -> str:
    """The text with lone surrogates, which cannot be written to a file, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def default_folder(*names: str) -> Path:
    """The default folder for results about these models and corpora: `runs/mini-sampler`. `-` is standard input."""
    return Path("runs") / "-".join("stdin" if name == "-" else Path(name).name.split(".")[0] for name in names)


def title(path: str) -> str:
    """The name of a file, a folder or a model: the last part of its path, or the last two if the last one is not a
    name.
    """
    parts = [part for part in printable(path).split("/") if part not in ("", ".")]
    return "/".join(parts[-2 if parts[-1:] and parts[-1] in _NO_NAMES else -1 :])
