"""Apps that serve small runs and tiny models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.encoding.tokenizer import Tokenizer
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.table import Table
from helpers.architectures import build
from helpers.families import FAMILIES
from helpers.serving import listening

HOST = "http://localhost:8765"


MARKUP_NAME = "<script>alert(1)<b>'\"&"


def tiny(architecture: str, tokenizer: str) -> Model:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens))
    return Model(architecture, network, Tokenizer(tokens), *find_sites(network))


@pytest.fixture(scope="session")
def bert() -> Model:
    return tiny("bert", "wordpiece")


@pytest.fixture(scope="session")
def t5() -> Model:
    return tiny("t5", "t5")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of the embedded model."""
    path = tmp_path_factory.mktemp("runs") / "first"
    hs.run("mini", "sampler", ["tokens", "entropy"], path, limit=8, replicates=20)
    return path


@pytest.fixture(scope="session")
def results(folder: Path) -> Results:
    return Results.open(folder)


@pytest.fixture(scope="session")
def crossed(folder: Path, t5: Model) -> Results:
    """A run of an encoder-decoder."""
    return hs.run(t5, "sampler", ["entropy"], folder.parent / "crossed", limit=3, replicates=5).results


@pytest.fixture(scope="session")
def markup_run(folder: Path) -> Results:
    """A run whose folder, model, corpus and signature are named with markup."""
    path = folder.parent / MARKUP_NAME
    shutil.copytree(folder, path)
    manifest = json.loads((path / "run.json").read_text())
    settings = {**manifest["settings"], "model": f"x/{MARKUP_NAME}", "corpus": [MARKUP_NAME]}
    signature = "</script><script>alert(1)</script>"
    Folder(path).write_manifest({**manifest, "settings": settings, "signature": signature, "files": {}})
    for table in (path / "tables").iterdir():
        table.write_bytes(Table(pq.read_table(table).replace_schema_metadata({"signature": signature})).to_parquet())
    return Results.open(path)


Start = Callable[..., TestClient]


@pytest.fixture(scope="session")
def start(results: Results, crossed: Results, markup_run: Results, bert: Model, t5: Model) -> Start:
    """A function that returns a client of a new app with the given limits."""

    def client(**limits: float) -> TestClient:
        runs = {"first": results, "crossed": crossed, MARKUP_NAME: markup_run}
        app = create_app(runs, {"bert": bert, "t5": t5}, Limits(**limits))  # type: ignore[arg-type]
        return TestClient(app, base_url=HOST, follow_redirects=False)

    return client


@pytest.fixture(scope="session")
def listen() -> Callable[[Any, Limits], AbstractContextManager[int]]:
    """A function that starts a real server."""
    return listening


@pytest.fixture(scope="session")
def client(start: Start) -> Iterator[TestClient]:
    with start() as client:
        yield client
