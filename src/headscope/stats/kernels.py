"""Compiled inner loops, where the machine can have them. Neither numba nor Triton is made for every machine."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def kernel(name: str) -> ModuleType | None:
    """The module of stats with this name, or None where what it is compiled by is not there."""
    try:
        return import_module(f"headscope.stats.{name}")
    except ImportError:
        return None
