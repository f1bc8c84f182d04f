"""The server in a separate process, with real sockets: many users, and invalid or hostile requests."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headscope.models.load import quietly
from helpers.architectures import build
from helpers.families import FAMILIES
from serve_load import HOST, ask, crowd, held, loris, name_of, server

HEAD = b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /live HTTP/1.1\r\nHost: localhost\r\n"
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the resources of a process are read from /proc")


@pytest.fixture(scope="module")
def serving(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server with a small run and a tiny model. When it is stopped, it must end and
    must have written no errors.
    """
    model = tmp_path_factory.mktemp("served") / "tiny"
    tokenizer = FAMILIES["wordpiece"]()
    with quietly():
        build("bert", vocabulary=len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    with server(folder, str(model)) as started:
        yield started


def talk(port: int, *parts: bytes) -> bytes:
    """Send raw bytes, and return all bytes until the server closes the connection."""
    answer = b""
    with socket.create_connection((HOST, port), timeout=120) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            while len(answer) < 1_000_000 and (piece := connection.recv(65536)):
                answer += piece
        except ConnectionError:
            pass  # the server has already closed the connection
    return answer


def test_many_users_leave_no_files_threads_or_memory_behind(serving: tuple[int, int]) -> None:
    port, pid = serving
    crowd(port, 50, 1.0, most=300)  # until all caches are filled
    before, idle = held(pid), loris(port, 50)
    load = crowd(port, 50, 2.0, most=1500, seed=1)
    assert len(load.all) >= 50
    assert set(load.statuses) <= {200, 429}
    assert load.statuses[200] >= 50
    assert not load.broken
    for one in idle:
        one.close()
    for _ in range(1200):
        if held(pid).files <= before.files + 5:
            break
        time.sleep(0.1)  # idle connections are closed after 5 seconds
    after = held(pid)
    assert after.files <= before.files + 5
    assert after.threads <= before.threads + 4
    assert after.memory < before.memory + 150


PASSWD = (
    "/../../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2fetc%2fpasswd",
    "/%252e%252e%252fetc/passwd",
    "/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "/%c0%af..%c0%afetc/passwd",
    "/..\\..\\etc\\passwd",
    "/..%5c..%5cetc%5cpasswd",
    "/....//....//etc/passwd",
    "/..;/..;/etc/passwd",
    "/%uff0e%uff0e/etc/passwd",
    "/\uff0e\uff0e/etc/passwd",
    "//etc/passwd",
    "/.%00./etc/passwd",
    "/etc/passwd%00.js",
    "file:///etc/passwd",
    "http://127.0.0.1/etc/passwd",
)


@pytest.mark.parametrize("where", ["", "/static", "/runs", "/api/runs", "/api/runs/first/tables", "/api/texts/x/heads"])
def test_no_address_returns_a_file_outside_the_app(serving: tuple[int, int], where: str) -> None:
    for path in PASSWD:
        answer = talk(serving[0], b"GET " + (where + path).encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"root:" not in answer
        assert answer.split(b" ", 2)[1] in (b"400", b"404", b"422"), path


UNUSUAL: dict[str, tuple[bytes, tuple[bytes, ...]]] = {
    "HTTP/1.0": (b"GET /live HTTP/1.0\r\nHost: localhost\r\n\r\n", (b"200",)),
    "HTTP/1.0 without a host": (b"GET /live HTTP/1.0\r\n\r\n", (b"421",)),
    "HTTP/1.1 without a host": (b"GET /live HTTP/1.1\r\n\r\n", (b"400",)),
    "HTTP/2 begins": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (b"421",)),
    "HTTP/9.9": (b"GET /live HTTP/9.9\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"200", b"400")),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), (b"400",)),
    "nothing but line ends": (b"\r\n" * 40_000, (b"400", b"")),
    "two hosts": (GET + b"Host: evil.example\r\n\r\n", (b"400",)),
    "another host": (b"GET /live HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", (b"421",)),
    "another host in the address": (b"GET http://evil.example/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"404",)),
    "a host with a name inside": (b"GET /live HTTP/1.1\r\nHost: localhost@evil.example\r\nConnection: close\r\n\r\n", (b"421",)),
    "a forwarded host": (
        b"GET /live HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nConnection: close\r\n\r\n",
        (b"421",),
    ),
    "text of another site": (HEAD + b"Origin: http://evil.example\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", (b"403",)),
    "text of no site": (HEAD + b"Origin: null\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", (b"403",)),
    "a web socket": (
        GET + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n",
        (b"200",),
    ),
    "an upgrade to HTTP/2": (GET + b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: eA\r\n\r\n", (b"200",)),
    "two lengths": (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n{}", (b"400",)),
    "a length below nothing": (HEAD + b"Content-Length: -1\r\nConnection: close\r\n\r\n{}", (b"400",)),
    "a length in letters": (HEAD + b"Content-Length: 0x10\r\nConnection: close\r\n\r\n{}", (b"400",)),
    "a length of 400 digits": (HEAD + b"Content-Length: " + b"9" * 400 + b"\r\nConnection: close\r\n\r\n{}", (b"400", b"413")),
    "a length and chunks": (
        HEAD + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        (b"400", b"422"),
    ),
    "a length that is too short": (HEAD + b'Content-Length: 5\r\nConnection: close\r\n\r\n{"model": "tiny"}', (b"422",)),
    "an encoding that is not known": (HEAD + b"Transfer-Encoding: gzip\r\nConnection: close\r\n\r\n{}", (b"400", b"501")),
    "a header without an end": (GET + b"X-Long: " + b"x" * 200_000 + b"\r\n\r\n", (b"400", b"")),
    "ten thousand headers": (GET + b"X-A: b\r\n" * 10_000 + b"Connection: close\r\n\r\n", (b"200", b"400", b"")),
    "a header on two lines": (GET + b"X-A: b\r\n c\r\nConnection: close\r\n\r\n", (b"200", b"400")),
    "a header without a name": (GET + b": x\r\nConnection: close\r\n\r\n", (b"400",)),
    "a header with a nought": (GET + b"X-A: \x00\r\nConnection: close\r\n\r\n", (b"400",)),
    "a header in Latin": (GET + b"X-A: \xe9\xff\r\nCookie: \xff\r\nAccept-Language: \xc3\r\nConnection: close\r\n\r\n", (b"200",)),
    "a space before the colon": (GET + b"X-A : b\r\nConnection: close\r\n\r\n", (b"400",)),
    "an address with bytes": (b"GET /\xff\xfe\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", (b"400",)),
    "a long query": (b"GET /live?text=" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"200",)),
    "a query without an end": (b"GET /live?" + b"a=b&" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (b"400", b"")),
    "a query that is no text": (
        b"GET /compare?a=%ff%fe&b=%00&a=%c0%ae HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        (b"404",),
    ),
    "a method that is none": (b"BREW /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"405",)),
    "a method in small letters": (b"get /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"405",)),
    "CONNECT": (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"400", b"404", b"405", b"421")),
    "TRACE": (b"TRACE /live HTTP/1.1\r\nHost: localhost\r\nCookie: secret\r\nConnection: close\r\n\r\n", (b"405",)),
    "DELETE": (b"DELETE /api/runs/first HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (b"405",)),
    "a body that is no UTF-8": (HEAD + b"Content-Length: 4\r\nConnection: close\r\n\r\n\xff\xfe{}", (b"422",)),
    "JSON nested deep": (HEAD + b"Content-Length: 50000\r\nConnection: close\r\n\r\n" + b"[" * 50_000, (b"422",)),
    "a body that is a form": (
        HEAD.replace(b"application/json", b"multipart/form-data") + b"Content-Length: 1\r\nConnection: close\r\n\r\nx",
        (b"422",),
    ),
    "asked to go on first": (HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", (b"100", b"422")),
    "a range": (GET + b"Range: bytes=0-10,20-30,-5\r\nConnection: close\r\n\r\n", (b"200",)),
}


@pytest.mark.parametrize(("request_", "statuses"), UNUSUAL.values(), ids=list(UNUSUAL))
def test_unusual_requests_are_answered_or_refused(serving: tuple[int, int], request_: bytes, statuses: tuple[bytes, ...]) -> None:
    answer = talk(serving[0], request_)
    status = answer.split(b" ", 2)[1] if answer else b""
    assert status in statuses, answer[:300]
    assert b"Traceback" not in answer
    assert b"secret" not in answer


def test_very_long_texts_are_refused_or_cut_in_bounded_memory(serving: tuple[int, int]) -> None:
    port, pid = serving
    before = held(pid).peak
    body = json.dumps({"model": name_of(port), "text": "word " * 2_000_000}).encode()
    for framing in (b"Content-Length: %d\r\n\r\n" % len(body), b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body)):
        assert talk(port, HEAD + framing, body, *([b"\r\n0\r\n\r\n"] if b"chunked" in framing else [])).startswith(b"HTTP/1.1 413")
    status, content = ask(port, "POST", "/api/texts", {"model": name_of(port), "text": "word " * 200_000})
    assert status == 422
    assert json.loads(content)["error"] == "the text has 1,000,000 characters, and 200,000 are allowed"
    status, content = ask(port, "POST", "/api/texts", {"model": name_of(port), "text": "cat " * 40_000})
    assert status == 200
    assert "cut off" in json.loads(content)["note"]
    assert held(pid).peak < before + 100


def test_pipelined_requests_on_one_connection_are_all_answered(serving: tuple[int, int]) -> None:
    """All 50 requests are sent before the first answer is read."""
    answer = talk(serving[0], (GET + b"\r\n") * 49 + GET + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 50


def test_the_server_still_answers_after_all_other_tests(serving: tuple[int, int]) -> None:
    port, pid = serving
    status, content = ask(port, "POST", "/api/texts", {"model": name_of(port), "text": "the cats play"})
    assert status == 200
    assert "cats" in content.decode()
    assert held(pid).files < 100
