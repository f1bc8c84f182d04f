"""One rule for the signatures of all kinds of results: a setting is shown when it is not at its default, or is declared
neutral.

What holds of all studies is tried in tests/studies.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from headscope.comparison.base import _PASSING
from headscope.corpora import read
from headscope.engine.spec import make_spec
from headscope.models.model import Model
from headscope.results.signature import differences, identity, signature
from headscope.results.specification import Role, Specification
from headscope.studies.registry import REGISTRY
from helpers.changed_settings import shows_nothing_usual, shows_what_is_changed


def kinds(of: type[Specification] = Specification) -> Iterator[type[Specification]]:
    for kind in of.__subclasses__():
        yield from (kind, *kinds(kind))


def specifications() -> dict[str, type[Specification]]:
    """All kinds there are but those of studies, also those that nobody thought of here."""
    for package in ("engine", "runs", "replication"):
        top = importlib.import_module(f"headscope.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if module.name.rsplit(".", 1)[1] in ("spec", "given_maps", "study"):
                importlib.import_module(module.name)
    return {kind.__name__: kind for kind in kinds() if kind.__module__.startswith("headscope.") and ".studies." not in kind.__module__}


SPECS = specifications()


def test_all_kinds_are_there() -> None:
    assert set(SPECS) == {"RunSpec", "MapSpec", "ReplicationSpec"}


@pytest.mark.parametrize("kind", SPECS)
def test_nothing_is_shown_of_what_is_usual(kind: str) -> None:
    shows_nothing_usual(SPECS[kind])


@pytest.mark.parametrize("kind", SPECS)
def test_a_changed_setting_is_shown_or_neutral(kind: str) -> None:
    shows_what_is_changed(SPECS[kind])
    assert {*SPECS[kind].having(Role.NEUTRAL)} <= _PASSING, "a comparison would tell runs apart by it"


def test_what_flow_and_ablation_kept_to_themselves() -> None:
    """The parts that were in the hash alone, and those that were always printed."""
    flow = REGISTRY["flow"].make({"deletion": "listwise", "labels": "whole", "resample": "sentence"}).resolved({"trees"})
    assert flow.shown() == {"parts": "trees,agreement", "deletion": "listwise", "labels": "whole", "resample": "sentence"}
    assert REGISTRY["flow"].make({"preset": "reference", "limit": None}).resolved(set()).shown() == {
        "preset": "reference",
        "parts": "agreement",
        "limit": "none",
    }
    assert REGISTRY["flow"].make({"preset": "reference", "draw": "balanced"}).shown() == {"preset": "reference", "draw": "balanced"}
    assert REGISTRY["ablation"].make({"beams": 2}).shown() == {"beams": "2"}


def test_a_corpus_by_its_name_and_hash(mini: Model) -> None:
    """What edge probes were scored on."""
    corpus = read("sampler")
    spec = REGISTRY["edge_probe"].make({"dev": "some/where/dev.conllu", "cache": "somewhere"})
    now = identity(spec, "cpu", {"model": mini.fingerprint, "corpus": corpus.hash(), "dev": corpus.hash(), "look": None})
    parts = signature(spec, now).split("|")
    assert parts[1:4] == [
        f"model:mini@{mini.fingerprint[:8]}",
        f"corpus:sampler@{corpus.hash()[:8]}",
        f"dev:dev.conllu@{corpus.hash()[:8]}",
    ]
    assert len(parts) == 5


def test_folders_of_versions_that_counted_other_settings() -> None:
    """Settings that only one side has do not differ; what both have does."""
    now = identity(make_spec({"seed": 1}), "cpu", {"model": "m", "corpus": "c"})
    then = {
        **now,
        "settings": {name: value for name, value in now["settings"].items() if name != "preset"} | {"batch_tokens": 2048, "seed": 0},
    }
    assert differences(then, now) == ["seed was 0 and is 1"]
