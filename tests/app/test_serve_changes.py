"""Runs that change, break or get many requests while they are served."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import headscope as hs
from headscope.app import served_runs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.errors import RunError, StaleError
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.table import Table

Start = Callable[..., TestClient]


@pytest.fixture(scope="session")
def other(folder: Path) -> Path:
    """A run of the same measures on other texts."""
    path = folder.parent / "other"
    hs.run("mini", "sampler", ["tokens", "entropy"], path, limit=4, replicates=10)
    return path


@pytest.fixture
def place(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "run"))


def served(path: Path, **limits: int) -> TestClient:
    return TestClient(create_app({"run": Results.open(path)}, {}, Limits(**limits)), base_url="http://localhost")


def replace(path: Path, by: Path) -> None:
    shutil.rmtree(path)
    shutil.copytree(by, path)


def served_numbers(client: TestClient) -> tuple[Any, Any]:
    """The signature and the numbers that the server returns for its run."""
    run = client.get("/api/runs/run").json()
    return run["signature"], [quantity["value"] for quantity in run["quantities"]]


def test_numbers_are_always_served_with_the_signature_of_their_run(place: Path, folder: Path, other: Path) -> None:
    expected = {Results.open(path).signature: served_numbers(served(path)) for path in (folder, other)}
    assert len(expected) == 2
    client = served(place)  # the run is opened, but none of its files is read
    for now in (other, folder, other):
        replace(place, now)
        signature = Results.open(now).signature
        assert client.get("/api/runs").json()[0]["signature"] == signature
        assert served_numbers(client) == expected[signature]
        assert client.get("/api/runs/run/tables/tokens").text == Results.open(now)["tokens"].to_text("json")
        assert signature in client.get("/runs/run").text
        assert client.get("/compare?a=run&b=run").text.count(json.dumps(signature)) == 2


def test_a_run_that_is_being_written_is_answered_with_status_409(place: Path, other: Path) -> None:
    client = served(place)
    manifest = json.loads((other / "run.json").read_text())
    replace(place, other)
    Folder(place).write_manifest({**manifest, "status": "running"})
    for address in ("/api/runs/run", "/api/runs/run/tables/tokens", "/runs/run", "/compare?a=run&b=run"):
        answer = client.get(address)
        assert answer.status_code == 409
        assert str(place) not in answer.text
    assert client.get("/").status_code == 200
    Folder(place).write_manifest(manifest)
    assert served_numbers(client)[0] == manifest["signature"]
    shutil.rmtree(place)
    assert client.get("/runs/run").status_code == 409


def test_reading_from_a_run_that_was_replaced_raises_stale_error(place: Path, other: Path) -> None:
    opened, kept = Results.open(place), Results.open(place)
    assert len(kept["tokens"]) > 0
    replace(place, other)
    for late in (lambda: opened["tokens"], lambda: opened.state("tokens"), lambda: opened.gallery, opened.check):
        with pytest.raises(StaleError, match=r"has changed since it was opened\. Open it again"):
            late()
    assert len(kept["tokens"]) > 0, "a table that was read before stays available"
    shutil.rmtree(place)
    with pytest.raises(StaleError):
        _ = opened["entropy"]


def test_a_table_of_another_run_is_refused(place: Path, other: Path) -> None:
    shutil.copy(other / "tables" / "tokens.parquet", place / "tables" / "tokens.parquet")
    with pytest.raises(RunError, match=r"tokens\.parquet is damaged \(its checksum does not match\)"):
        _ = Results.open(place)["tokens"]
    manifest = json.loads((place / "run.json").read_text())
    Folder(place).write_manifest({name: value for name, value in manifest.items() if name != "files"})
    with pytest.raises(RunError, match=r"the table tokens in .* is of another run"):
        _ = Results.open(place)["tokens"]
    plain = pq.read_table(place / "tables" / "tokens.parquet").replace_schema_metadata(None)
    (place / "tables" / "tokens.parquet").write_bytes(Table(plain).to_parquet())
    assert len(Results.open(place)["tokens"]) > 0, "older versions wrote no signature into tables"


def test_a_run_with_a_damaged_gallery_still_has_a_page(place: Path) -> None:
    client = served(place)
    assert "gallery cannot be read" not in client.get("/runs/run").text
    (place / "gallery.safetensors").write_bytes(b"no gallery")
    client = served(place)
    page = client.get("/runs/run")
    assert page.status_code == 200
    assert "its gallery cannot be read" in page.text
    assert str(place.parent) not in page.text
    assert client.get("/api/runs/run").json()["texts"] == []
    with pytest.raises(RunError, match="damaged"):
        _ = Results.open(place).gallery


def test_error_messages_do_not_contain_the_path_of_a_run(place: Path) -> None:
    client = served(place)
    (place / "tables" / "tokens.parquet").write_bytes(b"x")
    (place / "states.safetensors").unlink()
    for address in ("/api/runs/run/tables/tokens", "/runs/run", "/compare?a=run&b=run"):
        answer = client.get(address)
        assert answer.status_code == 422
        assert str(place.parent) not in answer.text
    assert client.get("/api/runs/run/tables/tokens").json()["error"].startswith("run/tables/tokens.parquet is damaged")


def test_a_comparison_is_made_once_while_it_is_cached(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []
    make = served_runs._comparison_page
    monkeypatch.setattr(served_runs, "_comparison_page", lambda runs, names: made.append(names) or make(runs, names))  # type: ignore[func-returns-value]
    client = start(pages=1)
    for a, b in [("first", "crossed"), ("first", "crossed"), ("crossed", "first"), ("first", "crossed")]:
        assert client.get("/compare", params={"a": a, "b": b}).status_code == 200
    assert made == [("first", "crossed"), ("crossed", "first"), ("first", "crossed")]


def test_comparisons_do_not_block_pages_of_runs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    app = start(comparing=1, waiting=4).app
    begun, done = threading.Event(), threading.Event()
    make = served_runs._comparison_page

    def slow(*given: Any) -> Any:
        begun.set()
        done.wait(30)
        return make(*given)

    monkeypatch.setattr(served_runs, "_comparison_page", slow)

    async def visit() -> list[int]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
            assert (await client.get("/runs/first")).status_code == 200
            same = [asyncio.create_task(client.get("/compare?a=first&b=first")) for _ in range(3)]
            await asyncio.to_thread(begun.wait, 30)
            other = await client.get("/compare?a=first&b=crossed")
            ready = await client.get("/runs/first")
            waiting = asyncio.create_task(client.get("/runs/crossed"))
            await asyncio.sleep(0.2)
            full = await client.get("/api/runs/first/tables")
            done.set()
            late = [*await asyncio.gather(*same), await waiting, await client.get("/api/runs/first/tables")]
        return [answer.status_code for answer in (other, ready, full, *late)]

    assert asyncio.run(visit()) == [429, 200, 429, 200, 200, 200, 200, 200]


def test_a_cancelled_request_gets_status_503_and_is_not_logged(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = start().app
    done = threading.Event()
    monkeypatch.setattr(served_runs, "_run_page", lambda results, name: done.wait(30))
    sent: list[Any] = []
    scope = {"type": "http", "method": "GET", "path": "/runs/first", "raw_path": b"/runs/first", "query_string": b"", "root_path": ""}
    scope |= {"scheme": "http", "http_version": "1.1", "headers": [(b"host", b"localhost")]}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def visit() -> None:
        task: asyncio.Task[None] = asyncio.create_task(app(scope, receive, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.3)
        task.cancel()
        await task
        done.set()

    asyncio.run(visit())
    assert sent[0]["status"] == 503
    assert caplog.text == ""
