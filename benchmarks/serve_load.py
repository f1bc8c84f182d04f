"""The web app under load, with a real server and real sockets on this machine: how fast it answers many users, and the
resources that it takes.

    python benchmarks/serve_load.py                 50 users for 20 seconds, without and with stalled connections
    python benchmarks/serve_load.py --users 200 --seconds 60

A user sends a sentence, reads some of its heads and a page, and starts again. Everything is bounded: users, seconds,
requests. The command prints requests per second, their durations, their statuses, and the peak memory of the server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

WORDS = ("the", "a", "old", "new", "cats", "dogs", "garden", "table", "river", "sees", "opens", "behind", "because", "and", "not", "who")
PAGES = ("/", "/api/runs", "/api/models", "/live", "/docs", "/static/start.js", "/api/runs/NAME/tables")
HOST = "127.0.0.1"


@dataclass
class Load:
    """The results of a load: the seconds of each answer by request, statuses, and errors."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    taken: float = 0.0

    def add(self, what: str, status: int, seconds: float) -> None:
        """Record an answer."""
        self.seconds.setdefault(what, []).append(seconds)
        self.statuses[status] += 1

    @property
    def all(self) -> list[float]:
        """The seconds of all answers, sorted."""
        return sorted(one for some in self.seconds.values() for one in some)

    def quantile(self, share: float) -> float:
        """The seconds within which this share of the answers arrived."""
        return self.all[min(len(self.all) - 1, int(share * len(self.all)))] if self.all else float("nan")


@dataclass(frozen=True)
class Held:
    """The resources of a process: memory in MB, now and at its peak, open files, threads."""

    memory: float
    peak: float
    files: int
    threads: int


def held(pid: int) -> Held:
    """The resources of a process, from the system (Linux)."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    memory, peak = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Held(memory, peak, len(list(Path(f"/proc/{pid}/fd").iterdir())), int(lines["Threads"]))


@contextmanager
def server(run: Path, model: str = "mini") -> Iterator[tuple[int, int]]:
    """`headscope serve` in a separate process while the context is active: its port and its process id."""
    command = [sys.executable, "-m", "headscope", "serve", str(run), "--model", model, "--port", "0"]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if "http://" not in said:
                errors.seek(0)
                raise RuntimeError(f"the server did not start: {said}{errors.read().decode()}")
            port = int(said.rpartition(":")[2].split("/")[0])
            for _ in range(600):  # until the model is loaded
                with suppress(OSError):
                    if ask(port, "POST", "/api/texts", {"model": name_of(port), "text": "one two"})[0] == 200:
                        break
                time.sleep(0.05)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)
        errors.seek(0)
        if text := errors.read().decode():
            raise RuntimeError(f"the server wrote: {text[:2000]}")


def ask(
    port: int, method: str, path: str, body: object = None, timeout: float = 60.0, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Status and body of one answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def name_of(port: int) -> str:
    """The name of the server's first model."""
    return str(json.loads(ask(port, "GET", "/api/models")[1])[0]["name"])


def crowd(port: int, users: int, seconds: float, most: int = 100_000, seed: int = 0) -> Load:
    """The load of `users` users who all start at once, until the time is over or `most` requests have been made."""
    load, lock, begun = Load(), threading.Lock(), time.monotonic()
    model, run = name_of(port), json.loads(ask(port, "GET", "/api/runs")[1])[0]["name"]
    ready = threading.Barrier(users)

    def use(number: int) -> None:
        chance = random.Random(f"{seed}/{number}")
        connection = http.client.HTTPConnection(HOST, port, timeout=60)

        def one(what: str, method: str, path: str, body: object = None) -> bytes:
            start = time.monotonic()
            try:
                connection.request(method, path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                with lock:
                    load.broken[type(error).__name__] += 1
                return b""
            with lock:
                load.add(what, answer.status, time.monotonic() - start)
            return data if answer.status == 200 else b""

        ready.wait()
        while time.monotonic() - begun < seconds and sum(load.statuses.values()) < most:
            text = " ".join(chance.choices(WORDS, k=chance.randint(3, 25))) + f" {number} {chance.randrange(10**6)}."
            sent = one("sentence", "POST", "/api/texts", {"model": model, "text": text})
            if not sent:
                time.sleep(0.05)
                continue
            found = json.loads(sent)
            for _ in range(2):
                one("head", "GET", f"/api/texts/{found['id']}/heads/{chance.choice(found['heads'])}")
            one("page", "GET", chance.choice(PAGES).replace("NAME", run))
        connection.close()

    threads = [threading.Thread(target=use, args=(number,), daemon=True) for number in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 90)
    load.taken = time.monotonic() - begun
    return load


def loris(port: int, connections: int) -> list[socket.socket]:
    """Connections that send part of a request and then nothing: half of the headers, or the headers and part of the
    body.
    """
    opened = []
    for number in range(connections):
        with suppress(OSError):
            one = socket.create_connection((HOST, port), timeout=5)
            one.sendall(b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\n" + (b"" if number % 2 else b"Content-Length: 500\r\n\r\n{"))
            opened.append(one)
    return opened


def table(load: Load, before: Held, after: Held) -> str:
    """The results as lines of text."""
    n = len(load.all)
    lines = [f"{n:,} answers in {load.taken:.1f} s: {n / load.taken:,.0f} per second"]
    lines += [f"  all: p50 {1000 * load.quantile(0.5):.0f} ms, p95 {1000 * load.quantile(0.95):.0f}, p99 {1000 * load.quantile(0.99):.0f}"]
    for what, seconds in sorted(load.seconds.items()):
        lines.append(f"  {what}: {len(seconds):,}, median {1000 * statistics.median(seconds):.0f} ms, slowest {1000 * max(seconds):.0f}")
    lines.append("  statuses: " + ", ".join(f"{status} {count:,}" for status, count in sorted(load.statuses.items())))
    lines.append(f"  broken connections: {dict(load.broken) or 'none'}")
    lines.append(f"  memory {before.memory:.0f} MB before, {after.memory:.0f} after, peak {after.peak:.0f}")
    lines.append(f"  open files {before.files} before, {after.files} after; threads {before.threads} and {after.threads}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the load and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--hostile", type=int, default=100, help="connections that stay open without completing a request")
    given = parser.parse_args(arguments)
    import headscope as hs

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        hs.run("mini", "sampler", ["tokens", "entropy"], run, limit=20, replicates=20)
        with server(run, given.model) as (port, pid):
            crowd(port, 5, 2.0)  # warm-up
            for title, hostile in (("a crowd", 0), (f"a crowd among {given.hostile} stalled connections", given.hostile)):
                before, idle = held(pid), loris(port, hostile)
                load = crowd(port, given.users, given.seconds, seed=hostile)
                for one in idle:
                    one.close()
                time.sleep(6.0)  # until connections that are kept alive are closed
                print(f"{title}: {given.users} users")
                print(table(load, before, held(pid)), flush=True)
            start = time.monotonic()
            status, _ = ask(port, "POST", "/api/texts", {"model": name_of(port), "text": "Is anybody there?"})
            print(f"one sentence afterwards: {status} in {1000 * (time.monotonic() - start):.0f} ms")


if __name__ == "__main__":
    main()
