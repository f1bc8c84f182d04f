"""Random addresses and bodies: whatever is sent, the answer is never a fault of ours."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

from fastapi.testclient import TestClient

PARTS = [
    "runs",
    "first",
    "heads",
    "8-10",
    "cross",
    "api",
    "texts",
    "tables",
    "tokens",
    "static",
    "..",
    ".",
    "%2f",
    "%00",
    "%ff",
    "compare",
    "docs",
]
PARTS += [
    "<b>",
    "%3Cscript%3E",
    "é",
    "🐈",
    "%",
    "%zz",
    "a" * 300,
    "",
    "?",
    "#",
    "&a=first&b=first",
    "?format=csv",
    "?head=1-1",
    "openapi.json",
    "live",
]
VALUES: list[Any] = ["bert", "t5", "a cat", "", "\0", "🐈", "\ud800", None, 0, 1.5, [], {}, ["a"], True, "x" * 3000, "<script>"]


def test_addresses(client: TestClient) -> None:
    chance = random.Random(0)
    for _ in range(300):
        path = "/" + "/".join(chance.choices(PARTS, k=chance.randint(0, 6)))
        raw = quote(path, safe="/%?&=").encode()
        answer = client.request(chance.choice(["GET", "GET", "GET", "HEAD", "POST"]), client.base_url.copy_with(raw_path=raw))
        assert answer.status_code < 500, path


def test_bodies(client: TestClient) -> None:
    chance = random.Random(1)
    for _ in range(200):
        body = json.dumps({name: chance.choice(VALUES) for name in ("model", "text", "second", "more") if chance.random() < 0.8}).encode()
        if chance.random() < 0.3:
            place = chance.randrange(len(body) + 1)
            body = body[:place] + chance.randbytes(chance.randint(0, 5)) + body[place + chance.randint(0, 3) :]
        answer = client.post("/api/texts", content=body, headers={"Content-Type": chance.choice(["application/json", "text/plain", ""])})
        assert answer.status_code < 500, body
        if answer.status_code != 200:
            assert set(answer.json()) == {"error", "remedy"}
