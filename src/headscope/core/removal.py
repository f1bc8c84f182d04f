"""Removing files that headscope wrote from folders that may also hold other people's files."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path


def remove_matching(folder: Path, own: re.Pattern[str]) -> None:
    """Remove the files of a folder whose whole names match. Sub-folders, other files, and what is behind a linked
    folder stay.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in list(folder.iterdir()):
        if own.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that holds nothing; any other stays, and so does a link to one."""
    with suppress(OSError):
        folder.rmdir()
