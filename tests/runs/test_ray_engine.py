"""The engine `ray` on a cluster of several nodes, which are really killed: files equal those of the engine `local`."""

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
    """A head node without a CPU, on which no worker can be placed, and three nodes with one CPU each. This process is
    connected to the cluster.
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
    """The function `inputs` of a model, with an error for one text."""

    def raising(self: Model, texts: Sequence[Encoded]) -> Any:
        if any(text.id == bad for text in texts):
            raise RuntimeError("the matrix is singular")
        return inputs(self, texts)

    return raising


def change_actors(monkeypatch: pytest.MonkeyPatch, bad: str, roll: Path) -> None:
    """Make actors write their node to a file in `roll`, and their models raise on a text."""
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


def test_a_killed_worker_a_lost_node_and_a_bad_text_change_no_file(
    nodes: Any, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed and later a node is removed, each while some shards are finished and all workers have assigned
    shards.
    """
    with monkeypatch.context() as patch:
        patch.setattr(Model, "inputs", failing(BAD, Model.inputs))
        hs.run(small_folder, "sampler", MEASURES, out=tmp_path / "local", on_error="skip", **SETTINGS)
    roll = tmp_path / "roll"
    roll.mkdir()
    change_actors(monkeypatch, BAD, roll)
    calls: list[float | None] = []
    killed: list[str] = []
    hired: list[Any] = []
    start_worker = cluster.RayPool.start_worker

    def recorded(pool: cluster.RayPool, start: worker.WorkerSetup) -> Any:
        hired.append(start_worker(pool, start))
        return hired[-1]

    monkeypatch.setattr(cluster.RayPool, "start_worker", recorded)

    def interfere(share: float | None, texts: int, tokens: int) -> None:
        calls.append(share)
        if not killed and len(calls) >= 4:
            node_of = nodes_by_process(roll, 2)
            killed.append(min(node_of))
            os.kill(int(killed[0]), signal.SIGKILL)
        elif len(killed) == 1 and len(hired) == 2:
            time.sleep(0.05)  # so that the loss of the worker is noticed before all shards are done
        elif len(killed) == 1:
            node_of = nodes_by_process(roll, 3)
            killed.append(max(node_of.keys() - killed))
            lost = next(node for node in nodes.worker_nodes if node.node_id == node_of[killed[1]])
            nodes.remove_node(lost, allow_graceful=False)

    run = hs.run(
        small_folder, "sampler", MEASURES, out=tmp_path / "ray", engine="ray", workers=2, on_error="skip", progress=interfere, **SETTINGS
    )
    assert len(killed) == 2, "the run was over before anything was killed"
    assert len(calls) > 20, "all shards were done before anything was killed"
    assert len(hired) == 4, "two workers, and a replacement for each"
    assert [one["text"] for one in run.results.manifest["failed"]] == [BAD]
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert ray.is_initialized(), "the run must not close a connection that it did not open"
    nodes.add_node(num_cpus=1, object_store_memory=STORE)
    wait_for_cpus(3)


def nodes_by_process(roll: Path, workers: int) -> dict[str, str]:
    """Wait until the given number of workers have loaded their model, and return the node of each process."""
    deadline = time.monotonic() + 600  # so that the loop ends
    while len(found := {path.name: text for path in roll.iterdir() if (text := path.read_text())}) < workers:
        assert time.monotonic() < deadline, f"only {len(found)} of {workers} workers began"
        time.sleep(0.02)
    return found


def wait_for_cpus(cpus: int) -> None:
    """Wait until the given number of CPUs are free."""
    deadline = time.monotonic() + 60
    while ray.available_resources().get("CPU", 0) < cpus:
        assert time.monotonic() < deadline, f"workers outlive their run: {ray.available_resources()}"
        time.sleep(0.1)


def test_a_killed_driver_leaves_no_worker_and_its_run_can_be_resumed(nodes: Any, small_folder: Path, tmp_path: Path) -> None:
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
    wait_for_cpus(3)
    run = hs.run(small_folder, "sampler", MEASURES, out=out, on_error="skip", resume=True, **SETTINGS)
    assert run.results.manifest["counts"]["resumed_shards"] > 0
    hs.run(small_folder, "sampler", MEASURES, out=tmp_path / "local", on_error="skip", **SETTINGS)
    assert files(out) == files(tmp_path / "local")


def refused(model: Path, **settings: Any) -> str:
    """The message of the error that ends a run."""
    with pytest.raises(RunError) as error:
        hs.run(model, "sampler", ["entropy"], engine="ray", workers=1, limit=3, replicates=0, gallery=0, **settings)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return str(error.value)


def test_workers_of_other_versions_are_refused(nodes: Any, small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = versions()
    monkeypatch.setattr(worker, "versions", lambda: {**here, "headscope": "0.0.7", "torch": "1.0"})
    message = refused(small_folder)
    assert f"headscope {here['headscope']} where this process has 0.0.7, torch {here['torch']} where this process has 1.0" in message
    wait_for_cpus(3)


def test_an_error_reports_workers_that_cannot_be_placed(nodes: Any, small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    message = refused(small_folder, gpus_per_worker=2)
    # A node that another test killed may still be counted.
    assert re.search(r"could not place any of 1 workers in 0.5 s: each needs 1 CPU and 2 GPUs, and the cluster has [34] CPUs \(", message)
    assert "and 0 GPUs (0 free)" in message
    assert "workers on cuda need GPUs" in refused(small_folder, device="cuda")


def test_a_process_connected_to_one_cluster_cannot_use_another(nodes: Any, small_folder: Path) -> None:
    assert "not at 192.0.2.77:1" in refused(small_folder, address="192.0.2.77:1")
