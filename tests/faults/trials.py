"""Tools for trials of faults: processes to kill, file systems to fill, folders to compare, a tally of outcomes."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from headscope.errors import HeadscopeError
from headscope.results.folder import Folder

VARYING = ("seconds", "sha256")  # entries of run.json that may differ between two identical runs
_NEWNS, _PRIVATE, _REC = 0x00020000, 1 << 18, 1 << 14


@dataclass
class Tally:
    """What was tried, and how often each outcome occurred."""

    what: str
    came: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    stages: Counter[str] = field(default_factory=Counter)  # where processes were killed

    def add(self, outcome: str, right: bool = True, about: str = "") -> None:
        """Add the outcome of one trial."""
        self.came[outcome] += 1
        if not right:
            self.wrong.append(f"{outcome}: {about}")

    def plain(self) -> dict[str, Any]:
        """The tally as plain values."""
        return {"what": self.what, "came": dict(self.came), "wrong": self.wrong, "stages": dict(self.stages)}

    @classmethod
    def again(cls, plain: dict[str, Any]) -> Tally:
        """A tally from its plain values."""
        return cls(plain["what"], Counter(plain["came"]), plain["wrong"], Counter(plain["stages"]))

    @property
    def tries(self) -> int:
        """The number of trials."""
        return self.came.total()

    def line(self) -> str:
        """The tally as a row of the table."""
        came = "; ".join(f"{outcome}{f' ({n})' if len(self.came) > 1 else ''}" for outcome, n in self.came.most_common())
        return f"| {self.what} | {self.tries} | {came}{'' if not self.wrong else ' **WRONG**'} |"


def child(function: Callable[[], Any], log: Path | None = None) -> int:
    """Start a function in a new process that leads a new process group, and return the process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads: none of them holds a lock that is used here
        pid = os.fork()
    if pid:
        with suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        out = os.open(str(log) if log is not None else os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        torch.set_num_threads(1)
        function()
        code = 0
    except HeadscopeError as error:
        print(f"headscope: {error}", file=sys.stderr)
        code = 2
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for a child to end, and return its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def apart(function: Callable[[], Any]) -> Any:
    """Call a function in a separate process with private mounts, and return its result. An exception is raised here as
    an AssertionError with the traceback as text.
    """
    reader, writer = os.pipe()

    def work() -> None:
        os.close(reader)
        try:
            with suppress(OSError):
                own_mounts()
            answer: dict[str, Any] = {"gives": function()}
        except BaseException:
            answer = {"raises": traceback.format_exc()}
        with os.fdopen(writer, "w") as stream:
            json.dump(answer, stream)

    pid = child(work)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    ended(pid)
    answer = json.loads(text) if text else {"raises": "it died"}
    if "raises" in answer:
        raise AssertionError(answer["raises"])
    return answer["gives"]


def own_mounts() -> None:
    """Give this process a private table of mounts, which ends with the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWNS) or libc.mount(b"none", b"/", None, _PRIVATE | _REC, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(path: Path, size: int | None = None, *options: str) -> None:
    """Mount a file system in memory of `size` bytes. The option `remount` changes the mounted one instead."""
    from subprocess import run

    mount_options = ",".join([*options, *([f"size={size}"] if size is not None else [])])
    run(["mount", "-t", "tmpfs", *(["-o", mount_options] if mount_options else []), "tmpfs", str(path)], check=True, capture_output=True)


def can_mount() -> bool:
    """Whether this process may mount file systems: it must be root, and not in a container that forbids it."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:

        def try_to_mount() -> bool:
            own_mounts()
            mount(Path(place), 65536)
            return True

        try:
            return bool(os.geteuid() == 0 and shutil.which("mount") and apart(try_to_mount))
        except AssertionError:
            return False


def refusal(function: Callable[[], Any]) -> str | None:
    """The message of the HeadscopeError that a function raises; None if it raises none. Any other error is a fault."""
    try:
        function()
    except HeadscopeError as error:
        return str(error)
    return None


def contents(folder: Path) -> dict[str, Any]:
    """The bytes of all files of a folder, by path. run.json is parsed, without the entries that may vary."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"):
        found[str(path.relative_to(folder))] = path.read_bytes()
    if "run.json" in found:
        manifest = json.loads(found["run.json"])
        for name in VARYING:
            manifest.pop(name, None)
        manifest.get("counts", {}).pop("resumed_shards", None)
        found["run.json"] = manifest
    return found


def different(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The names of the files that differ."""
    return [name for name in sorted({*a, *b}) if a.get(name) != b.get(name)]


def half_written(folder: Path) -> list[str]:
    """The files that have their final names but are incomplete."""
    import pyarrow.parquet as pq

    from headscope.results.files import TEMPORARY, open_arrays, open_record

    wrong = []
    for path in folder.rglob("*"):
        if not path.is_file() or path.name == ".lock" or TEMPORARY.fullmatch(path.name):
            continue
        try:
            match path.suffix:
                case ".parquet":
                    pq.read_table(path)
                case ".safetensors":
                    open_arrays(path)
                case ".json":
                    open_record(path.read_bytes())
                case ".html":
                    assert path.read_text().rstrip().endswith("</html>")
                case ".svg":
                    assert path.read_text().rstrip().endswith("</svg>")
        except Exception as error:
            wrong.append(f"{path}: {error!r}")
    return wrong


def alive(group: int) -> bool:
    """Whether any process of a group is still running."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def orphans(group: int, patience: float = 120) -> bool:
    """Whether processes of a group are still running after `patience` seconds; they are then killed."""
    deadline = time.monotonic() + patience
    while alive(group):
        if time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            return True
        time.sleep(0.02)
    return False


@contextmanager
def killing_at(number: int, how: str) -> Iterator[None]:
    """Kill this process (`kill -9`) at the `number`-th file that it writes: when half of the file is `written`, when it
    is `synced` but has no final name yet, or when it is `named`.
    """
    count = 0
    fsync, replace = os.fsync, Path.replace

    def dying_sync(file: int) -> None:
        nonlocal count
        count += 1
        if count == number and how == "written":
            os.ftruncate(file, os.fstat(file).st_size // 2)
        fsync(file)
        if count == number and how in ("written", "synced"):
            os.kill(os.getpid(), signal.SIGKILL)

    def dying_replace(self: Path, target: Path) -> Path:
        moved = replace(self, target)
        if count == number and how == "named":
            os.kill(os.getpid(), signal.SIGKILL)
        return moved

    os.fsync, Path.replace = dying_sync, dying_replace  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        os.fsync, Path.replace = fsync, replace  # type: ignore[method-assign]


def moments(seed: int, n: int, duration: float) -> list[float]:
    """Random moments, one in each of `n` equal parts of a duration."""
    rng = random.Random(seed)
    return [duration * (part + rng.random()) / n for part in range(n)]


def manifest_of(folder: Path) -> dict[str, Any]:
    """The content of run.json; empty if there is none."""
    return Folder(folder).read_manifest() if (folder / "run.json").exists() else {}
