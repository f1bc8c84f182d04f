"""Folders of results may contain files of users, and links: these are never removed or written to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.models.saving import written_whole
from headscope.results.folder import Folder

SMALL: dict[str, Any] = {"limit": 2, "replicates": 0, "gallery": 0}


def write(path: Path, text: str = "mine") -> Path:
    """Write a file of the user, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_overwrite_keeps_files_that_the_manifest_does_not_list(mini: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    hs.run(mini, "sampler", ["entropy", "positions"], out, **SMALL)
    places = ("tables/mine.parquet", "tables/.mine.tmp", "partial/q.txt", "partial/mine.safetensors", "states/mine.states", "notes/.a.tmp")
    mine = [write(out / place) for place in (*places, "report.html", "mine.safetensors")]
    (out / "partial" / "00000000-00000003.safetensors").write_bytes(b"of the run")
    (out / "states" / f"{'0' * 24}.states").write_bytes(b"of the run")
    (out / "tables" / ".entropy.parquet.4711.tmp").write_bytes(b"of the run")
    run = hs.run(mini, "sampler", ["entropy"], out, overwrite=True, **SMALL)
    assert [path.read_text() for path in mine] == ["mine"] * len(mine)
    tables = ["tables/entropy.parquet", "tables/entropy_layers.parquet"]
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path not in mine) == sorted(
        [".lock", "run.json", "states.safetensors", *tables]
    )
    assert list(run.results) == ["entropy", "entropy_layers"]


def test_resuming_a_finished_run_keeps_files_of_users(mini: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    hs.run(mini, "sampler", ["entropy"], out, **SMALL)
    mine = write(out / "partial" / "q.txt")
    hs.run(mini, "sampler", ["entropy"], out, resume=True, **SMALL)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["tables", "partial", "states"])
def test_a_linked_subfolder_is_refused_and_its_target_is_unchanged(mini: Model, tmp_path: Path, name: str) -> None:
    out, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    hs.run(mini, "sampler", ["entropy"], out, **SMALL)
    behind = [write(elsewhere / one) for one in ("entropy.parquet", "00000000-00000001.safetensors", f"{'a' * 24}.states", ".x.1.tmp")]
    if (out / name).exists():
        (out / name).rename(tmp_path / "moved")
    (out / name).symlink_to(elsewhere)
    before = (out / "run.json").read_bytes()
    for how in ("overwrite", "resume"):
        with pytest.raises(RunError, match=rf"run/{name} is a symbolic link. Replace it by a folder"):
            hs.run(mini, "sampler", ["entropy"], out, **{**SMALL, how: True})
    assert [path.read_text() for path in behind] == ["mine"] * 4
    assert (out / "run.json").read_bytes() == before


def test_a_run_folder_that_is_a_link_is_overwritten(mini: Model, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", **SMALL)
    (tmp_path / "disk" / ".run.json.4711.tmp").write_text("{")
    hs.run(mini, "sampler", ["entropy"], tmp_path / "run", overwrite=True, **SMALL)
    found = sorted(path.name for path in (tmp_path / "disk").rglob("*"))
    assert found == [".lock", "entropy.parquet", "entropy_layers.parquet", "run.json", "states.safetensors", "tables"]


def test_an_edited_manifest_removes_no_files_except_tables(mini: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    hs.run(mini, "sampler", ["entropy"], out, **SMALL)
    mine = [write(tmp_path / "mine.parquet"), write(out / "tables" / "deep" / "mine.parquet"), write(out / "mine.txt")]
    manifest = Folder(out).read_manifest()
    listed = {"../mine.parquet": "", "tables/../../mine.parquet": "", "tables/deep/mine.parquet": "", "mine.txt": "", str(mine[0]): ""}
    Folder(out).write_manifest({**manifest, "files": {**manifest["files"], **listed}, "tables": ["../../mine", 3]})
    hs.run(mini, "sampler", ["entropy"], out, overwrite=True, **SMALL)
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_a_folder_with_a_run_json_of_another_program_is_refused(mini: Model, tmp_path: Path) -> None:
    mine = write(tmp_path / "run.json", json.dumps({"program": "another"}))
    with pytest.raises(RunError, match=r"not a run folder \(it contains run.json\)"):
        hs.run(mini, "sampler", ["entropy"], tmp_path, overwrite=True, **SMALL)
    assert json.loads(mine.read_text()) == {"program": "another"}


def test_tables_of_a_run_stopped_at_its_end_are_overwritten(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest lists files before they are written."""
    out = tmp_path / "run"
    original = Folder.write

    def stopping(self: Folder, name: str, data: bytes) -> None:
        if name == "states.safetensors":
            raise KeyboardInterrupt
        original(self, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", stopping)
        with pytest.raises(KeyboardInterrupt):
            hs.run(mini, "sampler", ["positions"], out, **SMALL)
    assert sorted(path.name for path in (out / "tables").iterdir()) == ["positions.parquet", "positions_layers.parquet"]
    hs.run(mini, "sampler", ["entropy"], out, overwrite=True, **SMALL)
    assert sorted(path.name for path in (out / "tables").iterdir()) == ["entropy.parquet", "entropy_layers.parquet"]


def test_an_identical_rerun_keeps_files_of_users_in_its_folder(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    hs.run(mini, "sampler", ["entropy"], out, **SMALL)
    finish = Folder.finish

    def finishing(self: Folder, *parts: Any) -> Any:
        write(self.path / "mine.txt")
        return finish(self, *parts)

    monkeypatch.setattr(Folder, "finish", finishing)
    assert hs.rerun(out, model=mini).identical
    assert sorted(path.name for path in (tmp_path / "run.rerun").iterdir()) == [".lock", "mine.txt", "run.json"]
    monkeypatch.undo()
    assert hs.rerun(out, model=mini).identical
    assert not (tmp_path / "run.rerun-2").exists()


def test_replacing_a_model_keeps_other_files_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    old = ("config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json", "pruned_heads.json")
    for name in old:
        write(folder / name, "old")
    mine = [write(folder / name) for name in ("adapter.safetensors", "mine.safetensors.index.json", "README.md")]
    with written_whole(folder) as place:
        for name in ("config.json", "model.safetensors"):
            write(place / name, "new")
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert {path.name: path.read_text() for path in folder.iterdir() if path not in mine} == {
        "config.json": "new",
        "model.safetensors": "new",
    }
