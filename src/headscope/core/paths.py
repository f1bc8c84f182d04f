"""What a path leads to, found out without opening it and without an exception."""

from __future__ import annotations

import errno
import stat
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


def kind_of(path: str | Path) -> Kind:
    """What a path leads to, through symbolic links; `unusable` if the system cannot tell (name too long, no
    permission, NUL byte).
    """
    found = _asked(path)
    return found if isinstance(found, str) else "unusable"


def unusable(path: str | Path) -> tuple[str, str] | None:
    """Problem and remedy of a path that the system cannot use, whatever is to be there (name too long, no
    permission, NUL byte).
    """
    return problem_of(path) if kind_of(path) == "unusable" else None


def problem_of(path: str | Path, wanted: Literal["file", "folder"] = "file") -> tuple[str, str] | None:
    """Problem and remedy of a path that does not lead to an existing regular file, or folder; None if it does."""
    found = _asked(path)
    if found == wanted:
        return None
    if isinstance(found, OSError):
        return f"the path cannot be used ({found.strerror})", _REMEDIES.get(found.errno or 0, "Check the path and its permissions")
    if isinstance(found, ValueError):
        return f"the path cannot be used ({found})", "Write the path without NUL bytes and other signs that no file name has"
    if found == "missing":
        return f"there is no such {wanted}", "Check the spelling and the working directory"
    if wanted == "folder":
        return f"this is a {found} where a folder is needed", "Name a folder"
    if found == "folder":
        return "this is a directory", "Name a file in it"
    return f"this is a {found}, which cannot be read more than once", "Save it to a file first, and name that file"


def _asked(path: str | Path) -> Kind | OSError | ValueError:
    try:
        return _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode), "device")
    except OSError as error:
        return "missing" if error.errno in _ABSENT else error
    except ValueError as error:  # a NUL byte, or a lone surrogate that no encoding has
        return error
