"""The engine `ray` on a cluster of several nodes, which are really killed: the same bytes as `local` gives."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.encoding.texts import Encoded
from headscope.engine import ray_workers as cluster
from headscope.engine import worker
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.signature import versions

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'headscope[ray]'")

SETTINGS: dict[str, Any] = {"shard_tokens": 60, "replicates": 5, "gallery": 0, "by": "length"}
BAD = "sampler_recipe_flatbread/5"  # the text that makes the model raise
STORE = 80 << 20
MEASURES = ["positions", "tokens"]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head without a CPU, where nothing of ours can be placed, and three nodes of one CPU each; this process is
    connected to it.
    """
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONWARNINGS", "")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False})
        for _ in range(3):
            made.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()  # type: ignore[no-untyped-call]


def files(folder: Path) -> dict[str, bytes]:
    names = ["states.safetensors", *(f"tables/{path.name}" for path in sorted((folder / "tables").iterdir()))]
    return {name: (folder / name).read_bytes() for name in names}


def failing(bad: str, inputs: Callable[..., Any]) -> Callable[..., Any]:
    """What a model reads texts with, but for one text."""

    def raising(self: Model, texts: Sequence[Encoded]) -> Any:
        if any(text.id == bad for text in texts):
            raise RuntimeError("the matrix is singular")
        return inputs(self, texts)

    return raising


def actors_that(monkeypatch: pytest.MonkeyPatch, bad: str, roll: Path) -> None:
    """Let actors write down where they are, and their models raise on a text."""
    base = cluster._actor()

    class Marked(base):  # type: ignore[valid-type,misc]
        def begin(self, start: dict[str, Any]) -> tuple[str, Any]:
            import os

            import ray

            from headscope.models.model import Model

            answer: tuple[str, Any] = super().begin(start)
            inputs = Model.inputs

            def raising(self: Any, texts: Any) -> Any:
                if any(text.id == bad for text in texts):
                    raise RuntimeError("the matrix is singular")
                return inputs(self, texts)

            Model.inputs = raising  # type: ignore[method-assign]
            (roll / str(os.getpid())).write_text(ray.get_runtime_context().get_node_id())
            return answer

    monkeypatch.setattr(cluster, "_actor", lambda: Marked)


def test_a_killed_worker_a_lost_node_and_a_bad_text(
    nodes: Any, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed and later a node is lost, each when some shards are done and all workers have some in hand."""
    with monkeypatch.context() as patch:
        patch.setattr(Model, "inputs", failing(BAD, Model.inputs))
        hs.run(small_folder, "sampler", MEASURES, out=tmp_path / "local", on_error="skip", **SETTINGS)
    roll = tmp_path / "roll"
    roll.mkdir()
    actors_that(monkeypatch, BAD, roll)
    calls: list[float | None] = []
    killed: list[str] = []
    hired: list[Any] = []
    hire = cluster.RayPool.hire

    def noted(pool: cluster.RayPool, start: worker.WorkerSetup) -> Any:
        hired.append(hire(pool, start))
        return hired[-1]

    monkeypatch.setattr(cluster.RayPool, "hire", noted)

    def interfere(share: float | None, texts: int, tokens: int) -> None:
        calls.append(share)
        if not killed and len(calls) >= 4:
            everyone = places(roll, 2)
            killed.append(min(everyone))
            os.kill(int(killed[0]), signal.SIGKILL)
        elif len(killed) == 1 and len(hired) == 2:
            time.sleep(0.05)  # that a worker is gone is heard of before all is done
        elif len(killed) == 1:
            everyone = places(roll, 3)
            killed.append(max(everyone.keys() - killed))
            lost = next(node for node in nodes.worker_nodes if node.node_id == everyone[killed[1]])
            nodes.remove_node(lost, allow_graceful=False)

    run = hs.run(
        small_folder, "sampler", MEASURES, out=tmp_path / "ray", engine="ray", workers=2, on_error="skip", progress=interfere, **SETTINGS
    )
    assert len(killed) == 2, "the run was over before anything was killed"
    assert len(calls) > 20, "all was done before anything was killed"
    assert len(hired) == 4, "each of the two is replaced, and no other"
    assert [one["text"] for one in run.results.manifest["failed"]] == [BAD]
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert ray.is_initialized(), "a connection that was there before is not ours to end"
    nodes.add_node(num_cpus=1, object_store_memory=STORE)
    free(3)


def places(roll: Path, workers: int) -> dict[str, str]:
    """The nodes of so many workers by their process, when all of them have loaded their model."""
    deadline = time.monotonic() + 600  # so that it ends at all
    while len(found := {path.name: text for path in roll.iterdir() if (text := path.read_text())}) < workers:
        assert time.monotonic() < deadline, f"only {len(found)} of {workers} workers began"
        time.sleep(0.02)
    return found


def free(cpus: int) -> None:
    """Wait until so many CPUs are free: nobody holds them any more."""
    deadline = time.monotonic() + 60
    while ray.available_resources().get("CPU", 0) < cpus:
        assert time.monotonic() < deadline, f"workers outlive their run: {ray.available_resources()}"
        time.sleep(0.1)


def test_a_driver_that_is_killed_leaves_no_worker_and_a_folder_to_go_on_with(nodes: Any, small_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    where = ["--engine", "ray", "--address", nodes.address, "--workers", "1", "--gallery", "0"]
    settings = ["--shard-tokens", "60", "--replicates", "5", "--on-error", "skip", "--by", "length"]
    command = [
        sys.executable,
        "-m",
        "headscope",
        "run",
        "--model",
        str(small_folder),
        "--measures",
        ",".join(MEASURES),
        "--out",
        str(out),
        *where,
        *settings,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if any(int(path.stem.split("-")[1]) >= 1 for path in out.glob("partial/*-*.safetensors")):
                break
            time.sleep(0.002)
        process.kill()
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    free(3)
    run = hs.run(small_folder, "sampler", MEASURES, out=out, on_error="skip", resume=True, **SETTINGS)
    assert run.results.manifest["counts"]["resumed_shards"] > 0
    hs.run(small_folder, "sampler", MEASURES, out=tmp_path / "local", on_error="skip", **SETTINGS)
    assert files(out) == files(tmp_path / "local")


def refused(model: Path, **settings: Any) -> str:
    with pytest.raises(RunError) as error:
        hs.run(model, "sampler", ["entropy"], engine="ray", workers=1, limit=3, replicates=0, gallery=0, **settings)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return str(error.value)


def test_workers_of_other_versions_are_refused(nodes: Any, small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = versions()
    monkeypatch.setattr(worker, "versions", lambda: {**here, "headscope": "0.0.7", "torch": "1.0"})
    said = refused(small_folder)
    assert f"headscope {here['headscope']} where this process has 0.0.7, torch {here['torch']} where this process has 1.0" in said
    free(3)


def test_workers_that_find_no_place_are_told_of(nodes: Any, small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    said = refused(small_folder, gpus_per_worker=2)
    # A node that another test killed may still be counted.
    assert re.search(r"could not place any of 1 workers in 0.5 s: each needs 1 CPU and 2 GPUs, and the cluster has [34] CPUs \(", said)
    assert "and 0 GPUs (0 free)" in said
    assert "workers on cuda need GPUs" in refused(small_folder, device="cuda")


def test_a_process_in_one_cluster_cannot_mean_another(nodes: Any, small_folder: Path) -> None:
    assert "not at 192.0.2.77:1" in refused(small_folder, address="192.0.2.77:1")
