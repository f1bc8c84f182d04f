"""Versions of installed packages, read from their metadata without importing them."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def version_of(package: str) -> str:
    """The installed version of a package, or `unknown`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
