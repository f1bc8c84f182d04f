"""The gain from a second core (part e): runs in one and in two processes of one thread each, and in one process with
one and with two threads.

Every run is started in a separate process, as `python benchmarks/scaling.py ENGINE WORKERS THREADS SEGMENTS`, which
prints segments per second after all workers have started, and the seconds of the whole run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import torch

import headscope as hs
from common import BATCH_TOKENS, LENGTH, SURFACE, Row
from memory import write_pairs

WAYS = {
    "one process": ("processes", 1, 1),
    "two processes": ("processes", 2, 1),
    "one thread": ("local", 1, 1),
    "two threads": ("local", 1, 2),
}


def rows(quick: bool = False) -> list[Row]:
    """Speed-ups of the work alone and of whole runs."""
    count = 96 if quick else 256
    speeds: dict[str, tuple[float, float]] = {}
    for name, way in WAYS.items():
        command = [sys.executable, __file__, *map(str, way), str(count)]
        limits = {"OMP_NUM_THREADS": str(way[2]), "NUMBA_NUM_THREADS": str(way[2])}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **limits})
        if done.returncode:
            raise AssertionError(f"{' '.join(command)} failed:\n{done.stderr}")
        steady, whole = map(float, done.stdout.split())
        speeds[name] = steady, whole
    one, two, alone, both = (speeds[name] for name in WAYS)
    what = ", ".join(measures())
    return [
        Row("e", f"two processes / one, segments per second ({what})", two[0] / one[0], note="one thread each, after all have started"),
        Row("e", "one process / two, seconds of the whole run", one[1] / two[1], note=f"{count} segments; starting processes included"),
        Row("e", "two threads / one in one process, segments per second", both[0] / alone[0], note="the `local` engine"),
        Row("e", "two processes / two threads, segments per second", two[0] / both[0], note=f"{two[0]:.1f} and {both[0]:.1f} per second"),
    ]


def measures() -> list[str]:
    """The measures of these runs. Relations are omitted, since these texts have no trees."""
    return [name for name in SURFACE if name != "relations"]


def speed(engine: str, workers: int, threads: int, count: int) -> tuple[float, float]:
    """Segments per second after each worker's first shard, and the seconds of the run."""
    torch.set_num_threads(threads)
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.cpu_count", return_value=workers * threads):
        path = write_pairs(Path(folder), count)
        started = time.perf_counter()
        hs.run(
            "mini",
            path,
            measures(),
            max_length=LENGTH,
            device="cpu",
            engine=engine,
            workers=workers,
            gallery=0,
            shard_tokens=BATCH_TOKENS,
            progress=lambda share, texts, tokens: ends.append(time.perf_counter()),
        )
        whole = time.perf_counter() - started
    shard = BATCH_TOKENS // LENGTH
    return shard * (len(ends) - workers) / (ends[-1] - ends[workers - 1]), whole


if __name__ == "__main__":
    print(*speed(sys.argv[1], *map(int, sys.argv[2:])))
