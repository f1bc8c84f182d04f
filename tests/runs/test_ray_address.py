"""Errors of the engine `ray` before a run begins, and a run that starts Ray itself."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import headscope as hs
from headscope.engine import ray_workers as cluster
from headscope.engine.spec import make_spec
from headscope.engine.worker import WorkerSetup
from headscope.errors import RunError
from helpers.small_models import save_small
from helpers.stopping import ends, waiting_run


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"engine": "ray", "address": "nowhere"}, "'nowhere' is not the address of a Ray cluster"),
        ({"engine": "ray", "address": "ray://127.0.0.1:10001"}, "is the address of a Ray client server"),
        ({"engine": "ray", "workers": 0}, "cannot start with 0 workers"),
        ({"engine": "ray", "gpus_per_worker": 1.5}, "a worker cannot have 1.5 GPUs"),
        ({"engine": "ray", "gpus_per_worker": 1, "device": "cpu"}, "contradict each other"),
        ({"engine": "ray", "device": "cuda:1"}, "device 'cuda:1' does not apply to a cluster"),
        ({"engine": "processes", "address": "auto"}, "--address does not apply to the processes engine"),
        ({"gpus_per_worker": 1}, "--gpus-per-worker does not apply to the local engine"),
        ({"engine": "slurm"}, "engine 'slurm' is unknown. Use one of local, processes, ray"),
    ],
)
def test_invalid_settings_are_refused_before_a_model_is_loaded(settings: dict[str, Any], says: str) -> None:
    if "address" in settings and settings["engine"] == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'headscope[ray]'")
    with pytest.raises(RunError) as error:
        hs.run("/no/such/model", "sampler", **settings)
    assert says in str(error.value)


def test_the_error_without_ray_contains_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"needs Ray, which is not installed. pip install 'headscope\[ray\]'"):
        hs.run("/no/such/model", "sampler", engine="ray")


def test_an_address_at_which_no_ray_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'headscope[ray]'")
    monkeypatch.setattr(cluster, "REACH", 0.3)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with pytest.raises(RunError, match=rf"nothing answers at 127.0.0.1:{port} \(Connection refused\)"):
            hs.run("mini", engine="ray", address=f"127.0.0.1:{port}")
        listener.listen()
        with pytest.raises(RunError, match=rf"nothing answers at 127.0.0.1:{port}. Check"):
            hs.run("mini", engine="ray", address=f"127.0.0.1:{port}")
        thread = threading.Thread(target=_answer, args=(listener, b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        thread.start()
        with pytest.raises(RunError, match=rf"what answers at 127.0.0.1:{port} is not Ray"):
            hs.run("mini", engine="ray", address=f"127.0.0.1:{port}")
        thread.join()


def _answer(server: socket.socket, text: bytes) -> None:
    for _ in range(2):  # the first connection was made before this thread started
        connection, _ = server.accept()
        with connection:
            connection.recv(64)
            connection.sendall(text)


def test_a_worker_refuses_a_model_that_is_missing_or_different(tmp_path: Path) -> None:
    """These are the answers of an actor on any machine."""
    model = hs.load(save_small(tmp_path / "small"))
    spec = make_spec({"model": model.name}).resolved(False, "cpu")
    start = WorkerSetup.of(spec, "cpu", torch.get_num_threads(), model)
    actor = cluster._actor()()
    what, (problem, remedy) = actor.begin({**vars(start), "settings": {**start.settings, "model": "/nowhere/small"}})
    assert what == "error"
    assert "cannot start: /nowhere/small is not a folder" in problem
    assert remedy.endswith("Every machine of the cluster must be able to read the model by this name")
    what, (problem, _) = actor.begin({**vars(start), "model": "another"})
    assert what == "error"
    assert f"({model.fingerprint}) than here (another)" in problem
    assert actor.begin(vars(start)) == ("ready", None)


def test_a_lost_head_node_ends_the_run_before_ray_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself waits for a minute and then ends the process with another message."""
    message = r"127.0.0.1:9 has not answered for 0 s. Finished shards are kept: continue with --resume"
    monkeypatch.setattr(cluster, "LOST", 0.0)
    pool = cluster.RayPool(1)
    pool._head = "127.0.0.1:9"  # where nothing listens
    killed: list[Any] = []
    pool._ray = SimpleNamespace(wait=lambda *_, **how: ([], []), kill=killed.append)
    with pytest.raises(RunError, match=message):
        pool.start_worker(WorkerSetup.of(make_spec({}), None, 1, hs.load()))
    pool._lost, pool._asked = False, -1e9
    pool._workers[1] = cluster._RayWorker("actor", ["a shard"])
    with pytest.raises(RunError, match=message):
        pool.events()
    pool.stop_worker(1)
    assert killed == [], "there must be no call to Ray: it would wait for the head node"
    with socket.create_server(("127.0.0.1", 0)) as head:
        pool._head = f"127.0.0.1:{head.getsockname()[1]}"
        pool._lost, pool._asked = False, -1e9
        pool._workers[2] = cluster._RayWorker("actor", ["a shard"])
        assert pool.events() == []


def test_ctrl_c_ends_a_ray_that_the_run_started(tmp_path: Path) -> None:
    """The run prints how to continue, and leaves no process and no file of Ray."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'headscope[ray]'")
    model, out, temporary = save_small(tmp_path / "small"), tmp_path / "run", Path("/tmp") / f"hs{os.getpid()}"
    temporary.mkdir()
    options = ["--model", str(model), "--out", str(out), "--engine", "ray", "--workers", "1", "--shard-tokens", "30", "--replicates", "5"]
    with waiting_run(tmp_path, options, TMPDIR=str(temporary)) as process:
        listening = _listening(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # like a terminal: to the run and all processes that it started
        _, errors = process.communicate()
    assert process.returncode == 130, errors.decode()
    assert errors.decode().count("\n") == 1, errors.decode()
    assert "--resume continues" in errors.decode()
    assert set(listening) == {"127.0.0.1"}, f"Ray listened beyond this machine: {listening}"
    assert not list(temporary.iterdir()), "files of Ray were left"
    temporary.rmdir()
    assert ends(process.pid), "processes were left"


def _listening(group: int) -> list[str]:
    """The addresses on which processes of a group listen."""
    members = [path for path in Path("/proc").glob("[0-9]*") if _group(path) == group]
    sockets = set()
    for path in members:
        try:
            sockets |= {str(link.readlink()).removeprefix("socket:[").removesuffix("]") for link in (path / "fd").iterdir()}
        except OSError:
            continue
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:  # the state `listening`
                digits = fields[1].partition(":")[0][-8:]
                found.append(".".join(str(int(digits[at : at + 2], 16)) for at in (6, 4, 2, 0)))
    return found


def _group(process: Path) -> int | None:
    try:
        return os.getpgid(int(process.name))
    except OSError:
        return None
