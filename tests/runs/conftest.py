"""Fixtures shared by the tests of runs."""

from __future__ import annotations

import pytest

import headscope as hs
from headscope.corpora import Corpus
from headscope.models.model import Model
from helpers.galleries import DOCUMENTS, MEASURES


@pytest.fixture(scope="session")
def gallery_run(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    """A finished run with a gallery. No test writes to its folder."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, out, replicates=20, gallery=24)
