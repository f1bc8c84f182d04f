"""Workers as actors of Ray, on this machine or on the machines of a cluster, with or without GPUs.

Without an address, a local Ray is started, which listens only on loopback, sends no data anywhere, and ends with the
run. With an address, the run starts only its actors and leaves the cluster unchanged.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from headscope.engine.child_processes import uninterrupted
from headscope.engine.pool import Event, WorkerPool
from headscope.engine.worker import ShardJob, WorkerSetup, copied
from headscope.errors import RunError

PATIENCE = 60.0  # seconds in which at least one worker must be placed
REACH = 5.0  # seconds for an answer from an address
LOST = 20.0  # seconds without an answer after which the head counts as lost; after 60 s Ray ends this process
LEAST_STORE = 80 << 20  # minimum size in bytes of Ray's object store
STORE = 512 << 20  # its size for a local Ray
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # the start of a gRPC connection, with empty settings


@dataclass
class _RayWorker:
    """An actor, and its unanswered requests, oldest first."""

    actor: Any
    asked: list[Any] = field(default_factory=list)
    placed: bool = False


class RayPool(WorkerPool):
    """Actors of Ray. `gpus` is the number of GPUs per actor; by default a share of the available ones, unless the
    device is a CPU.
    """

    remedy = f"{WorkerPool.remedy}; Ray's logs, in /tmp/ray/session_latest/logs on the machine of the worker, may say more"

    def __init__(self, size: int, device: str | None = None, address: str | None = None, gpus: float | None = None) -> None:
        super().__init__(size, device)
        if gpus is not None and (gpus < 0 or (gpus > 1 and gpus != int(gpus))):
            raise RunError(f"a worker cannot have {gpus:g} GPUs", "Use 0, a share such as 0.5, or a whole number")
        if device is not None and device not in ("cpu", "cuda"):
            raise RunError(f"device {device!r} does not apply to a cluster", "Use cpu, or cuda: Ray says which one each worker gets")
        if device == "cpu" and gpus:
            raise RunError(f"device cpu and {gpus:g} GPUs for each worker contradict each other", "Omit one of them")
        self._address = address
        self._gpus = gpus
        self._workers: dict[Hashable, _RayWorker] = {}
        self._started = 0
        self._waiting_since = time.monotonic()
        self._folder: str | None = None  # of a local Ray
        self._connected = False  # by this run
        self._head = ""  # the address of the cluster's head
        self._asked = 0.0  # when it was last checked
        self._lost = False

    def __enter__(self) -> Self:
        self._ray = _imported()
        if self._ray.is_initialized():
            self._require_same()
        elif self._address is None:
            self._start_own()
        else:
            self._connect(self._address)
        try:
            self._head = self._ray.get_runtime_context().gcs_address
            self._choose_device()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with uninterrupted():
            for worker in list(self._workers):
                self.stop_worker(worker)
            self._leave()

    def _leave(self) -> None:
        if self._connected:
            self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start_own(self) -> None:
        """Start a local Ray. Its files, including logs, are removed with it."""
        self._folder = tempfile.mkdtemp(prefix="headscope-")
        with _loopback(), uninterrupted():
            self._init(
                address="local",
                num_cpus=self.size,
                include_dashboard=False,
                object_store_memory=max(LEAST_STORE, min(STORE, _shared_memory() // 3)),
                _temp_dir=self._folder,
            )

    def _connect(self, address: str) -> None:
        if address.startswith("ray://"):
            raise RunError(
                f"{address} is the address of a Ray client server",
                "Give HOST:PORT of the cluster's head, and start the run on a machine of it",
            )
        if address != "auto":
            _require_answer(address)
        self._init(address=address)

    def _init(self, **options: Any) -> None:
        log = logging.getLogger("ray")
        level = log.level
        log.setLevel(logging.CRITICAL)  # the errors have the relevant information
        self._ray._private.worker._worker_logs_enabled = False  # else deaths of workers, which the pool handles, would be printed
        try:
            self._ray.init(log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=False, **options)
            self._connected = True
        except (Exception, SystemExit) as error:  # Ray ends the process if it cannot connect
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            if self._address is None:
                raise RunError(
                    f"Ray cannot be started here ({said})", "Use --engine processes, or --address of a running cluster"
                ) from None
            remedy = "Give HOST:PORT of the cluster's head (see ray status), or auto, and start the run on a machine of the cluster"
            raise RunError(f"the Ray cluster at {self._address} cannot be joined ({said})", remedy) from None
        finally:
            log.setLevel(level)

    def _require_same(self) -> None:
        """Raise an error if the address is not that of the cluster to which this process is already connected, which is
        used in this case.
        """
        here = self._ray.get_runtime_context().gcs_address
        if self._address not in (None, "auto", here):
            raise RunError(
                f"this process is connected to Ray at {here}, not at {self._address}", "Call ray.shutdown() first, or omit the address"
            )

    def _choose_device(self) -> None:
        there = float(self._ray.cluster_resources().get("GPU", 0))
        if self._gpus is None:
            self._gpus = 0.0 if self.device == "cpu" else min(1.0, there / self.size)
            if self._gpus < 1:
                self._gpus = float(int(self._gpus * 100)) / 100
        if self._gpus == 0 and self.device == "cuda":
            raise RunError("workers on cuda need GPUs, and Ray knows of none", "Start its machines with --num-gpus, or use --device cpu")
        self.device = "cuda" if self._gpus else "cpu"

    def threads(self) -> int:
        """The number of threads of a worker: on a local Ray a share of the cores, as for other processes; on a cluster
        one, for the one core that Ray gives to a worker.
        """
        return max(1, (os.cpu_count() or 1) // self.size) if self._folder is not None else 1

    def start_worker(self, start: WorkerSetup) -> Hashable:
        """Request an actor from Ray; it may have to wait for resources."""
        self._require_head()
        options = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
        ray_worker = _RayWorker(self._ray.remote(_actor()).options(**options).remote())
        ray_worker.asked.append(ray_worker.actor.check_versions.remote(start.versions))
        ray_worker.asked.append(ray_worker.actor.begin.remote(vars(start)))
        self._started += 1
        self._workers[self._started] = ray_worker
        return self._started

    def give(self, worker: Hashable, job: ShardJob) -> None:
        """Send a shard."""
        ray_worker = self._workers[worker]
        ray_worker.asked.append(ray_worker.actor.do.remote(job.texts, job.measures))

    def events(self) -> list[Event]:
        """The answers that have arrived, the oldest of each worker first."""
        oldest = {ray_worker.asked[0]: worker for worker, ray_worker in self._workers.items() if ray_worker.asked}
        if not oldest:
            time.sleep(0.1)
            return []
        ready, _ = self._ray.wait(list(oldest), num_returns=1, timeout=1)
        if ready:
            ready, _ = self._ray.wait(list(oldest), num_returns=len(oldest), timeout=0)
        elif time.monotonic() - self._asked > REACH:
            self._require_head()
        events = (self._handle(oldest[answer], answer) for answer in ready)
        return [event for event in events if event is not None]

    def _require_head(self) -> None:
        """Raise an error if the cluster's head has not answered for some time. Calls to Ray would wait for it, and then
        end the process.
        """
        self._asked = time.monotonic()
        while not _answers(self._head):
            if time.monotonic() - self._asked > LOST:
                self._lost = True
                raise RunError(
                    f"the head of the Ray cluster at {self._head} has not answered for {LOST:g} s",
                    "Finished shards are kept: continue with --resume, on another cluster or with --engine local or processes",
                )
            time.sleep(1)

    def _handle(self, worker: Hashable, answer: Any) -> Event | None:
        ray_worker = self._workers[worker]
        try:
            what, said = self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            return Event(worker, "died", _why(error))
        ray_worker.asked.pop(0)
        if what == "versions":
            ray_worker.placed = True
            return None
        return Event(worker, what, copied(said) if what == "done" else said)

    def stop_worker(self, worker: Hashable) -> None:
        """End an actor on any machine."""
        ray_worker = self._workers.pop(worker)
        if not any(other.placed for other in self._workers.values()):
            self._waiting_since = time.monotonic()
        if not self._lost:
            with suppress(Exception):
                self._ray.kill(ray_worker.actor)

    def require_place(self) -> None:
        """Raise an error if Ray has not placed any worker after some time."""
        if any(ray_worker.placed for ray_worker in self._workers.values()) or time.monotonic() - self._waiting_since < PATIENCE:
            return
        total, free = self._ray.cluster_resources(), self._ray.available_resources()
        asked = f"1 CPU and {self._gpus:g} GPUs" if self._gpus else "1 CPU"
        there = f"{total.get('CPU', 0):g} CPUs ({free.get('CPU', 0):g} free) and {total.get('GPU', 0):g} GPUs ({free.get('GPU', 0):g} free)"
        raise RunError(
            f"Ray could not place any of {self.size} workers in {PATIENCE:g} s: each needs {asked}, and the cluster has {there}",
            "Wait until the cluster is free, add machines, or request less with --gpus-per-worker",
        )


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # leave CUDA_VISIBLE_DEVICES unchanged, without a warning
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise RunError("the ray engine needs Ray, which is not installed", "pip install 'headscope[ray]'") from None
    return ray


def _actor() -> type:
    """The class of actors. It is defined here so that it is sent to workers by value: a worker with another version of
    headscope can still report it.
    """

    class HeadscopeWorker:
        def __init__(self) -> None:
            self._worker: Any = None

        def check_versions(self, versions: dict[str, str]) -> tuple[str, Any]:
            from importlib.metadata import PackageNotFoundError, version
            from socket import gethostname

            different = []
            for package, wanted in versions.items():
                try:
                    found = version(package)
                except PackageNotFoundError:
                    found = "unknown"
                if found != wanted:
                    different.append(f"{package} {found} where this process has {wanted}")
            if different:
                problem = f"a worker on {gethostname()} has {', '.join(different)}"
                return "error", (problem, "Install the same versions on all machines of the cluster: others could give other numbers")
            return "versions", None

        def begin(self, start: dict[str, Any]) -> tuple[str, Any]:
            from headscope.engine.worker import Worker, WorkerSetup

            self._worker = Worker()
            what, said = self._worker.begin(WorkerSetup(**start))
            if what == "error":
                said = said[0], f"{said[1]}. Every machine of the cluster must be able to read the model by this name".lstrip(". ")
            return what, said

        def do(self, texts: list[Any], measures: frozenset[str]) -> tuple[str, Any]:
            answer: tuple[str, Any] = self._worker.do(texts, measures)
            return answer

    return HeadscopeWorker


@contextmanager
def _loopback() -> Iterator[None]:
    """Let a local Ray listen only on 127.0.0.1, which is its default on systems without multi-machine clusters."""
    import ray._private.ray_constants as constants

    name, before = constants.ENABLE_RAY_CLUSTERS_ENV_VAR, constants.ENABLE_RAY_CLUSTER
    environment = os.environ.get(name)
    os.environ[name], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        os.environ.pop(name)
        if environment is not None:
            os.environ[name] = environment


def _answers(address: str) -> bool:
    """Whether anything listens at an address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH).close()
    except OSError:
        return False
    return True


def _require_answer(address: str) -> None:
    """Raise an error unless a server that could be Ray answers. Ray itself would try for two minutes, and then end this
    process.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise RunError(f"{address!r} is not the address of a Ray cluster", "Give HOST:PORT of its head, or auto")
    remedy = "Check it, and that the cluster runs (ray status, on its head)"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), REACH) as connection:
            connection.settimeout(REACH)
            connection.sendall(_HELLO)
            answer = connection.recv(9)
    except TimeoutError:
        raise RunError(f"nothing answers at {address}", remedy) from None
    except OSError as error:
        raise RunError(f"nothing answers at {address} ({error.strerror or error})", remedy) from None
    if len(answer) < 4 or answer[3] != 4:  # settings
        raise RunError(f"what answers at {address} is not Ray", remedy)


def _why(error: Exception) -> str:
    """The reason why a worker no longer answers, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if any(sign in line.lower() for sign in ("died", "killed", "memory", "modulenotfound", "error"))]
    return f"{type(error).__name__}: {(telling or lines or ['no message'])[0][:300]}"


def _shared_memory() -> int:
    """The free bytes in shared memory, where Ray keeps its object store."""
    try:
        return shutil.disk_usage("/dev/shm").free
    except OSError:
        return STORE
