"""Runs of surface measures compute no maps, and their numbers equal those of maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from headscope.core.state import States
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.compute import ShardRunner
from headscope.engine.plan import Plan
from headscope.measures import make
from headscope.models import capture, fused
from headscope.models.model import Model

MEASURES: list[tuple[str, dict[str, Any]]] = [
    ("positions", {"offsets": (-3, 0, 1)}),
    ("tokens", {"groups": ("cls", "sep", "punct", "word", "=the|a")}),
    ("entropy", {}),
    ("sinks", {"tokens": 12}),
    ("sequences", {}),
    ("relations", {"least": 1}),
]


@pytest.fixture(scope="module")
def texts(mini: Model) -> list[Encoded]:
    return list(Encoder(mini.tokenizer, unit="sentence", max_length=128).texts(read("sampler"), Tally()))[:24]


def states(model: Model, texts: list[Encoded], measures: list[tuple[str, dict[str, Any]]], layers: tuple[int, ...] | None = None) -> States:
    plan = Plan.make([make(name, options) for name, options in measures], model.sites, layers)
    return ShardRunner(model, plan, replicates=3, batch_tokens=300)(texts)


def assert_equal_states(found: States, expected: States) -> None:
    for name, state in expected.items():
        for key, array in state.arrays.items():
            if name == "relations":
                np.testing.assert_array_equal(found[name][key], array, err_msg=f"{name} {key}")
            else:
                np.testing.assert_allclose(found[name][key], array, rtol=1e-5, atol=1e-5, err_msg=f"{name} {key}")
    assert found.keys() == expected.keys()


@pytest.mark.parametrize("layers", [None, (2, 11)])
def test_measures_without_maps_equal_those_of_maps(
    mini: Model, texts: list[Encoded], layers: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(capture, "stream", lambda *_: pytest.fail("maps were made"))
        found = states(mini, texts, MEASURES, layers)
    with monkeypatch.context() as patch:
        patch.setitem(vars(mini), "needs_maps", "to compare")  # the cached value of the property
        expected = states(mini, texts, MEASURES, layers)
    assert_equal_states(found, expected)


def test_a_measure_that_reads_maps_changes_no_number_of_the_others(mini: Model, texts: list[Encoded]) -> None:
    both = states(mini, texts, [*MEASURES, ("keywords", {})])
    expected = states(mini, texts, MEASURES)
    assert_equal_states({name: both[name] for name in expected}, expected)


def test_a_batch_with_another_kind_of_mask_is_measured_with_maps(
    mini: Model, texts: list[Encoded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask is refused in the middle of a batch; nothing is counted twice."""
    expected = states(mini, texts, MEASURES)
    _ = mini.needs_maps
    calls = 0
    reach = fused._RowTap._reach

    def refuse(self: fused._RowTap, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 19:
            raise fused.OtherMask
        return reach(self, *given)

    monkeypatch.setattr(fused._RowTap, "_reach", refuse)
    assert_equal_states(states(mini, texts, MEASURES), expected)
    assert calls == 19


def test_a_shard_with_a_mask_that_differs_is_measured_again_with_maps(
    mini: Model, texts: list[Encoded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks of later batches are compared on the device, and the result is read at the end of the shard."""
    expected = states(mini, texts, MEASURES)
    checked = 0

    def differs(*_: object) -> torch.Tensor:
        nonlocal checked
        checked += 1
        return torch.tensor(checked == 2)  # the first is that of the longest texts, and is read at once

    monkeypatch.setattr(fused, "differs", differs)
    monkeypatch.setattr(capture, "stream", counting := _Counting(capture.stream))
    assert_equal_states(states(mini, texts, MEASURES), expected)
    assert checked > 2
    assert counting.calls == checked, "the whole shard is measured again, with maps"


class _Counting:
    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *given: Any) -> None:
        self.calls += 1
        self.function(*given)
