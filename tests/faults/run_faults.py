"""`make faults`: try many more faults than the tests do, and print a table of the outcomes.

python tests/faults/run_faults.py [--quick] [--only WORD] [--kills 25] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import changes
import damage
import disks
import kills
import surroundings
import torch
import trials
from trials import Tally

import headscope as hs

Trial = tuple[str, Callable[[], Tally]]


def killed(place: Path, n: int, seed: int) -> Iterator[Trial]:
    """Trials of `kill -9`."""
    few = max(3, n // 4)
    local_run = kills.a_run("local")  # it resumes what any engine has started
    for engine in ("local", "processes"):
        what = f"`run --engine {engine}` killed, moments spread over its run time"
        yield _trial(what, kills.by_the_clock, kills.a_run(engine), place, n, seed, local_run)
    yield _trial("`run` killed while it wrote a file", kills.by_the_file, local_run, place, n, seed)
    several = "`run --engine processes` killed while it wrote a file"
    yield _trial(several, kills.by_the_file, kills.a_run("processes", limit=10), place, n, seed, kills.a_run("local", limit=10))
    for study in kills.STUDIES:
        yield _trial(f"`{study}` killed, moments spread over its run time", kills.by_the_clock, kills.a_study(study), place, few, seed)
        yield _trial(f"`{study}` killed while it wrote a file", kills.by_the_file, kills.a_study(study), place, few, seed)
    corpus = kills.table_of_labels(place / "labels.tsv")
    new, old = kills.trained(corpus), kills.trained(corpus, seed=1)
    yield _trial("`train` killed", kills.models, new, place, few, seed)
    yield _trial("`train --overwrite` killed", kills.models, new, place, few * 2, seed, old)
    yield _trial("`prune` killed", kills.models, kills.pruned, place, few, seed)


def _trial(what: str, trial: Callable[..., Tally], make: kills.Make, place: Path, *more: Any) -> Trial:
    return what, lambda: trial(what, make, place / "".join(filter(str.isalnum, what)), *more)


def filled(place: Path) -> Iterator[Trial]:
    """Trials of full disks."""
    whole, other = place / "filled-run", place / "filled-other"
    shares = (0.005, 0.01, 0.02, 0.04, 0.1, 0.3, 0.6, 0.95)
    pair = [str(whole), str(other)]

    def make_once() -> None:
        if not whole.exists():
            trials.apart(lambda: kills.a_run("local")(whole) and None)
            trials.apart(lambda: kills.a_run("local")(other, seed=1) and None)

    def full(what: str, make: kills.Make) -> Tally:
        reference = place / "".join(filter(str.isalnum, what))
        trials.apart(lambda: make(reference) and None)
        return disks.full(what, make, reference, place / "small", shares)

    def file(what: str, name: str, *arguments: str) -> Trial:
        def work() -> Tally:
            make_once()
            return disks.full_file(what, lambda path: disks.command(*arguments, "-o", str(path)), name, place / "small", (4096, 8192))

        return what, work

    for what, make in (("`run` on a full disk", kills.a_run("local")), ("`flow` on a full disk", kills.a_study("flow"))):
        yield what, partial(full, what, make)
    yield file("`report -o` on a full disk", "report.html", "report", pair[0])
    yield file("`plot -o` on a full disk", "figure.svg", "plot", pair[0], "clark4")
    yield file("`compare -o` on a full disk", "compare.html", "compare", *pair)
    article = place / "article.txt"
    article.write_text("Attention heads look at words. Words of a text look back at attention heads. " * 5)
    yield file("`keywords -o` on a full disk", "words.html", "keywords", str(article))
    cached = place / "structural"

    def cache() -> Tally:
        trials.apart(lambda: kills.a_study("probe structural")(cached) and None)
        return disks.full_cache("hidden states of `probe structural --cache` on a full disk", cached, place / "cached")

    yield "hidden states on a full disk", cache
    corpus = kills.table_of_labels(place / "labels2.tsv")
    name = "`train` on a full disk"
    yield name, lambda: disks.full_training("`train` on a full disk", corpus, place / "trained", (0.1, 0.6, 0.97))


def others(place: Path, n: int, seed: int) -> Iterator[Trial]:
    """Trials of unusable folders, damaged files, changed inputs, concurrent runs, signals and changed surroundings."""
    name = "unusable folders"
    yield name, lambda: disks.unusable(place / "unusable", trials.can_mount())
    yield "vanishing folders", lambda: disks.vanishing(place / "vanishing")
    whole, begun = place / "damaged-whole", place / "damaged-begun"

    def make_once() -> None:
        if not whole.exists():
            hs.run("mini", "sampler", out=whole, **kills.RUN)
            changes.stop_after(3, lambda progress: hs.run("mini", "sampler", out=begun, progress=progress, **kills.RUN))

    def finished() -> Tally:
        make_once()
        names = ["run.json", "states.safetensors", "gallery.safetensors"]
        names += [f"tables/{path.name}" for path in sorted((whole / "tables").iterdir())]
        what = "tables, states, gallery or `run.json` of a finished run cut short, emptied, or one bit flipped"
        return damage.of_finished(what, whole, names, 20 * n, seed, place / "damaged")

    def parts() -> Tally:
        make_once()
        what = "parts or `run.json` of an unfinished run cut short, emptied, or one bit flipped, then `--resume`"
        return damage.of_parts(what, hs.load("mini"), begun, whole, kills.RUN, 2 * n, seed, place / "damaged")

    yield "damaged files of a finished run", finished
    yield "damaged parts", parts
    yield "changes under --resume", lambda: changes.under_resume(place / "under", hs.load("mini"))
    yield "corpus changed during the run", lambda: changes.during_the_run(place / "during", hs.load("mini"))
    for engine in ("local", "processes"):
        yield f"two runs at once, {engine}", partial(changes.together, place / f"together-{engine}", engine)
        yield f"signals, {engine}", partial(changes.signals, place / f"signals-{engine}", engine)
    yield "clocks that jump", lambda: surroundings.clocks(place / "clocks", n, seed)
    if trials.can_mount():
        yield "a folder that becomes read-only", lambda: surroundings.read_only(place / "read-only", 3)
    yield "an empty compiler cache", lambda: surroundings.cold_cache(place / "cold", max(2, n // 5))
    if find_spec("ray") is not None:
        yield "the loss of a Ray cluster's head", lambda: surroundings.lost_head(place / "head", 2)
    yield "overwritten while read", lambda: changes.overwritten_while_read(place / "overwritten", 16 * n)


def quick(place: Path, seed: int) -> Iterator[Trial]:
    """A few trials that need a separate process. The tests run them."""
    yield _trial("`run` killed while it wrote a file", kills.by_the_file, kills.a_run("local", limit=8, gallery=2), place, 2, seed)
    yield "SIGTERM", lambda: changes.signals(place / "signals", "local", (signal.SIGTERM,), (False,), limit=30)


def every(place: Path, n: int, seed: int) -> Iterator[Trial]:
    """All trials, each with its name."""
    yield from killed(place, n, seed)
    if trials.can_mount():
        yield from filled(place)
    else:
        print("full disks are not tried: that needs root, who may mount file systems", file=sys.stderr)
    yield from others(place, n, seed)


def _plain(trial: Callable[[], Tally]) -> dict[str, Any]:
    return trial().plain()


def main() -> None:
    """Run the trials, and exit with 1 if any outcome is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="trials whose name holds this")
    parser.add_argument("--quick", action="store_true", help="a few trials, in seconds")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    hs.load("mini", head=True)  # child processes then need not import everything again
    place = Path(tempfile.mkdtemp(prefix="headscope-faults-"))
    wrong = 0
    print("| test | repetitions | outcome |\n|---|--:|---|", flush=True)
    try:
        for name, trial in quick(place, options.seed) if options.quick else every(place, options.kills, options.seed):
            if options.only in name:
                started = time.monotonic()
                tally = Tally.again(trials.apart(partial(_plain, trial)))
                wrong += len(tally.wrong)
                print(tally.line(), flush=True)
                timing = f"  {name}: {time.monotonic() - started:.0f} s; {dict(tally.stages)}"
                print(timing, *tally.wrong, sep="\n  ", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
