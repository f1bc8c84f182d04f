"""Compiled inner loops: numba on a CPU, Triton on CUDA, each beside a plain form."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def kernel(name: str) -> ModuleType | None:
    """The module of this package with this name, or None where what it is compiled by is not there."""
    try:
        return import_module(f"headscope.kernels.{name}")
    except ImportError:
        return None
