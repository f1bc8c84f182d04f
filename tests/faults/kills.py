"""`kill -9` at random moments, and while files are written."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from trials import Tally, alive, apart, child, contents, different, ended, half_written, killing_at, manifest_of, moments, orphans

import headscope as hs
from headscope.errors import HeadscopeError, RunError

RUN: dict[str, Any] = {"measures": ["positions", "entropy"], "limit": 24, "shard_tokens": 90, "replicates": 5, "gallery": 4}
STUDIES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "flow": (hs.flow, {"measures": ["A"], "norm": "sum", "parts": ["trees"], "limit": 20}),
    "ablate": (hs.ablate, {"parts": ["layers", "importance", "pruning"], "limit": 6, "steps": 3, "orders": 1}),
    "probe attention": (
        hs.probe_attention,
        {"probes": ["attention", "words-distances", "right-branching"], "limit": 12, "epochs": 1, "seeds": 1, "max_length": 24},
    ),
    "probe structural": (hs.probe_structural, {"layers": [0, 7], "ranks": [2], "baselines": ["linear", "decay"], "limit": 12, "epochs": 3}),
    "probe edge": (hs.probe_edge, {"tasks": ["pos"], "limit": 12, "seeds": 2, "checks": 2, "hidden": 8, "control": False}),
    "probe keywords": (hs.probe_keywords, {"max_length": 24, "folds": 3}),
}  # fmt: skip
Make = Callable[..., Any]


def a_run(engine: str, **settings: Any) -> Make:
    """A function that makes a run of a few shards, in a few seconds."""
    return lambda out, **how: hs.run("mini", "sampler", out=out, engine=engine, **{**RUN, **settings, **how})


def a_study(name: str) -> Make:
    """A function that makes a small study."""
    make, settings = STUDIES[name]
    return lambda out, **how: make("mini", "sampler", out=out, replicates=5, **settings, **how)


def seconds_without_kill(make: Make, out: Path) -> float:
    """Make the results without a kill, and return the seconds that it takes."""
    started = time.monotonic()
    assert ended(child(lambda: make(out), out.with_suffix(".log"))) == 0, out.with_suffix(".log").read_text()
    return time.monotonic() - started


def gone_on(make: Make, out: Path) -> str:
    """Complete the work in a folder with the same command, or with `--resume` if the error names it. Return which."""

    def work() -> str:
        try:
            make(out)
        except RunError as error:
            if "--resume" not in str(error):
                raise
            make(out, resume=True)
            return "resumed"
        return "restarted"

    return str(apart(work))


def stage(out: Path) -> str:
    """The stage at which a process was killed, from the files that it left."""
    manifest = manifest_of(out)
    parts = list(out.glob("partial/*-*.safetensors"))
    if manifest.get("status") == "complete":
        return "complete" if manifest.get("gallery") is not None or manifest.get("study") else "before the gallery"
    return "while finishing" if list(out.glob("tables/*")) else f"{'between shards' if parts else 'before the first shard'}"


def by_the_clock(what: str, make: Make, place: Path, n: int, seed: int, resume_with: Make | None = None) -> Tally:
    """Kill a process at `n` moments spread over its run time."""
    tally = Tally(what)
    place.mkdir(parents=True)
    duration = seconds_without_kill(make, place / "whole")
    whole = contents(place / "whole")
    for number, moment in enumerate(moments(seed, n, duration)):
        out = place / f"{number}"
        pid = child(partial(make, out))
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)  # no error if it has ended: it was not waited for
        code = ended(pid)
        if orphans(pid):
            tally.add("workers outlived it", False, f"{moment:.2f} s of {duration:.2f}")
            continue
        judge(tally, out, whole, resume_with or make, f"killed at {moment:.2f} of {duration:.2f} s", stage(out) if code else "it had ended")
        shutil.rmtree(out, ignore_errors=True)
    return tally


def judge(tally: Tally, out: Path, whole: dict[str, Any], make: Make, about: str, where: str) -> None:
    """Check that a killed process left no incomplete file, and that its completed results equal those of `whole`."""
    if wrong := half_written(out):
        tally.add("half-written", False, f"{about}: {wrong}")
        return
    try:
        how = "it had ended" if where == "it had ended" else gone_on(make, out)
    except AssertionError as error:
        tally.add("cannot be gone on with", False, f"{about}, {where}: {error}")
        return
    differs = different(whole, contents(out))
    tally.add("identical" if not differs else "not identical", not differs, f"{about}, {where}, {how}: {differs}")
    tally.stages[f"{where}: {how}"] += 1


def by_the_file(what: str, make: Make, place: Path, n: int, seed: int, resume_with: Make | None = None) -> Tally:
    """Kill a process while it writes a file: half-way, before the file has its final name, and just after."""
    tally = Tally(what)
    place.mkdir(parents=True)
    count = writes(make, place / "whole")
    whole = contents(place / "whole")
    kills_to_try = [(number, how) for number in range(1, count + 1) for how in ("written", "synced", "named")]
    for number, how in sorted(random.Random(seed).sample(kills_to_try, min(n, len(kills_to_try)))):
        out = place / f"{number}-{how}"

        def work(out: Path = out, number: int = number, how: str = how) -> None:
            with killing_at(number, how):
                make(out)

        pid = child(work)
        code = ended(pid)
        assert code == -signal.SIGKILL, f"file {number} of {count} was not written"
        if orphans(pid):
            tally.add("workers outlived it", False, f"file {number} {how}")
            continue
        judge(tally, out, whole, resume_with or make, f"killed when file {number} of {count} was {how}", stage(out))
        shutil.rmtree(out, ignore_errors=True)
    return tally


def writes(make: Make, out: Path) -> int:
    """Make the results without a kill, and return the number of files that are written."""

    def work() -> int:
        counted = 0
        fsync = os.fsync

        def count(file: int) -> None:
            nonlocal counted
            counted += 1
            fsync(file)

        os.fsync = count  # type: ignore[assignment]
        make(out)
        return counted

    return int(apart(work))


def table_of_labels(path: Path) -> Path:
    """Write a table of labelled texts to train on, and return its path."""
    rows = [f"{'good' if number % 2 else 'bad'} film number {number}\t{'up' if number % 2 else 'down'}" for number in range(24)]
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    return path


def trained(corpus: Path, seed: int = 0) -> Make:
    """A function that trains a model for a short time."""
    return lambda out, **how: hs.train(corpus, out, epochs=1, batch=8, max_length=16, checks=1, seed=seed, **how)


def pruned(out: Path, **how: Any) -> None:
    """Save the embedded model without its first 30 heads."""
    from headscope.models.prune import prune, save

    model = hs.load("mini", head=True)
    save(prune(model, model.layout.ids()[:30]), out)


def loads(out: Path) -> bool:
    """Whether a model can be loaded from a folder."""

    def work() -> bool:
        try:
            hs.load(out)
        except HeadscopeError:
            return False
        return True

    return bool(apart(work))


def models(what: str, make: Make, place: Path, n: int, seed: int, make_existing: Make | None = None) -> Tally:
    """Kill a process that writes a model, at random moments and at file operations. If it overwrites an existing model,
    the old one may remain or be removed, but a mixture must not load.
    """
    tally = Tally(what)
    place.mkdir(parents=True)
    duration = seconds_without_kill(make, place / "whole")
    whole = contents(place / "whole")
    before: dict[str, Any] = {}
    if make_existing is not None:
        seconds_without_kill(make_existing, place / "before")
        before = contents(place / "before")
    how: dict[str, Any] = {"overwrite": True} if make_existing is not None else {}
    kills: list[tuple[str, Any]] = [("moment", moment) for moment in moments(seed, n, duration)]
    kills += [("moved", number) for number in range(1, n + 1)]
    for number, (kind, when) in enumerate(kills):
        out = place / f"{number}"
        if make_existing is not None:
            shutil.copytree(place / "before", out)
        pid = child(partial(_die_at, make, out, kind, when, how))
        if kind == "moment":
            time.sleep(when)
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        ended(pid)
        now = contents(out) if out.exists() else {}
        if now and now not in (whole, before) and loads(out):
            tally.add("a mixture loads", False, f"{kind} {when}: {different(whole, now)}")
            continue
        known = [("nothing there", {}), ("the new one, whole", whole), ("the old one, whole", before)]
        outcome = next((name for name, found in known if found == now), "nothing that loads")
        answer = apart(partial(_make_again, make, out, how))
        same = contents(out) == whole
        made = outcome if answer == "refused" else f"{outcome}; the same command makes it"
        tally.add(made if same else "not the same", same, f"{kind} {when}")
        shutil.rmtree(out, ignore_errors=True)
    return tally


def _make_again(make: Make, out: Path, how: dict[str, Any]) -> str:
    try:
        make(out, **how)
    except HeadscopeError as error:
        if "--overwrite" not in str(error) and "is there" not in str(error):
            raise
        return "refused"
    return "made"


def _die_at(make: Make, out: Path, kind: str, when: Any, how: dict[str, Any]) -> None:
    """Make the results, and kill this process at operation `when` among syncs, moves and removals of files."""
    if kind == "moment":
        make(out, **how)
        return
    steps = 0

    def step(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == when:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **more)

        return counted

    os.fsync = step(os.fsync)
    Path.replace = step(Path.replace)  # type: ignore[method-assign]
    Path.rename = step(Path.rename)  # type: ignore[method-assign]
    Path.unlink = step(Path.unlink)  # type: ignore[method-assign]
    make(out, **how)
