"""The page of all figures, tables and remarks of the papers: it is up to date, and each of its commands runs."""

from __future__ import annotations

import importlib.util
import shlex
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.studies.ablation import prune

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def papers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("papers", ROOT / "docs" / "tools" / "papers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_and_its_thumbnails_match_the_list(papers: ModuleType) -> None:
    listing = papers.listed()
    assert papers.PAGE.read_text(encoding="utf-8") == papers.page(listing), "run docs/tools/papers.py"
    pictures = {row["thumbnail"] for row in papers.rows(listing) if "thumbnail" in row}
    assert {path.stem for path in papers.IMG.glob("*.png")} == pictures
    sizes = [path.stat().st_size for path in papers.IMG.glob("*.png")]
    assert max(sizes) < 30_000
    assert sum(sizes) < 1_000_000


def test_every_command_of_the_page_runs(papers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command runs on small settings. Each folder is created once."""
    listing = papers.listed()
    monkeypatch.setattr(prune, "speed_table", partial(prune.speed_table, batches=(1,), rounds=1))

    def invoke(command: str, extra: str = "") -> None:
        arguments = papers.placed(command.replace("keyphrases.jsonl", "sampler"), tmp_path, listing)
        done = CliRunner().invoke(app, [*arguments, *shlex.split(extra)], catch_exceptions=False)
        assert done.exit_code == 0, (command, done.output)

    def make(name: str) -> None:
        folder = listing["folders"][name]
        for needed in papers.folders_in(folder["command"], listing):
            if needed != name and not (tmp_path / needed).exists():
                make(needed)
        invoke(folder["command"], folder["small"])

    for row in papers.rows(listing):
        for name in papers.folders_in(row["command"], listing):
            if not (tmp_path / name).exists():
                make(name)
        if row["command"] not in {folder["command"] for folder in listing["folders"].values()}:
            invoke(row["command"])
        if "-o " in row["command"]:
            assert (tmp_path / row["command"].rpartition("-o ")[2]).stat().st_size > 500
    assert [name for name in listing["folders"] if not (tmp_path / name).exists()] == []
