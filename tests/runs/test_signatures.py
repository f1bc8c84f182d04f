"""One rule for the signatures of all kinds of results: a setting is shown when it is not at its default, or is declared neutral."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

import headscope as hs
from headscope.comparison.base import _PASSING
from headscope.corpora import read
from headscope.engine.spec import make_spec
from headscope.results.signature import differences, identity, key, signature
from headscope.results.specification import Role, Specification
from headscope.studies.registry import REGISTRY


def kinds(of: type[Specification] = Specification) -> Iterator[type[Specification]]:
    for kind in of.__subclasses__():
        yield from (kind, *kinds(kind))


def specifications() -> dict[str, type[Specification]]:
    """All kinds there are, also those that nobody thought of here."""
    for package in ("engine", "runs", "studies", "replication"):
        top = importlib.import_module(f"headscope.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if module.name.rsplit(".", 1)[1] in ("spec", "given_maps", "study"):
                importlib.import_module(module.name)
    return {kind.__name__: kind for kind in kinds()}


SPECS = specifications()


def changed(annotation: Any, value: Any) -> Any:
    """Another value of a type than this one."""
    options = [option for option in get_args(annotation) if option is not type(None)]
    if get_origin(annotation) is Literal:
        return next(option for option in options if option != value)
    if get_origin(annotation) is tuple:
        some = changed(options[0], value and value[0])
        return (some,) * (1 if options[-1] is Ellipsis else len(options))
    if get_origin(annotation) is dict:
        return {"entropy": {}}
    if options and get_origin(annotation) not in (tuple, dict):
        return changed(options[0], value)
    if annotation is bool:
        return not value
    return "another" if annotation is str else (value or 0) + annotation(3)


def made(spec: Specification, hashes: dict[str, str | None] | None = None) -> tuple[str, str]:
    """The readable part of a signature, and the hash of everything."""
    contents = dict.fromkeys(spec.having(Role.CONTENT), "0123456789abcdef")
    now = identity(spec, "cpu", {**contents, **(hashes or {})})
    whole = signature(spec, now)
    assert whole.endswith(f"|run:{key(now)[:8]}")
    return whole.rpartition("|run:")[0], key(now)


def usual(kind: type[Specification]) -> Specification:
    needed = {name: 3 if field.annotation is int else "some" for name, field in kind.model_fields.items() if field.is_required()}
    return kind(**needed)


def test_all_kinds_are_there() -> None:
    assert set(SPECS) == {
        "RunSpec", "TwinsSpec", "MapSpec", "StudySpec", "FlowSpec", "AblationSpec", "AttentionProbeSpec", "HiddenStatesSpec",
        "StructuralSpec", "EdgeSpec", "KeywordSpec", "ReplicationSpec",
    }  # fmt: skip


@pytest.mark.parametrize("kind", SPECS)
def test_nothing_is_shown_of_what_is_usual(kind: str) -> None:
    """The version and what was read, nothing else."""
    spec = usual(SPECS[kind])
    assert len(made(spec)[0].split("|")) == 1 + len(spec.having(Role.CONTENT))


@pytest.mark.parametrize("kind", SPECS)
def test_a_changed_setting_is_shown_or_neutral(kind: str) -> None:
    spec = usual(SPECS[kind])
    readable, whole = made(spec)
    for name, field in SPECS[kind].model_fields.items():
        was = getattr(spec, name) if getattr(spec, name) is not None else spec.by_preset().get(name)
        other, other_whole = made(spec.model_copy(update={name: changed(field.annotation, was)}))
        if Role.NEUTRAL in field.metadata:
            assert (other, other_whole) == (readable, whole), name
            assert name in _PASSING, "a comparison would tell runs apart by it"
        elif Role.CONTENT in field.metadata:  # its content counts, not what it is called
            assert other_whole == whole, name
            content, content_whole = made(spec, {name: "fedcba9876543210"})
            (part,) = {*content.split("|")} - {*readable.split("|")}
            assert part.startswith(f"{field.title or name}:"), name
            assert part.endswith("@fedcba98"), name
            assert content_whole != whole, name
        else:
            shown = [part.split(":")[0] for part in {*other.split("|")} - {*readable.split("|")}]
            # What is usual for some settings depends on others: kept as they were, they are no longer usual.
            assert [part for part in shown if part == name or SPECS[kind].model_fields[part].default_factory is None] == [name]
            assert other_whole != whole, name


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


def test_a_corpus_by_its_name_and_hash() -> None:
    """What edge probes were scored on."""
    corpus, mini = read("sampler"), hs.load("mini")
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
