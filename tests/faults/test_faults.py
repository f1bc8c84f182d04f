"""Faults that are quick to try. `make faults` tries many more, for much longer: tests/faults/run_faults.py."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import changes
import damage
import disks
import pytest
from kills import RUN
from trials import Tally, contents, different, half_written

import headscope as hs
from headscope.cli.printing.progress import ORDERLY, Ended, exit_code, signals_as_exceptions
from headscope.errors import ModelError, RunError
from headscope.models.model import Model
from headscope.models.saving import require_room, written_whole
from headscope.results.folder import Folder

SMALL: dict[str, Any] = {**RUN, "measures": ["entropy"], "limit": 12, "gallery": 2}


@pytest.fixture(scope="module")
def finished_run(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("faults") / "whole"
    hs.run(mini, "sampler", out=out, **SMALL)
    return out


def check_tally(tally: Tally, tries: int) -> None:
    assert tally.wrong == []
    assert tally.tries == tries


def test_runs_killed_while_writing_or_by_sigterm_resume_to_identical_results(tmp_path: Path) -> None:
    """The trials start in a new process, because a process that has computed cannot be forked."""
    script = Path(__file__).with_name("run_faults.py")
    found = subprocess.run([sys.executable, str(script), "--quick"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "| 2 | identical |" in found.stdout
    assert "exit 143, says how to go on, no process left; resumed, identical" in found.stdout


def test_damaged_results_are_refused_or_read_unchanged(finished_run: Path, tmp_path: Path) -> None:
    names = ["run.json", "states.safetensors", "gallery.safetensors", "tables/entropy.parquet"]
    check_tally(damage.of_finished("", finished_run, names, 40, 1, tmp_path), 40)


def test_damaged_parts_are_refused_on_resume(mini: Model, finished_run: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    changes.stop_after(2, lambda progress: hs.run(mini, "sampler", out=begun, progress=progress, **SMALL))
    tally = damage.of_parts("", mini, begun, finished_run, SMALL, 6, 1, tmp_path)
    check_tally(tally, 6)
    assert tally.came == {"refused, with the remedy": 6}


def test_resume_refuses_changed_inputs_and_names_them(tmp_path: Path) -> None:
    check_tally(changes.under_resume(tmp_path, hs.load()), 15)


def test_unusable_output_folders_are_refused(tmp_path: Path) -> None:
    check_tally(disks.unusable(tmp_path / "unusable", mounts=False), 5)


def test_an_output_folder_that_disappears_is_not_created_again(tmp_path: Path) -> None:
    check_tally(disks.vanishing(tmp_path), 2)


@pytest.mark.parametrize("number", [1, 3, 6])
def test_a_run_on_a_full_disk_is_refused_and_can_be_resumed(
    mini: Model, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    count, fsync = 0, os.fsync

    def full(file: int) -> None:
        nonlocal count
        count += 1
        if count >= number:
            os.ftruncate(file, 3)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"cannot be written \(No space left on device\). Free some space, and continue with --resume"):
            hs.run(mini, "sampler", out=out, **SMALL)
    assert half_written(out) == []
    assert not list(out.rglob("*.tmp"))
    hs.run(mini, "sampler", out=out, resume=True, **SMALL)
    assert different(contents(finished_run), contents(out)) == []


def test_a_run_interrupted_while_overwriting_another_can_be_resumed(mini: Model, finished_run: Path, tmp_path: Path) -> None:
    """`--overwrite` marks the old run as cleared before it removes the first file."""
    out = tmp_path / "run"
    hs.run(mini, "sampler", out=out, **{**SMALL, "seed": 1})
    with pytest.MonkeyPatch.context() as patch:
        removed: list[Path] = []

        def interrupted_unlink(self: Path, missing_ok: bool = False) -> None:
            removed.append(self)
            raise KeyboardInterrupt

        patch.setattr(Path, "unlink", interrupted_unlink)
        with pytest.raises(KeyboardInterrupt):
            hs.run(mini, "sampler", out=out, overwrite=True, **SMALL)
    assert removed
    assert Folder(out).read_manifest()["status"] == "cleared"
    with pytest.raises(RunError, match="not finished"):
        hs.open_run(out)
    hs.run(mini, "sampler", out=out, resume=True, **SMALL)
    assert different(contents(finished_run), contents(out)) == []


def test_a_gallery_missing_from_the_manifest_is_made_again(mini: Model, finished_run: Path, tmp_path: Path) -> None:
    """A kill after the gallery is written and before the manifest names it leaves this state."""
    out = tmp_path / "run"
    hs.run(mini, "sampler", out=out, **SMALL)
    manifest = Folder(out).read_manifest()
    files = {name: sum for name, sum in manifest["files"].items() if "gallery" not in name}
    Folder(out).write_manifest({**{name: value for name, value in manifest.items() if name != "gallery"}, "files": files})
    hs.run(mini, "sampler", out=out, resume=True, **SMALL)
    assert different(contents(finished_run), contents(out)) == []


def test_a_model_folder_is_complete_or_cannot_be_loaded(tmp_path: Path) -> None:
    out = tmp_path / "model"
    with pytest.raises(ModelError, match="No space left"), written_whole(out) as place:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), (place / "config.json").write_text("{}"))
    assert list(tmp_path.iterdir()) == []
    with written_whole(out) as place:
        for name in ("config.json", "model.safetensors", "pruned_heads.json"):
            (place / name).write_text("old")
    (out / "notes.txt").write_text("mine")
    moved: list[str] = []
    replace = Path.replace
    with pytest.MonkeyPatch.context() as patch:

        def noted_replace(self: Path, target: Path) -> Path:
            moved.append(f"{self.name} {(out / 'config.json').exists()}")
            return replace(self, target)

        patch.setattr(Path, "replace", noted_replace)
        with written_whole(out) as place:
            for name in ("config.json", "model.safetensors"):
                (place / name).write_text("new")
    assert moved == ["model.safetensors False", "config.json False"], "the folder has no configuration while its files are replaced"
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "config.json": "new",
        "model.safetensors": "new",
        "notes.txt": "mine",
    }


def test_temporary_model_folders_of_ended_processes_are_removed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    (tmp_path / f".model.{process.pid}.tmp").mkdir()
    (tmp_path / f".model.{os.getppid()}.tmp").mkdir()
    with written_whole(tmp_path / "model") as place:
        (place / "config.json").write_text("{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".model.{os.getppid()}.tmp", "model"]


def test_require_room_refuses_a_model_larger_than_the_free_space(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="MiB left"):
        require_room(tmp_path / "a" / "b", 2**60)
    require_room(tmp_path / "a" / "b", 1)


def send_signal_and_wait(number: int) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def exit_as_typer_does(number: int) -> None:
    try:
        send_signal_and_wait(number)
    except KeyboardInterrupt:
        sys.exit(130)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Set all handlers to the default (under nohup, SIGHUP is ignored), and restore them afterwards."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ORDERLY}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ORDERLY)
def test_a_signal_raises_an_exception_and_restores_the_default_handlers(number: signal.Signals, handlers: None) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(Ended) as caught, signals_as_exceptions():
        send_signal_and_wait(number)
    assert exit_code(caught.value) == 128 + number
    assert [signal.getsignal(each) for each in ORDERLY] == [signal.SIG_DFL] * 4, "a second signal ends the process"
    with pytest.raises(SystemExit) as ended, signals_as_exceptions():
        exit_as_typer_does(number)
    assert ended.value.code == 128 + number


def test_handlers_are_restored_if_no_signal_arrives(handlers: None) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = [signal.getsignal(number) for number in ORDERLY]
    with signals_as_exceptions():
        assert signal.default_int_handler not in [signal.getsignal(number) for number in ORDERLY]
    assert [signal.getsignal(number) for number in ORDERLY] == before


@pytest.mark.parametrize("number", ORDERLY)
def test_a_second_signal_ends_the_process_silently(number: signal.Signals) -> None:
    """This holds at any time: here the signal arrives in a finaliser, while the interpreter shuts down."""
    code = f"""
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal({int(number)}, signal.SIG_DFL)
from headscope.cli.printing.progress import exit_code, signals_as_exceptions

class Late:
    def __del__(self):
        signal.raise_signal({int(number)})
        print("it went on", file=sys.stderr)

late = Late()
try:
    with signals_as_exceptions():
        signal.raise_signal({int(number)})
except KeyboardInterrupt as error:
    print("first", exit_code(error), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"first {128 + number}\n"
    assert done.stderr == ""
    assert done.returncode == -number


def test_processes_of_a_run_block_signals_of_the_terminal() -> None:
    """This includes the first process, with which multiprocessing also starts its resource tracker."""
    code = """
import multiprocessing, signal, time
from pathlib import Path
from headscope.engine.child_processes import uninterrupted

if __name__ == "__main__":
    with uninterrupted():
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,), daemon=True)
        process.start()
    status = Path(f"/proc/{process.pid}/status").read_text()
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    print([bool(blocked >> (number - 1) & 1) for number in (signal.SIGINT, signal.SIGQUIT)])
    print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    process.kill()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True]\n[]\n"


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_exceptions():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
