"""`make fuzz`: try many inputs on each reader in turn. An input that causes a fault is written to a file, with the
command that reproduces the fault.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["OMP_NUM_THREADS"] = "1"

from fuzz_engine import Fault, Lines, Target, attempt, inputs, smaller  # noqa: E402
from fuzz_targets import all_targets  # noqa: E402

TRACED = 20  # inputs per check of whether an input reaches new lines; tracing lines is slow


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000, help="of all readers together (default: 200,000)")
    parser.add_argument("--seed", type=int, default=0, help="other inputs with another seed")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="folder for what is found, and for how far it has come")
    parser.add_argument("--target", help="only readers whose name begins so")
    parser.add_argument("--again", action="store_true", help="start from the first input, not where it stopped")
    parser.add_argument("--show", nargs=2, metavar=("TARGET", "FILE"), help="put one file into one reader and show what comes out")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    targets = {target.name: target for target in all_targets(given.show[0] if given.show else given.target or "")}
    with tempfile.TemporaryDirectory() as folder:
        if given.show:
            fault = attempt(targets[given.show[0]], Path(given.show[1]).read_bytes(), Path(folder) / "in")
            print(fault.trace if fault is not None else "nothing is wrong")
            sys.exit(fault is not None)
        if not targets:
            parser.error(f"no reader is called {given.target}; there are {', '.join(target.name for target in all_targets())}")
        found = fuzz(list(targets.values()), given.inputs, given.seed, given.out, Path(folder), given.again)
    sys.exit(bool(found))


def fuzz(targets: list[Target], total: int, seed: int, out: Path, folder: Path, again: bool) -> int:
    """Try all targets and return the number of distinct faults."""
    out.mkdir(parents=True, exist_ok=True)
    ledger = out / f"progress-{seed}.json"
    done: dict[str, int] = json.loads(ledger.read_text()) if ledger.is_file() and not again else {}
    shares = sum(target.share for target in targets)
    faults: dict[tuple[str, str, str], int] = {}
    tried, begun = 0, time.monotonic()
    for target in targets:
        wanted, first = round(total * target.share / shares), done.get(target.name, 0)
        pool, lines, since = list(target.seeds), Lines(), time.monotonic()
        for data in target.seeds:
            lines.new(partial(attempt, target, data, folder / "in"))
        for number in range(first, wanted):
            faulthandler.dump_traceback_later(120, exit=True)  # for code that even the alarm cannot stop
            data = next(inputs(target, seed, number, number + 1, pool))
            fault = attempt(target, data, folder / "in")
            if fault is not None:
                faults[fault.key] = faults.get(fault.key, 0) + 1
                if faults[fault.key] == 1:
                    report(target, data, fault, out, folder / "in")
            elif number % TRACED == 0 and len(pool) < 300 and lines.new(partial(attempt, target, data, folder / "in")):
                pool.append(data)
            if number % 500 == 499 or number == wanted - 1:
                done[target.name] = number + 1
                ledger.write_text(json.dumps(done))
                rate = (number + 1 - first) / (time.monotonic() - since)
                line = f"{target.name}: {number + 1:,} of {wanted:,}, {rate:,.0f} a second, {len(lines.seen):,} lines reached"
                print(
                    f"\r\033[K{line}" if sys.stdout.isatty() else line if number == wanted - 1 else "",
                    end="" if number < wanted - 1 else "\n",
                    flush=True,
                )
        tried += max(0, wanted - first)
    faulthandler.cancel_dump_traceback_later()
    taken = time.monotonic() - begun
    print(f"{tried:,} inputs in {taken:,.0f} s ({tried / max(taken, 1e-9):,.0f} a second), {len(faults)} faults")
    for key, n in faults.items():
        print(f"  {' '.join(key)}: {n} times")
    return len(faults)


def report(target: Target, data: bytes, fault: Fault, out: Path, folder: Path) -> None:
    """Write two files: a shortened input that causes the fault, and the trace with the command that reproduces it."""
    name = re.sub(r"[^\w.-]+", "-", "-".join(fault.key))
    short = smaller(target, data, fault, folder)
    (out / f"{name}.input").write_bytes(short)
    command = f"python tests/fuzz --show {target.name!r} {out / name}.input"
    (out / f"{name}.txt").write_text(f"{command}\n\n{short[:500]!r}\n\n{fault.trace}", encoding="utf-8", errors="backslashreplace")
    print(f"\n{target.name}: {fault.kind} at {fault.place}: {command}", flush=True)


if __name__ == "__main__":
    main()
