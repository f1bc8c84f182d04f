"""Disks that are full, folders that cannot be written, vanish, or cannot be locked."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kills import RUN, STUDIES, trained
from trials import Tally, apart, contents, different, half_written, mount, refusal

import headscope as hs
from headscope.errors import RunError

ROOM = 512 * 2**20
Make = Callable[..., Any]


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, as a file system in memory counts them."""
    return sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in folder.rglob("*"))


def full(what: str, make: Make, whole: Path, place: Path, shares: tuple[float, ...]) -> Tally:
    """Work into a folder on a disk that holds only a share of it; and when there is space, go on."""
    tally = Tally(what)
    expected = contents(whole)
    for share in shares:
        outcome, right, about = apart(partial(_full, make, expected, place, int(size_of(whole) * share)))
        tally.add(outcome, right, f"{share:.0%}: {about}")
    return tally


def _full(make: Make, expected: dict[str, Any], place: Path, size: int) -> tuple[str, bool, str]:
    place.mkdir(parents=True, exist_ok=True)
    mount(place, max(size, 8192))
    out = place / "out"
    said = refusal(lambda: make(out))
    if wrong := half_written(place):
        return "half-written", False, str(wrong)
    mount(place, ROOM, "remount")
    if said is None:
        left = [line for line in hs.open_run(out).results.manifest["dropped"] if "gallery left out" in line]
        if not left:
            return "nothing was said", False, ""
        outcome = "finished without its gallery, which it says"
    elif "space" not in said and "left" not in said:
        return "refused without saying why", False, said
    else:
        outcome = "refused for lack of space"
    try:
        make(out)
    except RunError as error:
        if "--resume" not in str(error):
            raise
        make(out, resume=True)
    differs = different(expected, contents(out))
    return f"{outcome}; gone on with, identical" if not differs else "not identical", not differs, f"{differs} {said}"


def full_file(what: str, make: Callable[[Path], Any], name: str, place: Path, sizes: tuple[int, ...]) -> Tally:
    """Write one file to a disk that is too small for it."""
    tally = Tally(what)

    def work(size: int) -> tuple[str, bool, str]:
        place.mkdir(parents=True, exist_ok=True)
        mount(place, size)
        path = place / name
        said = refusal(lambda: make(path))
        if said is None:
            return "it had room enough", False, str(size)
        if path.exists() or any(file.is_file() for file in place.rglob("*")):
            return "something was left", False, str([*place.rglob("*")])
        mount(place, ROOM, "remount")
        make(path)
        clear = "space" in said or "left" in said
        return ("refused for lack of space; nothing left; written when there is space", clear and path.exists(), said)

    for size in sizes:
        tally.add(*apart(partial(work, size)))
    return tally


def command(*arguments: str) -> None:
    """A command of the terminal, in this process; what it refuses is raised."""
    from typer.testing import CliRunner

    from headscope.cli.main import app

    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def full_cache(what: str, whole: Path, place: Path) -> Tally:
    """Hidden states that are kept for a probe, on a disk that fills up although there seemed to be room."""
    tally = Tally(what)
    make, settings = STUDIES["probe structural"]

    def probe(out: Path, cache: Path, **how: Any) -> None:
        make("mini", "sampler", out=out, cache=cache, replicates=5, **settings, **how)

    def work(lie: bool) -> tuple[str, bool, str]:
        cache = place / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        mount(cache, 65536)
        if lie:
            usage = shutil.disk_usage
            shutil.disk_usage = lambda path: usage("/")
        said = refusal(lambda: probe(place / "out", cache))
        mount(cache, ROOM, "remount")
        how: dict[str, Any] = {"resume": True} if (place / "out" / "run.json").exists() else {}
        probe(place / "out", cache, **how)
        differs = different(contents(whole), contents(place / "out"))
        shutil.rmtree(place / "out")
        clear = said is not None and ("space" in said or "left" in said)
        return "refused for lack of space; gone on with, identical", clear and not differs, f"{said} {differs}"

    for lie in (False, True):
        tally.add(*apart(partial(work, lie)))
    return tally


def full_training(what: str, corpus: Path, place: Path, shares: tuple[float, ...]) -> Tally:
    """A trained model that does not fit, before and after the room was looked at."""
    tally = Tally(what)
    whole = place / "whole"
    apart(lambda: trained(corpus)(whole) and None)

    def work(share: float, lie: bool) -> tuple[str, bool, str]:
        small = place / "small"
        small.mkdir(parents=True, exist_ok=True)
        mount(small, int(size_of(whole) * share))
        if lie:
            usage = shutil.disk_usage
            shutil.disk_usage = lambda path: usage("/")
        said = refusal(lambda: trained(corpus)(small / "model"))
        left = [str(path) for path in small.rglob("*")]
        mount(small, ROOM, "remount")
        trained(corpus)(small / "model")
        same = contents(small / "model") == contents(whole)
        clear = said is not None and ("space" in said or "left" in said)
        return "refused for lack of space; nothing left; made when there is space", clear and not left and same, f"{said} {left}"

    for share in shares:
        for lie in (False, True):
            tally.add(*apart(partial(work, share, lie)))
    return tally


def unusable(place: Path, mounts: bool) -> Tally:
    """Folders that cannot be written to at all; `mounts` says whether file systems may be mounted."""
    tally = Tally("output folder read-only; output path a file; a file in the way of a folder; no locks on the file system")
    place.mkdir(parents=True, exist_ok=True)

    def tried(make: Callable[[], Any], *words: str) -> None:
        said = refusal(make)
        tally.add("refused" if said else "not refused", said is not None and any(word in said for word in words), str(said))

    def read_only() -> str | None:
        (place / "ro").mkdir(exist_ok=True)
        mount(place / "ro")
        mount(place / "ro", None, "remount", "ro")
        return refusal(lambda: hs.run("mini", "sampler", out=place / "ro" / "run", **RUN))

    if mounts:
        said = apart(read_only)
        tally.add("refused" if said else "not refused", "cannot be written" in str(said), str(said))

    def unprivileged() -> str | None:
        (place / "locked").mkdir(exist_ok=True)
        (place / "locked").chmod(0o555)
        if os.geteuid() == 0:
            for parent in (place, *place.parents[:-1]):
                if not parent.stat().st_mode & 0o005:
                    parent.chmod(parent.stat().st_mode | 0o055)
            os.setgid(65534)
            os.setuid(65534)
        return refusal(lambda: hs.run("mini", "sampler", out=place / "locked" / "run", **RUN))

    said = apart(unprivileged)
    tally.add("refused" if said else "not refused", "cannot be written" in str(said), str(said))
    (place / "file").write_text("mine")
    tried(lambda: hs.run("mini", "sampler", out=place / "file", **RUN), "is a file")
    tried(lambda: hs.run("mini", "sampler", out=place / "file" / "run", **RUN), "cannot be written")
    tried(lambda: hs.train("sampler", place / "file", epochs=1), "is a file")
    assert (place / "file").read_text() == "mine"
    lock = fcntl.flock

    def without(file: Any, how: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    fcntl.flock = without
    try:
        tried(lambda: hs.run("mini", "sampler", out=place / "unlocked", **RUN), "cannot be locked")
    finally:
        fcntl.flock = lock
    return tally


def vanishing(place: Path) -> Tally:
    """A folder that is removed, or replaced by another run's, while a run writes to it."""
    tally = Tally("output folder removed, or replaced by another, during the run")
    place.mkdir(parents=True, exist_ok=True)
    for again in (False, True):
        out = place / f"vanishing-{again}"
        calls = 0

        def remove(share: Any, texts: int, tokens: int, out: Path = out, again: bool = again) -> None:
            nonlocal calls
            calls += 1
            if calls == 3:
                shutil.rmtree(out)
                if again:
                    out.mkdir()
                    (out / ".lock").write_text("")
                    (out / "run.json").write_text("another's")

        said = refusal(partial(hs.run, "mini", "sampler", out=out, progress=remove, **RUN))
        left = sorted(path.name for path in out.rglob("*")) if out.exists() else []
        right = said is not None and "removed or replaced" in said and left == ([".lock", "run.json"] if again else [])
        tally.add("refused; nothing written there any more", right, f"{said} {left}")
    return tally
