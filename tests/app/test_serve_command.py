"""`headscope serve`: the runs and models that it finds, and what it prints."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.app import server
from headscope.app.models import find_models
from headscope.app.served_runs import find_runs, unique
from headscope.cli.main import app
from headscope.errors import RunError
from headscope.results.folder import Folder
from headscope.results.results import Results


def test_runs_are_found_and_get_different_names(folder: Path, tmp_path: Path) -> None:
    for place in ("a/run", "b/run", "c"):
        shutil.copytree(folder, tmp_path / place)
    (tmp_path / "not a run").mkdir()
    found = find_runs([tmp_path / "a", tmp_path / "b" / "run", tmp_path, tmp_path / "c"])
    assert list(found) == ["run", "run-2", "c"]
    assert [results.path for results in found.values()] == [tmp_path / "a/run", tmp_path / "b/run", tmp_path / "c"]
    assert unique("run", ["run", "run-2"]) == "run-3"
    assert unique("\udcff", []) == "?"


def test_folders_without_a_valid_run_are_refused_or_skipped(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="contains no run"):
        find_runs([tmp_path])
    with pytest.raises(RunError, match="is not a run folder"):
        find_runs([tmp_path / "none"])
    shutil.copytree(folder, tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    messages: list[str] = []
    assert list(find_runs([tmp_path], messages.append)) == ["good"]
    assert messages[0].startswith("skipped: ")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *((part, None) for part in ("signature", "settings", "measures", "tables", "sites", "counts")),
        *(("sites", []), ("sites", [{"kind": "encoder"}]), ("tables", [1]), ("counts", 3)),
    ],
)
def test_a_run_with_an_invalid_manifest_is_refused_or_skipped(folder: Path, tmp_path: Path, part: str, value: object) -> None:
    for place in ("good", "bad"):
        shutil.copytree(folder, tmp_path / place)
    manifest = json.loads((folder / "run.json").read_text())
    del manifest[part]
    Folder(tmp_path / "bad").write_manifest(manifest if value is None else {**manifest, part: value})
    with pytest.raises(RunError, match=rf"run\.json in .*bad has invalid values of {part}"):
        find_runs([tmp_path / "bad"])
    messages: list[str] = []
    assert list(find_runs([tmp_path], messages.append)) == ["good"]
    assert f"of {part}" in messages[0]


def test_a_table_name_that_is_a_path_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    Folder(tmp_path / "run").write_manifest({**manifest, "tables": ["../../first/tables/tokens"]})
    with pytest.raises(RunError, match="not a valid name"):
        find_runs([tmp_path / "run"])


def test_local_models_of_runs_are_found(results: Results, tmp_path: Path) -> None:
    def run(model: str, **settings: str) -> Results:
        return Results({**results.manifest, "settings": {"model": model, **settings}}, {})

    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text("{}")
    runs = {"a": run(str(tmp_path / "tiny")), "b": run("bert-base-uncased"), "c": run("mini"), "d": run("mini"), "e": run("")}
    assert find_models([], runs) == {"tiny": str(tmp_path / "tiny"), "mini": "mini"}
    assert find_models([], {"b": runs["b"]}) == {"mini": "mini"}  # a hub model that a run names is not downloaded
    assert find_models([], {"r": run(str(tmp_path / "tiny"), weights="random")}) == {"mini": "mini"}
    assert find_models([], {}) == {"mini": "mini"}


def test_serving_without_the_extra_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"pip install 'headscope\[serve\]'"):
        server.serve([])


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert isinstance(result.exception, RunError)
    assert CliRunner().invoke(app, ["serve", "--port", "99999"]).exit_code == 2


def test_help_imports_neither_torch_nor_fastapi() -> None:
    code = "import sys; from headscope.cli.main import app; app(['serve', '--help'], standalone_mode=False)"
    code += "; print('torch' in sys.modules, 'fastapi' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("False False\n")


def test_the_command_starts_a_server_that_ends_on_sigint(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "headscope", "serve", str(folder), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"headscope serves 1 run at http://127.0.0.1:{port}/ (stop with Ctrl+C)\n"
            for _ in range(200):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs") as answer:
                        assert json.load(answer)[0]["name"] == "first"
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                pytest.fail("the server did not start")
        finally:
            process.send_signal(2)
        _, errors = process.communicate(timeout=30)
        assert errors == ""
        assert process.returncode == 0


def test_a_server_that_others_can_reach_prints_a_warning(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    import uvicorn

    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    messages: list[str] = []
    server.serve([folder], host="0.0.0.0", port=0, notify=messages.append)
    assert messages[0].startswith("warning: anyone who can reach 0.0.0.0 ")
    messages.clear()
    server.serve([folder], port=0, notify=messages.append)
    assert len(messages) == 1
