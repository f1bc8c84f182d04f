"""Speed and memory of a run as one table of ratios: `make bench`.

Parts: (a) all measures of the surface pass together against the bare eager forward pass; (b) each alone; (c) the
Jensen-Shannon kernel against the paper's form; (d) peak memory; (e) scaling over processes and threads; (f) the same as
(a) and (b) on a GPU, if there is one; (g) the start of the command line; (h) surface measures by length of texts; (i)
other tools that give attention maps.

The table is also written to `benchmarks/results/` after every part, with the machine it was measured on. A part that
fails is named, and the others are measured. docs/performance.md says how to read the table.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
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
    out = options.out or Path(__file__).parent / "results" / f"{_slug(options.quick)}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    failed = []
    for letters, sections in PARTS.items():
        if set(letters) & set(options.parts):
            for section in sections:
                print(f"{time.perf_counter() - started:5.0f} s  part {letters[0]}: {section.__module__}", file=sys.stderr, flush=True)
                try:
                    rows += section(options.quick)
                except Exception:
                    traceback.print_exc()
                    failed.append(section.__module__)
                lasted = f"duration: {(time.perf_counter() - started) / 60:.0f} minutes{', with --quick' if options.quick else ''}"
                about = [*machine(options.threads), lasted, *(f"failed: {name}" for name in failed)]
                out.write_text("\n".join([*(f"- {line}" for line in about), "", table(rows), ""]), encoding="utf-8")
    print(out.read_text(encoding="utf-8"))
    print(f"written to {out}", file=sys.stderr)
    sys.exit(bool(failed))


def _slug(quick: bool) -> str:
    words = [processor(), f"{torch.get_num_threads()} threads"]
    words += [torch.cuda.get_device_name(0)] if torch.cuda.is_available() else []
    words += ["quick"] if quick else []
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


if __name__ == "__main__":
    main()
