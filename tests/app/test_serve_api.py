"""The API of runs returns the same numbers as the tables."""

from __future__ import annotations

import csv
import io
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from headscope.app.create import create_app
from headscope.results.results import Results


def test_runs_are_listed_with_their_settings(client: TestClient, results: Results) -> None:
    first = client.get("/api/runs").json()[0]
    assert first["name"] == "first"
    assert first["model"] == "mini"
    assert first["corpus"] == "sampler"
    assert first["measures"] == ["tokens", "entropy"]
    assert first["texts"] == 8
    assert first["heads"] == 144
    assert first["signature"] == results.signature


def test_a_run_lists_its_heads_and_quantities(client: TestClient) -> None:
    run = client.get("/api/runs/first").json()
    assert run["name"] == "first"
    assert sum(site["heads"] for site in run["sites"]) == 144
    assert {quantity["measure"] for quantity in run["quantities"]} == {"tokens", "entropy"}


def test_tables_are_listed_with_their_sizes(client: TestClient, results: Results) -> None:
    listed = client.get("/api/runs/first/tables").json()
    assert [table["name"] for table in listed] == list(results)
    assert listed[0]["rows"] == len(results[listed[0]["name"]])


def test_a_table_is_returned_as_json_and_csv(client: TestClient, results: Results) -> None:
    address = "/api/runs/first/tables/tokens"
    assert client.get(address).text == results["tokens"].to_text("json")
    answer = client.get(address, params={"format": "csv", "quantity": "to_sep"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 144
    assert float(rows[91]["value"]) == results["tokens"].where(quantity="to_sep")["value"][91]
    one = client.get(address, params={"quantity": "to_sep", "head": "8-10"}).json()
    assert [(row["kind"], row["layer"], row["head"], row["quantity"]) for row in one] == [("encoder", 8, 10, "to_sep")]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("tables/none", 404),
        ("tables/..%2frun", 404),
        ("tables/tokens.parquet", 404),
        ("tables/tokens?head=99-1", 404),
        ("tables/tokens?head=x", 404),
        ("tables/tokens?format=parquet", 422),
        ("tables/tokens_layers?head=8-10", 422),
    ],
)
def test_invalid_requests_for_tables_are_refused(client: TestClient, address: str, status: int) -> None:
    answer = client.get(f"/api/runs/first/{address}")
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "remedy"}


def test_an_unknown_quantity_has_no_rows(client: TestClient) -> None:
    assert client.get("/api/runs/first/tables/tokens?quantity=nothing").json() == []


def test_an_internal_error_is_logged_and_hidden_from_the_client(caplog: pytest.LogCaptureFixture) -> None:
    broken = Results({"signature": "s", "settings": {}, "measures": {}}, {})  # without sites
    client = TestClient(create_app({"broken": broken}, {}), base_url="http://localhost")
    with caplog.at_level(logging.ERROR, "headscope.app"):
        answer = client.get("/api/runs/broken")
        page = client.get("/runs/broken")
    assert answer.status_code == page.status_code == 500
    assert set(answer.json()) == {"error", "remedy"}
    for text in (answer.text, page.text):
        assert "KeyError" not in text
        assert "Traceback" not in text
    assert "KeyError" in caplog.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_missing_table_file_is_an_error_message(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "run"
    (path / "tables").mkdir(parents=True)
    (path / "run.json").write_bytes((folder / "run.json").read_bytes())
    client = TestClient(create_app({"damaged": Results.open(path)}, {}), base_url="http://localhost")
    answer = client.get("/api/runs/damaged/tables/tokens")
    assert answer.status_code == 422
    assert "is missing" in answer.json()["error"]
