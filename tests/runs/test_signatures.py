"""Signatures of all kinds of results follow one rule: a setting is shown if it is not at its default, unless it is
declared neutral.

Signatures of studies are tested in tests/studies.
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
    """All kinds of specifications except those of studies, found by importing their modules, so that new kinds are
    included.
    """
    for package in ("engine", "runs", "replication"):
        top = importlib.import_module(f"headscope.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if module.name.rsplit(".", 1)[1] in ("spec", "given_maps", "study"):
                importlib.import_module(module.name)
    return {kind.__name__: kind for kind in kinds() if kind.__module__.startswith("headscope.") and ".studies." not in kind.__module__}


SPECS = specifications()


def test_all_specifications_are_found() -> None:
    assert set(SPECS) == {"RunSpec", "MapSpec", "ReplicationSpec"}


@pytest.mark.parametrize("kind", SPECS)
def test_default_settings_are_not_shown(kind: str) -> None:
    shows_nothing_usual(SPECS[kind])


@pytest.mark.parametrize("kind", SPECS)
def test_a_changed_setting_is_shown_or_neutral(kind: str) -> None:
    shows_what_is_changed(SPECS[kind])
    assert {*SPECS[kind].having(Role.NEUTRAL)} <= _PASSING, "a comparison would name runs by a neutral setting"


def test_flow_and_ablation_show_only_settings_that_are_not_defaults() -> None:
    """Settings that earlier versions showed only in the hash, and settings that they always showed."""
    flow = REGISTRY["flow"].make({"deletion": "listwise", "labels": "whole", "resample": "sentence"}).resolved({"trees"})
    assert flow.shown() == {"parts": "trees,agreement", "deletion": "listwise", "labels": "whole", "resample": "sentence"}
    assert REGISTRY["flow"].make({"preset": "reference", "limit": None}).resolved(set()).shown() == {
        "preset": "reference",
        "parts": "agreement",
        "limit": "none",
    }
    assert REGISTRY["flow"].make({"preset": "reference", "draw": "balanced"}).shown() == {"preset": "reference", "draw": "balanced"}
    assert REGISTRY["ablation"].make({"beams": 2}).shown() == {"beams": "2"}


def test_the_signature_contains_the_name_and_the_hash_of_each_corpus(mini: Model) -> None:
    """Also the corpus on which edge probes are scored."""
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


def test_settings_that_another_version_lacks_are_not_differences() -> None:
    """Settings that only one side has are not compared; settings that both have are."""
    now = identity(make_spec({"seed": 1}), "cpu", {"model": "m", "corpus": "c"})
    then = {
        **now,
        "settings": {name: value for name, value in now["settings"].items() if name != "preset"} | {"batch_tokens": 2048, "seed": 0},
    }
    assert differences(then, now) == ["seed was 0 and is 1"]
