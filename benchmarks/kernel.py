"""The Jensen-Shannon kernel (part c) against plain numpy in the form of the paper's released code, on the same maps.

Both get the maps of all heads for one segment, and both smooth them. The numpy forms run in a separate process.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import paper
from common import LENGTH, Row, interleaved, ratio, segments, spread
from headscope.models.load import load
from headscope.stats.divergence import Form, RowStack

FEW = 3  # heads timed in the float16 form: all heads would take minutes


def ours(maps: paper.Maps, form: Form | None = None) -> NDArray[np.float64]:
    """The divergences from the kernel that a run uses, or from another form."""
    heads, rows, keys = maps.shape
    stack = RowStack(np.zeros(rows, dtype=np.int64), np.arange(rows), [heads], keys, torch.device("cpu"), form)
    stack.put(0, torch.from_numpy(paper.smooth(maps))[None])
    return stack.divergences(np.array([0, rows]), np.full(rows, keys))[0].numpy()


def real_maps() -> paper.Maps:
    """The maps [head, row, key] of all heads of the embedded model for one segment."""
    model = load(device="cpu")
    layers: list[torch.Tensor] = []
    model.stream(model.inputs(segments(model, 1)), lambda site, weights, *_: layers.append(weights[0].clone()))
    return torch.cat(layers).numpy()


@contextmanager
def apart(maps: paper.Maps) -> Iterator[Callable[[str, int], None]]:
    """A function that computes the rows of a number of heads in a numpy form, in a process that has only the maps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "maps.npy"
        np.save(path, maps)
        command = [sys.executable, paper.__file__, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            given, answers = process.stdin, process.stdout
            assert given is not None
            assert answers is not None

            def go(form: str, heads: int) -> None:
                print(form, heads, file=given, flush=True)
                if answers.readline() != "done\n":
                    raise AssertionError(f"the numpy form {form} failed")

            yield go
            given.close()


def rows(quick: bool = False) -> list[Row]:
    """The kernel against numpy and plain torch; an error if they do not give the same divergences."""
    maps = real_maps()
    heads, few = len(maps), 1 if quick else FEW
    fast: dict[str, Callable[[], NDArray[np.float64]]] = {"kernel": lambda: ours(maps), "torch": lambda: ours(maps, "plain")}
    plain: dict[str, Callable[[], NDArray[np.float64]]] = {
        "released": lambda: paper.released(maps, heads),
        "lean": lambda: paper.lean(maps, heads),
    }
    exact = paper.released(maps.astype(np.float64), heads)
    off = {name: float(np.abs(work() - exact).max()) / LENGTH for name, work in {**fast, **plain}.items()}
    if not max(off.values()) < 1e-5:
        raise AssertionError(f"all forms must give the same divergences to 1e-5 nats; their errors are {off}")
    off_half = float(np.abs(paper.released(maps.astype(np.float16), few) - exact[:few]).max()) / LENGTH
    quickly = interleaved(fast, 5 if quick else 15)
    with apart(maps) as go:
        sizes = {"released": heads, "lean": heads, "half": few}
        slow: dict[str, Callable[[], object]] = {form: lambda form=form, n=n: go(form, n) for form, n in sizes.items()}  # type: ignore[misc]
        times = dict(interleaved({**fast, **slow}, 1 if quick else 5))
    times["half"] = [heads / few * taken for taken in times["half"]]  # every iteration of the loop does the same work
    return [
        Row(
            "c",
            f"JS of {heads} heads, {LENGTH} rows and keys: float32 numpy in the form of the paper's code / the kernel",
            ratio(times, "released", "kernel"),
            least=40,
            note=f"{spread(times, 'released', 'kernel')}; all forms agree to {max(off.values()):.0e} nats",
        ),
        Row("c", "the same loop, smoothed only once / the kernel", ratio(times, "lean", "kernel"), note=spread(times, "lean", "kernel")),
        Row(
            "c",
            "the form of the paper's code in float16 / the kernel",
            ratio(times, "half", "kernel"),
            note=f"extrapolated from {few} of {heads} heads; float16 is off by {off_half:.0e} nats",
        ),
        Row("c", "plain torch / the kernel", ratio(quickly, "torch", "kernel"), note=spread(quickly, "torch", "kernel")),
        Row("c", "the kernel", 1000 * statistics.median(quickly["kernel"]), "ms", note="per segment"),
    ]
