"""Speed and memory of a run as one table of ratios: `make bench`.

Parts: (a) all measures of the surface pass together against the bare eager forward pass; (b) each alone; (c) the
Jensen-Shannon kernel against the paper's form; (d) peak memory; (e) scaling over processes and threads; (f) the same as
(a) and (b) on a GPU, if there is one; (g) the start of the command line; (h) surface measures by length of texts; (i)
other tools that give attention maps.

The table is also written to `benchmarks/results/`, with the machine it was measured on. docs/performance.md says how to
read it.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import gpu
import kernel
import lengths
import memory
import peers
import relations
import scaling
import startup
import surface
from common import Row, machine, processor, table

PARTS: dict[str, tuple[Callable[[bool], list[Row]], ...]] = {
    "ab": (surface.rows, relations.rows),
    "c": (kernel.rows,),
    "d": (memory.rows,),
    "e": (scaling.rows,),
    "f": (gpu.rows,),
    "g": (startup.rows,),
    "h": (lengths.rows,),
    "i": (peers.rows,),
}


def main() -> None:
    """Read the options, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="abcdefghi", help="letters of the parts to measure; a and b come together")
    parser.add_argument("--quick", action="store_true", help="smaller inputs and fewer rounds: a test that it works, not a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch and of the kernels")
    parser.add_argument("--out", type=Path, help="the file to write, instead of one named after the machine")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    started = time.perf_counter()
    rows: list[Row] = []
    for letters, sections in PARTS.items():
        if set(letters) & set(options.parts):
            for section in sections:
                print(f"{time.perf_counter() - started:5.0f} s  part {letters[0]}: {section.__module__}", file=sys.stderr, flush=True)
                rows += section(options.quick)
    about = [
        *machine(options.threads),
        f"duration: {(time.perf_counter() - started) / 60:.0f} minutes{', with --quick' if options.quick else ''}",
    ]
    page = "\n".join([*(f"- {line}" for line in about), "", table(rows), ""])
    print(page)
    out = options.out or Path(__file__).parent / "results" / f"{_slug(options.quick)}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    print(f"written to {out}", file=sys.stderr)


def _slug(quick: bool) -> str:
    words = [processor(), f"{torch.get_num_threads()} threads"]
    words += [torch.cuda.get_device_name(0)] if torch.cuda.is_available() else []
    words += ["quick"] if quick else []
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


if __name__ == "__main__":
    main()
