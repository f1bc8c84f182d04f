"""Paths that are not regular files: every command that reads files refuses them with a remedy and writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.errors import HeadscopeError
from headscope.replication.study import corpora_by_role

COMMANDS = {
    "run": ["run", "--corpus", "PATH.conllu"],
    "maps": ["run", "--maps", "PATH.npz"],
    "settings": ["run", "PATH.toml"],
    "measure": ["run", "--measures", "PATH.py:Reach"],
    "stats": ["corpus", "stats", "PATH.conllu"],
    "check": ["corpus", "check", "PATH.conllu"],
    "compare": ["corpus", "compare", "PATH.conllu", "PATH.conllu"],
    "annotate": ["annotate", "PATH.txt", "--out", "x.conllu"],
    "keywords": ["keywords", "PATH.txt"],
    "vectors": ["probe", "attention", "--corpus", "sampler", "--vectors", "PATH.npz"],
    "replicate": ["replicate", "PATH.toml"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_long_names_pipes_devices_and_missing_files_are_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suffix = "".join(Path(next(part for part in COMMANDS[command] if "PATH" in part)).suffixes).partition(":")[0]
    os.mkfifo(f"pipe{suffix}")
    Path(f"zero{suffix}").symlink_to("/dev/zero")
    for name, says in {
        "n" * 300: "the path cannot be used (File name too long). Use a shorter name",
        "pipe": "this is a pipe, which cannot be read more than once. Save it to a file first",
        "zero": "this is a device, which cannot be read more than once. Save it to a file first",
        "missing": "there is no such file. Check the spelling",
    }.items():
        result = CliRunner().invoke(app, [part.replace("PATH", name) for part in COMMANDS[command]])
        assert isinstance(result.exception, HeadscopeError), (name, result.exception, result.output)
        assert f"{name}{suffix}: {says}" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"pipe{suffix}", f"zero{suffix}"])


@pytest.mark.parametrize(
    "command",
    [
        "run --out PATH",
        "run --out PATH/run",
        "flow --out PATH",
        "ablate --out PATH",
        "probe attention --out PATH",
        "probe structural --out PATH",
        "probe edge --out PATH",
        "probe keywords --out PATH",
        "replicate clark2019 --out PATH",
        "prune mini --keep 50% --out PATH",
        "train --corpus sampler --labels upos --out PATH",
        "twins mini mini --out PATH",
        "serve PATH",
        "show PATH",
    ],
)
def test_folders_with_too_long_a_name_are_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of results, models and runs are refused before anything is written."""
    monkeypatch.chdir(tmp_path)
    name = "n" * 300
    result = CliRunner().invoke(app, [part.replace("PATH", name) for part in command.split()])
    assert isinstance(result.exception, HeadscopeError), (result.exception, result.output)
    assert "the path cannot be used (File name too long). Use a shorter name" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_long_path_can_follow_a_role() -> None:
    name = "n" * 300
    assert corpora_by_role([f"treebank={name}", name]) == {"treebank": [name], "": [name]}
