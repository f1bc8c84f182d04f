"""Fixtures that tests of probes share."""

from __future__ import annotations

import pytest

from headscope.models.model import Model
from helpers.predicting import loaded


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def bert_or_gpt2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A small random model that predicts words: an encoder, then a decoder."""
    return loaded(tmp_path_factory.mktemp("models"), request.param)
