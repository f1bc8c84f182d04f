"""Freed memory, which the C library keeps and reuses."""

import platform
import resource
import subprocess
import sys

import pytest

SOURCE = """
import resource, sys
import numpy as np
from headscope.core.allocation import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def work():
    for _ in range(20):
        arrays = [np.ones(1 << 18) for _ in range(8)]  # 2 MiB each
        del arrays
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_freed_memory_is_reused() -> None:
    page = resource.getpagesize()
    faults = {
        mode: int(subprocess.run([sys.executable, "-c", SOURCE, mode], capture_output=True, text=True, check=True).stdout)
        for mode in ("keep", "not")
    }
    assert faults["keep"] < (8 << 21) / page / 10, faults  # fewer than a tenth of the pages of one round
    assert faults["not"] > faults["keep"]
