"""One run that reads the corpus in several ways: each measure has the same numbers as in a separate run."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import headscope as hs
from headscope.engine.plan import readings
from headscope.engine.spec import make_spec
from headscope.measures import make
from helpers.stopping import stopped


def test_measures_of_the_same_unit_share_a_reading() -> None:
    entropy, tokens = make("entropy", {"unit": "document"}), make("tokens")
    assert [(way.unit, sorted(way.measures)) for way in readings([tokens, entropy, make("positions")], "sentence", "drop")] == [
        ("sentence", ["positions", "tokens"]),
        ("document", ["entropy"]),
    ]


@pytest.fixture(scope="module")
def two_readings() -> hs.api.Run:
    return hs.run(
        "mini", "sampler", {"positions": {}, "entropy": {"unit": "document", "overlong": "window"}}, limit=6, replicates=20, gallery=0
    )


def test_numbers_equal_those_of_separate_runs(two_readings: hs.api.Run) -> None:
    alone = hs.run("mini", "sampler", ["positions"], limit=6, replicates=20, gallery=0)
    windows = hs.run("mini", "sampler", ["entropy"], unit="document", overlong="window", limit=6, replicates=20, gallery=0)
    for name, other in (("positions", alone), ("entropy", windows)):
        for column in ("value", "low", "high", "n"):
            assert_array_equal(two_readings.results[name][column], other.results[name][column])


def test_the_manifest_lists_each_reading(two_readings: hs.api.Run) -> None:
    first, second = two_readings.results.manifest["readings"]
    assert (first["unit"], first["texts"], first["measures"]) == ("sentence", 6, ["positions"])
    assert (second["unit"], second["overlong"], second["texts"]) == ("document", "window", 6)
    assert any("split into windows, by document" in line for line in two_readings.results.manifest["read"])
    assert "entropy.unit:document" in two_readings.signature


def test_a_resumed_run_with_several_readings_has_the_same_numbers(tmp_path: Path, two_readings: hs.api.Run) -> None:
    from headscope.runs import execute

    settings = {"measures": {"positions": {}, "entropy": {"unit": "document", "overlong": "window"}}, "limit": 6, "replicates": 20}
    spec = make_spec({**settings, "shard_tokens": 60, "batch_tokens": 60})
    stopped(spec, tmp_path / "run", 5)
    resumed = execute.execute(spec, tmp_path / "run", resume=True)
    assert resumed.manifest["counts"]["resumed_shards"] == 5
    whole = execute.execute(spec)
    for name in ("positions", "entropy"):
        assert_array_equal(resumed[name]["value"], whole[name]["value"])
        assert_array_equal(resumed[name]["low"], whole[name]["low"])
