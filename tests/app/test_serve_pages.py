"""The served pages: content and addresses. Names are never interpreted as markup or as paths."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

import markupsafe
import pyarrow.compute as pc
import pytest
from fastapi.testclient import TestClient

from headscope.app.create import create_app
from headscope.results.results import Results
from headscope.results.table import Table

NAME = "<script>alert(1)<b>'\"&"
QUOTED_NAME = quote(NAME, safe="")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="headscope-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_index_lists_the_runs_and_has_a_box_for_texts(client: TestClient) -> None:
    page = client.get("/").text
    assert '<a href="/runs/first">first</a>' in page
    assert "tokens, entropy" in page
    assert "model:mini@" in page
    assert "/compare?a=first&amp;b=crossed" in page
    assert '<div data-view="live"></div>' in page
    assert data(page) == {"live": {"models": ["bert", "t5"], "characters": 200_000}}


def test_the_page_of_a_run_is_its_report(client: TestClient) -> None:
    answer = client.get("/runs/first")
    shown = data(answer.text)
    assert answer.status_code == 200
    assert "What the heads of mini look at" in answer.text
    assert '<div data-view="explorer"' in answer.text
    assert shown["run"]["name"] == "first"
    assert shown["head"] is None
    assert shown["served"] == "/runs/first"


@pytest.mark.parametrize(
    "address",
    ["/runs/first/heads/8-10", "/runs/first/heads/encoder/8-10", "/runs/crossed/heads/cross/2-4", "/runs/crossed/heads/decoder/1-1"],
)
def test_a_head_has_an_address(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert data(answer.text)["head"] == address.split("/heads/")[1].removeprefix("encoder/")


def test_a_head_without_a_kind_belongs_to_the_first_kind_of_the_model(crossed: Results) -> None:
    sites = [site for site in crossed.manifest["sites"] if site["kind"] != "encoder"]
    assert sites[0]["kind"] == "decoder"
    tables = {name: Table(table.arrow.filter(pc.field("kind") != "encoder")) for name, table in crossed.items()}
    client = TestClient(create_app({"gpt": Results({**crossed.manifest, "sites": sites}, tables)}, {}), base_url="http://localhost")
    assert data(client.get("/runs/gpt/heads/1-2").text)["head"] == "decoder/1-2"
    assert data(client.get("/runs/gpt/heads/cross/1-2").text)["head"] == "cross/1-2"
    assert client.get("/runs/gpt/heads/9-2").status_code == client.get("/runs/gpt/heads/encoder/1-1").status_code == 404
    rows = client.get("/api/runs/gpt/tables/entropy?quantity=entropy&head=1-2").json()
    assert [(row["kind"], row["layer"], row["head"]) for row in rows] == [("decoder", 1, 2)]


@pytest.mark.parametrize(
    "head",
    [
        "0-0",
        "99-1",
        "1-13",
        "x",
        "",
        "8-10%2f..%2f..",
        "08-10",
        "٣-١",
        "decoder/1-1",
        "cross/1-1",
        "8-10%00",
        "-1-1",
        "9" * 5000,
    ],
)
def test_invalid_heads_are_not_found(client: TestClient, head: str) -> None:
    answer = client.get(f"/runs/first/heads/{head}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        *("/runs/..%2f..", "/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/runs/first%2f..%2ffirst", "/runs/first%00", "/runs/FIRST"),
        *("/static/..%2fpage.py", "/static/page.py", "/runs/first/run.json", "/runs/first/tables/tokens.parquet", "/runs/%ff%fe"),
        *("//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/%2e%2e%2fpage.py"),
    ],
)
def test_no_file_outside_the_app_is_served(client: TestClient, path: str) -> None:
    # The raw path is sent, because the client would normalise it.
    answer = client.request("GET", client.base_url.copy_with(raw_path=path.encode()))
    assert answer.status_code in (404, 307)
    assert "root:" not in answer.text


def test_names_are_never_interpreted_as_markup(client: TestClient) -> None:
    for path in (
        "/",
        f"/runs/{QUOTED_NAME}",
        f"/runs/{QUOTED_NAME}/heads/8-10",
        f"/runs/{QUOTED_NAME}x",
        f"/runs/first/heads/{QUOTED_NAME}",
    ):
        page = client.get(path).text
        assert "<script>" not in page, path
        assert "</script>alert" not in page
        scripts = re.findall(r"<script[^>]*>", page)
        assert len(scripts) in (0, 2)
        assert all("application/json" in script or 'src="/static/start.js?v=' in script for script in scripts)
    index = client.get("/").text
    assert f'<a href="/runs/{QUOTED_NAME}">{markupsafe.escape(NAME)}</a>' in index
    assert data(client.get(f"/runs/{QUOTED_NAME}").text)["run"]["name"] == NAME
    assert data(client.get(f"/runs/{QUOTED_NAME}").text)["served"] == f"/runs/{QUOTED_NAME}"


def test_unknown_runs_and_addresses_are_reported(client: TestClient) -> None:
    page = client.get("/runs/second").text
    assert "There is no such run" in page
    assert "first, crossed" in html.unescape(page)
    reply = client.get("/api/runs/second").json()
    assert reply["error"] == "there is no such run"
    assert client.get("/api/nothing").json()["error"] == "there is nothing at this address"
    assert "There is nothing at this address" in client.get("/nothing").text


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for path in ("/", "/live", "/runs/first", "/runs/none", "/docs", "/static/start.js", "/api/runs", "/api/none", "/openapi.json"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY, path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
    assert client.head("/").status_code == 200


def test_scripts_are_cached_by_their_hash(client: TestClient) -> None:
    address = re.search(r'src="(/static/start\.js\?v=\w+)"', client.get("/").text)
    assert address is not None
    start = client.get(address[1])
    assert start.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in start.headers["cache-control"]
    views = re.search(r'from "\./(headscope\.js\?v=\w+)"', start.text)
    assert views is not None
    bundle = client.get(f"/static/{views[1]}")
    assert "immutable" in bundle.headers["cache-control"]
    assert "as start" in bundle.text
    unnamed = client.get("/static/headscope.js?v=other")
    assert unnamed.headers["cache-control"] == "no-cache"
    assert client.get("/static/headscope.js", headers={"If-None-Match": unnamed.headers["etag"]}).status_code == 304


def test_the_api_documentation_lists_all_paths_and_loads_nothing(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page


def test_the_comparison_page_shows_two_runs(client: TestClient) -> None:
    assert client.get("/compare").status_code == 422
    assert client.get("/compare?a=first").status_code == 422
    assert client.get("/compare?a=first&b=none").status_code == 404
    page = client.get("/compare?a=first&b=first").text
    assert "data-view='compare'" in page
    shown = data(page)["comparison"]
    assert shown["a"]["name"] == shown["b"]["name"] == "first"
    assert all(difference in (0, None) for quantity in shown["quantities"] for difference in quantity["difference"])
    other = client.get("/compare", params={"a": "first", "b": NAME})
    assert other.status_code == 200
    assert "<script>" not in other.text
    assert data(client.get("/compare?a=first&b=crossed").text)["comparison"]["sites"] is None
