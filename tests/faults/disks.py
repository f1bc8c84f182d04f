"""Full disks, and folders that disappear or cannot be written to or locked."""

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
    """The bytes that a folder takes in a file system in memory: blocks of 4,096, and one more block per entry."""
    return sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in folder.rglob("*"))


def full(what: str, make: Make, whole: Path, place: Path, shares: tuple[float, ...]) -> Tally:
    """Do the work on a disk that holds only a share of its results; then enlarge the disk, and continue."""
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
    message = refusal(lambda: make(out))
    if wrong := half_written(place):
        return "half-written", False, str(wrong)
    mount(place, ROOM, "remount")
    if message is None:
        left = [line for line in hs.open_run(out).results.manifest["dropped"] if "gallery left out" in line]
        if not left:
            return "nothing was said", False, ""
        outcome = "finished without its gallery, which it says"
    elif "space" not in message and "left" not in message:
        return "refused without saying why", False, message
    else:
        outcome = "refused for lack of space"
    try:
        make(out)
    except RunError as error:
        if "--resume" not in str(error):
            raise
        make(out, resume=True)
    differs = different(expected, contents(out))
    return f"{outcome}; gone on with, identical" if not differs else "not identical", not differs, f"{differs} {message}"


def full_file(what: str, make: Callable[[Path], Any], name: str, place: Path, sizes: tuple[int, ...]) -> Tally:
    """Write one file to a disk that is too small for it; then enlarge the disk, and write it again."""
    tally = Tally(what)

    def work(size: int) -> tuple[str, bool, str]:
        place.mkdir(parents=True, exist_ok=True)
        mount(place, size)
        path = place / name
        message = refusal(lambda: make(path))
        if message is None:
            return "it had room enough", False, str(size)
        if path.exists() or any(file.is_file() for file in place.rglob("*")):
            return "something was left", False, str([*place.rglob("*")])
        mount(place, ROOM, "remount")
        make(path)
        clear = "space" in message or "left" in message
        return ("refused for lack of space; nothing left; written when there is space", clear and path.exists(), message)

    for size in sizes:
        tally.add(*apart(partial(work, size)))
    return tally


def command(*arguments: str) -> None:
    """Run a command of `headscope` in this process. Its errors are raised."""
    from typer.testing import CliRunner

    from headscope.cli.main import app

    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def full_cache(what: str, whole: Path, place: Path) -> Tally:
    """Cache hidden states for a probe on a full disk, with a correct and a wrong (`hide_full_disk`) number of free
    bytes.
    """
    tally = Tally(what)
    make, settings = STUDIES["probe structural"]

    def probe(out: Path, cache: Path, **how: Any) -> None:
        make("mini", "sampler", out=out, cache=cache, replicates=5, **settings, **how)

    def work(hide_full_disk: bool) -> tuple[str, bool, str]:
        cache = place / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        mount(cache, 65536)
        if hide_full_disk:
            real_usage = shutil.disk_usage
            shutil.disk_usage = lambda path: real_usage("/")
        message = refusal(lambda: probe(place / "out", cache))
        mount(cache, ROOM, "remount")
        how: dict[str, Any] = {"resume": True} if (place / "out" / "run.json").exists() else {}
        probe(place / "out", cache, **how)
        differs = different(contents(whole), contents(place / "out"))
        shutil.rmtree(place / "out")
        clear = message is not None and ("space" in message or "left" in message)
        return "refused for lack of space; gone on with, identical", clear and not differs, f"{message} {differs}"

    for hide_full_disk in (False, True):
        tally.add(*apart(partial(work, hide_full_disk)))
    return tally


def full_training(what: str, corpus: Path, place: Path, shares: tuple[float, ...]) -> Tally:
    """Save a trained model on a disk that is too small, with a correct and a wrong (`hide_full_disk`) number of free
    bytes.
    """
    tally = Tally(what)
    whole = place / "whole"
    apart(lambda: trained(corpus)(whole) and None)

    def work(share: float, hide_full_disk: bool) -> tuple[str, bool, str]:
        small = place / "small"
        small.mkdir(parents=True, exist_ok=True)
        mount(small, int(size_of(whole) * share))
        if hide_full_disk:
            real_usage = shutil.disk_usage
            shutil.disk_usage = lambda path: real_usage("/")
        message = refusal(lambda: trained(corpus)(small / "model"))
        left = [str(path) for path in small.rglob("*")]
        mount(small, ROOM, "remount")
        trained(corpus)(small / "model")
        same = contents(small / "model") == contents(whole)
        clear = message is not None and ("space" in message or "left" in message)
        return "refused for lack of space; nothing left; made when there is space", clear and not left and same, f"{message} {left}"

    for share in shares:
        for hide_full_disk in (False, True):
            tally.add(*apart(partial(work, share, hide_full_disk)))
    return tally


def unusable(place: Path, mounts: bool) -> Tally:
    """Use folders that cannot be written to. `mounts`: whether file systems may be mounted."""
    tally = Tally("output folder read-only; output path a file; a file in the way of a folder; no locks on the file system")
    place.mkdir(parents=True, exist_ok=True)

    def check_refused(make: Callable[[], Any], *words: str) -> None:
        message = refusal(make)
        tally.add("refused" if message else "not refused", message is not None and any(word in message for word in words), str(message))

    def read_only() -> str | None:
        (place / "ro").mkdir(exist_ok=True)
        mount(place / "ro")
        mount(place / "ro", None, "remount", "ro")
        return refusal(lambda: hs.run("mini", "sampler", out=place / "ro" / "run", **RUN))

    if mounts:
        message = apart(read_only)
        tally.add("refused" if message else "not refused", "cannot be written" in str(message), str(message))

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

    message = apart(unprivileged)
    tally.add("refused" if message else "not refused", "cannot be written" in str(message), str(message))
    (place / "file").write_text("mine")
    check_refused(lambda: hs.run("mini", "sampler", out=place / "file", **RUN), "is a file")
    check_refused(lambda: hs.run("mini", "sampler", out=place / "file" / "run", **RUN), "cannot be written")
    check_refused(lambda: hs.train("sampler", place / "file", epochs=1), "is a file")
    assert (place / "file").read_text() == "mine"
    real_flock = fcntl.flock

    def fail_to_lock(file: Any, how: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    fcntl.flock = fail_to_lock
    try:
        check_refused(lambda: hs.run("mini", "sampler", out=place / "unlocked", **RUN), "cannot be locked")
    finally:
        fcntl.flock = real_flock
    return tally


def vanishing(place: Path) -> Tally:
    """Remove an output folder, or replace it with another run's, while a run writes to it."""
    tally = Tally("output folder removed, or replaced by another, during the run")
    place.mkdir(parents=True, exist_ok=True)
    for replaced in (False, True):
        out = place / f"vanishing-{replaced}"
        calls = 0

        def remove(share: Any, texts: int, tokens: int, out: Path = out, replaced: bool = replaced) -> None:
            nonlocal calls
            calls += 1
            if calls == 3:
                shutil.rmtree(out)
                if replaced:
                    out.mkdir()
                    (out / ".lock").write_text("")
                    (out / "run.json").write_text("another's")

        message = refusal(partial(hs.run, "mini", "sampler", out=out, progress=remove, **RUN))
        left = sorted(path.name for path in out.rglob("*")) if out.exists() else []
        right = message is not None and "removed or replaced" in message and left == ([".lock", "run.json"] if replaced else [])
        tally.add("refused; nothing written there any more", right, f"{message} {left}")
    return tally
