"""The kinds of files at paths, with usual and unusual names."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from headscope.core.paths import kind_of, problem_of


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One path of each kind."""
    found = {name: tmp_path / name for name in ("file", "folder", "missing", "pipe", "socket", "loop", "link", "broken")}
    found["file"].write_text("x")
    found["folder"].mkdir()
    os.mkfifo(found["pipe"])
    with socket.socket(socket.AF_UNIX) as bound:
        monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 bytes
        bound.bind("socket")
    found["loop"].symlink_to("loop")
    found["link"].symlink_to("pipe")
    found["broken"].symlink_to("missing")
    return {**found, "inside": found["file"] / "x", "device": Path("/dev/zero"), "long": tmp_path / ("n" * 300)}


def test_each_kind_of_path_is_recognised(places: dict[str, Path]) -> None:
    expected = {name: name for name in ("file", "folder", "missing", "pipe", "socket", "device")}
    expected |= {"link": "pipe", "broken": "missing", "inside": "missing", "loop": "unusable", "long": "unusable"}
    assert {name: kind_of(path) for name, path in places.items()} == expected
    assert kind_of("a\0b") == kind_of("a\ud800b") == "unusable"


def test_problems_name_a_remedy(places: dict[str, Path]) -> None:
    assert problem_of(places["file"]) is None
    assert problem_of(places["folder"], "folder") is None
    assert problem_of(places["missing"]) == ("there is no such file", "Check the spelling and the working directory")
    assert problem_of(places["missing"], "folder") == ("there is no such folder", "Check the spelling and the working directory")
    assert problem_of(places["file"], "folder") == ("this is a file where a folder is needed", "Name a folder")
    assert problem_of(places["folder"]) == ("this is a directory", "Name a file in it")
    for name in ("pipe", "socket", "device"):
        problem, remedy = problem_of(places[name]) or ("", "")
        assert problem == f"this is a {name}, which cannot be read more than once"
        assert remedy == "Save it to a file first, and name that file"
    assert problem_of(places["long"]) == ("the path cannot be used (File name too long)", "Use a shorter name")
    assert problem_of("a\0b") == (
        "the path cannot be used (embedded null byte)",
        "Write the path without NUL bytes and other characters that file names cannot contain",
    )


def test_a_path_without_permission_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", denied)  # root has all permissions, so the refusal is simulated
    assert kind_of(tmp_path) == "unusable"
    assert problem_of(tmp_path) == (
        "the path cannot be used (Permission denied)",
        "Check the permissions of the folders that it lies in",
    )
