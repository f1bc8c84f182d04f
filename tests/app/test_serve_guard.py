"""Who may ask, and how much: hosts, origins, and bodies that are large, endless or slow."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headscope.app.assets import views
from headscope.app.guard import allowed_hosts, is_loopback, is_wildcard
from headscope.app.limits import Limits
from headscope.app.server import bind
from headscope.errors import RunError

Start = Callable[..., TestClient]
BODY = {"model": "bert", "text": "a cat"}


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1"])
def test_own_names(client: TestClient, host: str) -> None:
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
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/runs", "/static/start.js"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "mini" not in answer.text


def test_hosts_of_a_server_that_others_reach() -> None:
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
def test_other_sites_may_not_send(client: TestClient, origin: str) -> None:
    answer = client.post("/api/texts", json=BODY, headers={"Origin": origin})
    assert answer.status_code == 403
    assert set(answer.json()) == {"error", "remedy"}
    assert "access-control-allow-origin" not in answer.headers


def test_own_pages_and_tools_may(client: TestClient) -> None:
    assert client.post("/api/texts", json=BODY, headers={"Origin": "http://localhost:8765"}).status_code == 200
    assert client.post("/api/texts", json=BODY).status_code == 200
    assert client.post("/api/texts", json=BODY, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.options("/api/texts", headers={"Origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_and_no_more(client: TestClient, site: str) -> None:
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
def test_other_methods(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/texts").status_code == 405
    assert client.request(method, "/runs/first").status_code == 405


@pytest.fixture(scope="module")
def port(start: Start, listen: Callable[[Any, Limits], AbstractContextManager[int]]) -> Iterator[int]:
    """A real server, of little patience."""
    limits = Limits(body_bytes=10_000, body_seconds=0.7, head_seconds=0.7, answer_seconds=0.7, bodies_bytes=40_000, connections=60)
    with listen(start(**asdict(limits)).app, limits) as port:
        yield port


def talk(port: int, *parts: bytes, pause: float = 0.0, repeat: int = 1) -> tuple[bytes, float]:
    """What the server answers to raw bytes, until it closes the connection or falls silent; and how long that took."""
    begun = time.monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            for _ in range(repeat):
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)
        except OSError:
            pass  # it has heard enough
        try:
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass
    return answer, time.monotonic() - begun


HEAD = b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_says_it_is_too_large(port: int) -> None:
    answer, _ = talk(port, HEAD + b"Content-Length: 999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.split(b"\r\n\r\n")[1])["error"] == "the request is larger than 10,000 bytes"
    assert b"connection: close" in answer.lower()


def test_a_body_without_a_length_that_never_ends(port: int) -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    answer, taken = talk(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 200)
    assert taken < 5
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")  # a reset may overtake the answer
    answer, _ = talk(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 10)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("framing", [b"Content-Length: 500\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"])
def test_a_body_that_does_not_come(port: int, framing: bytes) -> None:
    answer, taken = talk(port, HEAD + framing + b"{")
    assert answer.startswith(b"HTTP/1.1 408")
    assert 0.6 < taken < 4


def test_a_body_that_drips(port: int) -> None:
    answer, taken = talk(port, HEAD + b"Content-Length: 500\r\n\r\n{", *[b" "] * 30, pause=0.05)
    assert answer.startswith(b"HTTP/1.1 408")
    assert taken < 4


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: loc", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"])
def test_a_head_that_does_not_come(port: int, begun: bytes) -> None:
    answer, taken = talk(port, begun)
    assert answer == b""
    assert 0.6 < taken < 4


def test_a_head_that_does_not_come_after_a_request_that_did(port: int) -> None:
    answer, taken = talk(port, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /live HTTP/1.1\r\n", pause=0.2)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert taken < 4


def test_an_answer_that_is_not_taken_in(port: int) -> None:
    """A visitor who asks for much and reads nothing does not hold it for ever."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", port))
        for _ in range(120):
            connection.sendall(b"GET /static/headscope.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(2)
        received = 0
        try:
            while piece := connection.recv(1 << 20):
                received += len(piece)
        except OSError:
            pass
    assert received < 120 * len(views()) / 2, "the connection was ended long before all answers"


def test_more_connections_than_there_is_room_for(port: int) -> None:
    opened = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(70)]
    time.sleep(0.2)
    refused = [connection.recv(4096) for connection in opened[-5:]]
    assert all(answer.startswith(b"HTTP/1.1 429") and b"Retry-After: 1" in answer for answer in refused)
    assert json.loads(refused[0].partition(b"\r\n\r\n")[2]) == {"error": "too many connections are open", "remedy": "Try again in a moment"}
    for connection in opened:
        connection.close()
    time.sleep(0.2)
    assert talk(port, b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0].startswith(b"HTTP/1.1 200")


def test_bodies_that_are_too_much_together(port: int) -> None:
    opened = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(6)]
    for connection in opened:
        connection.sendall(HEAD + b"Content-Length: 9500\r\n\r\n" + b" " * 9000)
    answers = [connection.recv(4096).split(b" ")[1] for connection in opened]
    assert set(answers) == {b"408", b"429"}
    for connection in opened:
        connection.close()
    body = json.dumps(BODY).encode()
    assert talk(port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)[0].startswith(b"HTTP/1.1 200")


def test_nonsense_in_the_middle_of_a_body(port: int) -> None:
    for tail in (b"zz\r\n", b"5\r\nabcdefgh\r\n", b"-1\r\n", b"ffffffffffffffffffff\r\nx", b"5;" + b"x" * 90_000):
        answer, taken = talk(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + tail)
        assert answer == b"" or answer.split(b" ")[1] in (b"400", b"408", b"413"), tail[:20]
        assert taken < 4


def test_a_body_on_a_page_is_bounded_as_well(port: int) -> None:
    answer, _ = talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_the_server_answers_while_others_drip(port: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for connection in slow:
        connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n{")
    body = json.dumps(BODY).encode()
    answer, taken = talk(port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert taken < 3
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
def test_raw_addresses(port: int, request_line: bytes) -> None:
    answer, _ = talk(port, request_line + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.split(b" ")[1] in (b"200", b"400", b"404", b"307", b"421")
    assert b"root:" not in answer


def test_a_port_that_is_taken() -> None:
    with bind("127.0.0.1", 0) as bound:
        bound.listen()
        with pytest.raises(RunError, match="--port"):
            bind("127.0.0.1", bound.getsockname()[1])
    with pytest.raises(RunError, match="no address"):
        bind("no.such.host.invalid", 0)
