"""Changes in the surroundings of a run: clocks that jump, a folder that becomes read-only, an empty compiler cache, a
lost Ray cluster.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from changes import stop_after
from kills import RUN, gone_on
from trials import Tally, apart, child, contents, different, ended, half_written, orphans, refusal

import headscope as hs

DAY = 86400.0


def clocks(place: Path, n: int, seed: int) -> Tally:
    """Make clocks jump by up to two days in either direction whenever they are read, and date files 1970 or 2100."""
    tally = Tally("clocks that jump by days in a run; parts and corpus dated 1970 or 2100, then `--resume`")
    place.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {**RUN, "limit": 8, "gallery": 2}
    apart(lambda: hs.run("mini", "sampler", out=place / "whole", **settings) and None)
    whole = contents(place / "whole")

    def run_with_jumps(number: int) -> None:
        rng, offset = random.Random(seed + number), 0.0

        def with_jumps(clock: Any) -> Any:
            def read() -> float:
                nonlocal offset
                offset += rng.choice((0.0, -2 * DAY, 2 * DAY)) * rng.random()
                return float(clock()) + offset

            return read

        for name in ("time", "monotonic", "perf_counter"):
            setattr(time, name, with_jumps(getattr(time, name)))
        out = place / f"{number}"
        stop_after(1 + number % 2, lambda on_progress: hs.run("mini", "sampler", out=out, progress=on_progress, **settings))
        for path in out.rglob("*"):
            os.utime(path, (rng.choice((0, 4102444800)),) * 2)
        hs.run("mini", "sampler", out=out, resume=True, **settings)

    for number in range(n):
        try:
            apart(partial(run_with_jumps, number))
            differs = different(whole, contents(place / f"{number}"))
        except AssertionError as error:
            differs = [str(error)[-500:]]
        tally.add("identical" if not differs else "not identical", not differs, str(differs))
    return tally


def read_only(place: Path, n: int) -> Tally:
    """Make a folder read-only when some shards are stored, and writable again later. Needs the right to mount."""
    tally = Tally("output folder that becomes read-only during the run; then writable again and `--resume`")
    place.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {**RUN, "limit": 8, "gallery": 2}
    apart(lambda: hs.run("mini", "sampler", out=place / "whole", **settings) and None)
    whole = contents(place / "whole")

    def work(shards: int) -> tuple[str, bool, str]:
        out, calls = place / f"{shards}", 0

        def on_progress(share: float | None, texts: int, tokens: int) -> None:
            nonlocal calls
            calls += 1
            if calls == shards:
                for options in (["--bind"], ["-o", "remount,ro,bind"]):
                    subprocess.run(["mount", *options, str(out), str(out)], check=True)

        message = refusal(lambda: hs.run("mini", "sampler", out=out, progress=on_progress, **settings))
        subprocess.run(["umount", str(out)], check=True)
        if message is None or "Read-only file system" not in message:
            return "not refused for that reason", False, str(message)
        if wrong := half_written(out):
            return "half-written", False, str(wrong)
        hs.run("mini", "sampler", out=out, resume=True, **settings)
        differs = different(whole, contents(out))
        return "refused, naming the file and the reason; then resumed, identical", not differs, str(differs)

    for shards in range(1, n + 1):
        tally.add(*apart(partial(work, shards)))
    return tally


def cold_cache(place: Path, n: int) -> Tally:
    """Start processes that compile the same loops at the same time, into an empty cache folder."""
    tally = Tally("two processes at once with an empty compiler cache (numba)")
    place.mkdir(parents=True, exist_ok=True)
    code = (
        "import sys, headscope as hs; hs.run('mini', 'sampler', ['distances', 'relations'], sys.argv[1], limit=3, replicates=0, gallery=0)"
    )

    def start_run(out: Path, cache: Path) -> subprocess.Popen[str]:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        return subprocess.Popen([sys.executable, "-c", code, str(out)], env=environment, stderr=subprocess.PIPE, text=True)

    for number in range(n):
        cache = place / f"cache-{number}"
        cache.mkdir()
        outs = [place / f"{number}-{which}" for which in "ab"]
        errors = [process.communicate()[1] for process in [start_run(out, cache) for out in outs]]
        third = place / f"{number}-c"  # with the cache that the first two left
        errors.append(start_run(third, cache).communicate()[1])
        kept = list(cache.rglob("*.nbi"))
        found = [contents(out) if out.is_dir() else {} for out in (*outs, third)]
        same = not any(errors) and bool(found[0]) and not different(found[0], found[1]) and not different(found[0], found[2])
        tally.add("all identical, nothing printed" if same and kept else "not the same", same and bool(kept), f"{errors} {len(kept)} kept")
    return tally


def lost_head(place: Path, n: int) -> Tally:
    """Kill the head of a Ray cluster when some shards are stored. The run must end with one line, and can be resumed
    without Ray.
    """
    tally = Tally("`run --engine ray --address`: the cluster's head killed during the run; then `--resume` without Ray")
    place.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {**RUN, "limit": 24, "gallery": 2}
    apart(lambda: hs.run("mini", "sampler", out=place / "whole", **settings) and None)
    whole = contents(place / "whole")
    for number in range(n):
        out, log = place / f"{number}", place / f"{number}.log"
        pid = child(partial(_lose_head, out, 1 + number), log)
        code, left = ended(pid), orphans(pid)
        text = log.read_text()
        lines = [line for line in text.splitlines() if line.strip()]
        clear = code == 2 and len(lines) == 1 and lines[0].startswith("headscope: ") and "--resume" in lines[0] and not left
        gone_on(lambda out, **how: hs.run("mini", "sampler", out=out, **settings, **how), out)
        differs = different(whole, contents(out))
        outcome = "one line, exit 2; resumed, identical" if clear and not differs else "not clear" if not differs else "not identical"
        tally.add(outcome, clear and not differs, f"exit {code}, {differs}, left {left}: {text[-3000:]}")
    return tally


def _lose_head(out: Path, parts: int) -> None:
    """Run on a cluster whose head is killed when `parts` parts are stored."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": ""}
    from ray.cluster_utils import Cluster

    from headscope.cli.main import main
    from headscope.results.folder import Folder

    logging.getLogger("ray").setLevel(logging.CRITICAL)  # silences the cluster that is started here, not the run
    store = 80 << 20
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": store, "include_dashboard": False})
    write, kept = Folder.write_part, 0

    def write_then_kill(*what: Any) -> None:
        nonlocal kept
        write(*what)
        kept += 1
        if kept == parts:
            nodes.head_node.kill_all_processes(check_alive=False, allow_graceful=False)

    Folder.write_part = write_then_kill  # type: ignore[method-assign,assignment]
    options = ["--out", str(out), "--engine", "ray", "--address", nodes.address, "--measures", "positions,entropy", "--limit", "24"]
    sys.argv = ["headscope", "run", *options, "--shard-tokens", "90", "--replicates", "5", "--gallery", "2", "-q"]
    main()
