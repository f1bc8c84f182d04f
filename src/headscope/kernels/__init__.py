"""Compiled inner loops: numba on a CPU, Triton on CUDA. Each has a plain counterpart in torch or numpy."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def kernel(name: str) -> ModuleType | None:
    """The module of this package with this name; None if its compiler is not installed."""
    try:
        return import_module(f"headscope.kernels.{name}")
    except ImportError:
        return None
