"""Requests to the web app: bodies, addresses and headers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from fastapi.testclient import TestClient
from fuzz_engine import Target
from fuzz_runs import run_folder, tiny
from mutations import Mutator

from headscope.app.create import create_app
from headscope.results.results import Results

BODIES = [b'{"model": "bert", "text": "The cats play."}', '{"model": "bert", "text": "Ä 猫", "second": "b c"}'.encode()]
ADDRESSES = [
    b"GET\n/\nAccept: */*",
    b'GET\n/runs/run/heads/1-1\nIf-None-Match: "x"',
    b"GET\n/api/runs/run/tables/tokens?format=csv&quantity=to_sep&head=1-1\nOrigin: http://localhost",
    b"GET\n/compare?a=run&b=run\nSec-Fetch-Site: none",
    b"HEAD\n/static/headscope.js?v=1\nAccept-Encoding: gzip",
    b"GET\n/api/texts/0123456789ab/heads/1-1?rows=0:2&columns=:1\nCookie: a=b",
    b"POST\n/api/texts\nContent-Type: application/json",
    b"OPTIONS\n/openapi.json\nAccess-Control-Request-Method: POST",
]
TOKENS = (
    *(b"/", b"..", b"%2f", b"%2e%2e", b"%252e", b"%c0%af", b"%00", b"%ff", b"\\", b"?", b"#", b"&", b"=", b"//", b";", b"..;/"),
    *(b"etc/passwd", b"run.json", b"api", b"heads", b"9-9", b"cross/1-1", b"Host: ", b"Origin: null", b"Range: bytes=0-", b"\r\n"),
)


@cache
def client() -> TestClient:
    """A test client of the app, which serves a small run and a tiny model."""
    app = create_app({"run": Results.open(run_folder())}, {"bert": tiny()})
    started = TestClient(app, base_url="http://localhost:8765", follow_redirects=False)
    started.__enter__()
    return started


def judged(status: int, text: str, path: str = "/api/") -> None:
    """Assert that an answer is no server error, reveals no internals and, if it is an API error, has the right keys."""
    assert status < 500, text
    assert "Traceback" not in text
    assert str(run_folder()) not in text
    assert "root:" not in text
    if path.startswith("/api/") and status >= 400:
        assert set(json.loads(text)) == {"error", "remedy"}


def send(data: bytes, folder: Path) -> None:
    """Post a body to the only address that accepts one, and check the answer."""
    answer = client().post("/api/texts", content=data, headers={"Content-Type": "application/json"})
    judged(answer.status_code, answer.text)
    if answer.status_code == 200:
        found = answer.json()
        maps = client().get(f"/api/texts/{found['id']}/heads/{found['heads'][0]}")
        assert maps.status_code == 200
        rows, columns = map(int, maps.headers["X-Shape"].split(","))
        assert len(maps.content) == 2 * rows * columns


def ask(data: bytes, folder: Path) -> None:
    """Send a request and check the answer. The lines are the method, the address and one header each."""
    method, address, *lines = [*data.split(b"\n"), b"", b""][:12]
    name = "".join(chr(byte) for byte in method if chr(byte).isalpha())[:20] or "GET"
    raw = b"".join(bytes([byte]) if byte < 127 else b"%%%02x" % byte for byte in address if byte > 32 and byte != 35)[:4000]
    headers = [
        (key.strip(), value.strip())
        for key, mark, value in (line.partition(b":") for line in lines)
        if mark and key.strip().isalnum() and key.strip().lower() not in (b"contentlength",)
    ]
    url = client().base_url.copy_with(raw_path=b"/" + raw.lstrip(b"/"))
    answer = client().request(name, url, headers=[(key, value[:2000]) for key, value in headers if b"\x00" not in value])
    judged(answer.status_code, answer.text if "octet" not in answer.headers.get("content-type", "") else "", "")


def targets() -> list[Target]:
    """The targets of this module."""
    return [
        Target("app/bodies", BODIES, send, (b'"model"', b'"second"', b"null", b"bert"), shaped=Mutator.json, share=0.15),
        Target("app/addresses", ADDRESSES, ask, TOKENS, share=0.3),
    ]
