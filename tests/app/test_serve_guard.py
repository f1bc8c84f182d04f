"""Which requests are accepted: hosts, origins, and bodies that are large, endless or slow."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headscope.app.guard import allowed_hosts, is_loopback, is_wildcard
from headscope.app.limits import Limits
from headscope.app.pages import views
from headscope.app.server import bind
from headscope.errors import RunError

Start = Callable[..., TestClient]
BODY = {"model": "bert", "text": "a cat"}


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1"])
def test_host_names_of_this_machine_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "192.168.0.7",
        "a@localhost:80:x",
    ],
)
def test_other_host_names_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/runs", "/static/start.js"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "mini" not in answer.text


def test_wildcard_and_loopback_addresses_are_recognised() -> None:
    assert "box.example" in allowed_hosts("box.example")
    assert is_wildcard("0.0.0.0")
    assert is_wildcard("::")
    assert not is_wildcard("127.0.0.1")
    assert is_loopback("localhost")
    assert is_loopback("127.8.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("box.example")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "https://localhost.evil.example", "http://", "x", "http://["]
)
def test_texts_sent_from_other_sites_are_refused(client: TestClient, origin: str) -> None:
    answer = client.post("/api/texts", json=BODY, headers={"Origin": origin})
    assert answer.status_code == 403
    assert set(answer.json()) == {"error", "remedy"}
    assert "access-control-allow-origin" not in answer.headers


def test_only_own_pages_and_tools_may_send_texts(client: TestClient) -> None:
    assert client.post("/api/texts", json=BODY, headers={"Origin": "http://localhost:8765"}).status_code == 200
    assert client.post("/api/texts", json=BODY).status_code == 200
    assert client.post("/api/texts", json=BODY, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.options("/api/texts", headers={"Origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_only_link_to_pages(client: TestClient, site: str) -> None:
    def status(mode: str, dest: str, path: str = "/runs/first") -> int:
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        return client.get(path, headers=headers).status_code

    assert status("navigate", "document") == 200
    assert status("navigate", "iframe") == 403
    for path in ("/", "/compare?a=first&b=first", "/runs/first", "/api/models"):
        assert [status("no-cors", "image", path), status("cors", "empty", path), status("no-cors", "script", path)] == [403] * 3
    for own in ("same-origin", "none"):
        assert client.get("/", headers={"Sec-Fetch-Site": own, "Sec-Fetch-Mode": "no-cors"}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/texts").status_code == 405
    assert client.request(method, "/runs/first").status_code == 405


BOUNDS = Limits(body_bytes=10_000, bodies_bytes=40_000, connections=60, drain_bytes=1 << 20)
SHORT_TIMEOUT = 0.7  # timeouts of the server with short timeouts, in seconds
LONG_TIMEOUT = 120  # seconds after which a test fails; no result depends on the speed of the machine


@pytest.fixture(scope="module")
def port(start: Start, listen: Callable[[Any, Limits], AbstractContextManager[int]]) -> Iterator[int]:
    """The port of a real server with short timeouts."""
    limits = replace(
        BOUNDS, body_seconds=SHORT_TIMEOUT, head_seconds=SHORT_TIMEOUT, answer_seconds=SHORT_TIMEOUT, drain_seconds=SHORT_TIMEOUT
    )
    with listen(start(**asdict(limits)).app, limits) as port:
        yield port


@pytest.fixture(scope="module")
def long_timeout_port(start: Start, listen: Callable[[Any, Limits], AbstractContextManager[int]]) -> Iterator[int]:
    """The port of a real server whose timeouts are at least as long as those of the tests."""
    limits = replace(BOUNDS, body_seconds=LONG_TIMEOUT, head_seconds=LONG_TIMEOUT, answer_seconds=LONG_TIMEOUT, drain_seconds=LONG_TIMEOUT)
    with listen(start(**asdict(limits)).app, limits) as port:
        yield port


def talk(port: int, *parts: bytes, pause: float = 0.0, then_end: bool = False) -> tuple[bytes, float]:
    """Send raw bytes. Return all bytes until the server closes the connection, and the seconds that this took."""
    begun = time.monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_TIMEOUT) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            if then_end:
                connection.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass  # the server has already closed the connection
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    return answer, time.monotonic() - begun


def readable(connections: list[socket.socket], seconds: float) -> list[socket.socket]:
    """The connections that have an answer, as soon as there is one."""
    return select.select(connections, [], [], seconds)[0]


HEAD = b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_whose_declared_length_is_too_large_is_refused(port: int) -> None:
    answer, _ = talk(port, HEAD + b"Content-Length: 999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.split(b"\r\n\r\n")[1])["error"] == "the request is larger than 10,000 bytes"
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("chunks", [10, 200])
def test_a_chunked_body_that_is_too_large_is_refused(long_timeout_port: int, chunks: int) -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    answer, _ = talk(long_timeout_port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * chunks, then_end=True)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_sends_a_large_body_before_reading_gets_the_error(long_timeout_port: int, chunked: bool) -> None:
    """Python's HTTP clients send the whole body first. 900,000 bytes are far more than the system buffers."""
    client = HTTPConnection("127.0.0.1", long_timeout_port, timeout=LONG_TIMEOUT)
    body = [b"x" * 90_000] * 10 if chunked else b"x" * 900_000
    client.request("POST", "/api/texts", body, {"Host": "localhost", "Content-Type": "application/json"}, encode_chunked=chunked)
    answer = client.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["error"] == "the request is larger than 10,000 bytes"
    client.close()


def test_the_part_that_is_read_of_a_refused_body_is_bounded(long_timeout_port: int) -> None:
    """The server reads at most 1 MiB (`drain_bytes`), then closes the connection while the client is still sending."""
    with socket.create_connection(("127.0.0.1", long_timeout_port), timeout=LONG_TIMEOUT) as connection:
        connection.sendall(HEAD + b"Content-Length: 999999999\r\n\r\n")
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 64_000_000)


@pytest.mark.parametrize("framing", [b"Content-Length: 500\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"])
def test_a_body_that_does_not_arrive_is_refused_after_a_timeout(port: int, framing: bytes) -> None:
    answer, taken = talk(port, HEAD + framing + b"{")
    assert answer.startswith(b"HTTP/1.1 408")
    assert taken > SHORT_TIMEOUT


def test_a_body_that_arrives_too_slowly_is_refused(port: int) -> None:
    answer, _ = talk(port, HEAD + b"Content-Length: 500\r\n\r\n{", *[b" "] * 30, pause=0.05)
    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: loc", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"])
def test_headers_that_do_not_arrive_end_the_connection(port: int, begun: bytes) -> None:
    answer, taken = talk(port, begun)
    assert answer == b""
    assert taken > SHORT_TIMEOUT


def test_an_incomplete_second_request_ends_the_connection(port: int) -> None:
    answer, _ = talk(port, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /live HTTP/1.1\r\n", pause=0.2)
    assert answer.count(b"HTTP/1.1 200") == 1


def server_keeps_open(port: int, connection: socket.socket) -> bool:
    """Whether the server's end of a connection is still open, according to /proc/net/tcp."""
    ends = f":{port:04X}", f":{connection.getsockname()[1]:04X}"
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(local.endswith(ends[0]) and remote.endswith(ends[1]) and state == "01" for local, remote, state in rows)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system has no /proc/net/tcp")
def test_a_client_that_reads_no_answers_is_disconnected(port: int) -> None:
    """A client that requests many files and reads none does not keep its connection for ever."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONG_TIMEOUT)
        connection.connect(("127.0.0.1", port))
        for _ in range(120):
            connection.sendall(b"GET /static/headscope.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(50 * LONG_TIMEOUT):
            if not server_keeps_open(port, connection):
                break
            time.sleep(0.02)
        received = 0
        try:
            while piece := connection.recv(1 << 20):
                received += len(piece)
        except OSError:
            pass
    assert received < 120 * len(views()) / 2, "the connection was closed long before all answers were sent"


def test_connections_above_the_limit_are_refused(long_timeout_port: int) -> None:
    opened = [socket.create_connection(("127.0.0.1", long_timeout_port), timeout=LONG_TIMEOUT) for _ in range(70)]
    refused = [connection.recv(4096) for connection in opened[-5:]]
    assert all(answer.startswith(b"HTTP/1.1 429") and b"Retry-After: 1" in answer for answer in refused)
    assert json.loads(refused[0].partition(b"\r\n\r\n")[2]) == {"error": "too many connections are open", "remedy": "Try again in a moment"}
    for connection in opened:
        connection.close()
    ask = b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answers = (talk(long_timeout_port, ask)[0][:12] for _ in range(10_000))  # until the server has noticed that they are closed
    assert next(answer for answer in answers if answer != b"HTTP/1.1 429") == b"HTTP/1.1 200"


def test_bodies_that_are_too_large_together_are_refused(long_timeout_port: int) -> None:
    """Four bodies of 9,000 bytes fit into the limit of 40,000 bytes; a fifth does not."""
    opened = [socket.create_connection(("127.0.0.1", long_timeout_port), timeout=LONG_TIMEOUT) for _ in range(6)]
    for connection in opened:
        connection.sendall(HEAD + b"Content-Length: 9500\r\n\r\n" + b" " * 9000)
    waiting = opened[:]
    for _ in range(2):
        refused = readable(waiting, LONG_TIMEOUT)[0]
        assert refused.recv(4096).startswith(b"HTTP/1.1 429")
        waiting.remove(refused)
    assert readable(waiting, 0) == []
    for connection in opened:
        connection.close()
    body = json.dumps(BODY).encode()
    ask = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    answers = (talk(long_timeout_port, ask)[0][:12] for _ in range(10_000))
    assert next(answer for answer in answers if answer != b"HTTP/1.1 429") == b"HTTP/1.1 200"


@pytest.mark.parametrize("tail", [b"zz\r\n", b"5\r\nabcdefgh\r\n", b"-1\r\n", b"ffffffffffffffffffff\r\nx", b"5;" + b"x" * 90_000])
def test_an_invalid_chunk_of_a_body_is_refused(port: int, tail: bytes) -> None:
    answer, _ = talk(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + tail)
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"408", b"413")


def test_a_large_body_sent_to_a_page_is_refused(port: int) -> None:
    answer, _ = talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_the_server_answers_while_other_bodies_are_incomplete(long_timeout_port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", long_timeout_port)) for _ in range(20)]
    for connection in slow:
        connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    body = json.dumps(BODY).encode()
    answer, _ = talk(long_timeout_port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert readable(slow, 0) == [], "the answer did not wait for the other requests"
    for connection in slow:
        connection.close()


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /runs/../../etc/passwd",
        b"GET /runs/..",
        b"GET /runs/.",
        b"GET /runs/first/heads/8-10/../../",
        b"GET /static/../page.py",
        b"GET //",
        b"GET /%00",
        b"GET /runs/%c0%ae%c0%ae",
        b"GET *",
        b"GET http://evil.example/",
    ],
)
def test_unusual_addresses_return_no_file_outside_the_app(port: int, request_line: bytes) -> None:
    answer, _ = talk(port, request_line + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.split(b" ")[1] in (b"200", b"400", b"404", b"307", b"421")
    assert b"root:" not in answer


def test_a_port_in_use_and_an_unknown_host_are_refused() -> None:
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        with pytest.raises(RunError, match="--port"):
            bind("127.0.0.1", bound.getsockname()[1])
    with pytest.raises(RunError, match="is not an address"):
        bind("no.such.host.invalid", 0)
