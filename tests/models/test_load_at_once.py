"""Models loaded by several threads at the same time, as in a server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from headscope.models.generation import generates
from headscope.models.load import load_to_continue
from headscope.models.model import Model


def test_threads_that_load_models_at_the_same_time_get_complete_models() -> None:
    names = ["mini", "mini-decoder"] * 2
    with ThreadPoolExecutor(len(names)) as pool:
        models: list[Model] = list(pool.map(load_to_continue, names))
    assert [generates(model) for model in models] == [False, True] * 2
    assert len({model.fingerprint for model in models}) == 2
    assert models[0].whole is None
