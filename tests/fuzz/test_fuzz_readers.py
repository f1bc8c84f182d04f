"""Two thousand damaged inputs for all readers together, the same ones every time; `make fuzz` tries a hundred times
as many others.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from fuzz_app import judged, send
from fuzz_corpora import SEEDS, entities, judge, read_all
from fuzz_engine import Fault, Target, TooSlow, attempt, inputs, smaller
from fuzz_targets import all_targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import Mutator

from headscope.corpora import FORMATS
from headscope.errors import CorpusError

NUMBERS = {"corpus/": 70, "vectors/": 50, "maps/": 30, "spec": 50, "view": 20, "app/": 40, "model/": 6, "run/": 6}
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_every_reader_is_tried(tmp_path: Path) -> None:
    names = [target.name for target in all_targets()]
    assert {f"corpus/{format}" for format in FORMATS} <= set(names)
    assert len(names) == len(set(names))
    assert sum(next(n for group, n in NUMBERS.items() if name.startswith(group)) for name in names) > 1900


@pytest.mark.parametrize("group", NUMBERS)
def test_only_headscopes_own_errors_escape(group: str, tmp_path: Path) -> None:
    for target in all_targets(group):
        for data in target.seeds:
            assert attempt(target, data, tmp_path / "in") is None, f"a sound input of {target.name}"
        for number, data in enumerate(inputs(target, 1, 0, NUMBERS[group])):
            fault = attempt(target, data, tmp_path / "in")
            assert fault is None, f"input {number} of {target.name}: {fault.trace if fault else ''}"


def broken(data: bytes, folder: Path) -> None:
    """A reader with faults of all kinds."""
    if b"x" in data:
        raise KeyError("x")
    if b"w" in data:
        warnings.warn("take care", stacklevel=1)
    if b"s" in data:
        while True:
            pass
    if b"e" in data:
        raise CorpusError("file", 1, "")
    if b"o" in data:
        raise CorpusError("file", 1, "well said", "Do this")


@pytest.mark.parametrize(("data", "kind"), [(b"x", "KeyError"), (b"w", "UserWarning"), (b"s", "TooSlow"), (b"o", None), (b"", None)])
def test_faults_are_noticed(tmp_path: Path, data: bytes, kind: str | None) -> None:
    target = Target("broken", [b"abc"], broken)
    fault = attempt(target, b"a" + data + b"a", tmp_path, 0.2)
    assert (fault.kind if fault is not None else None) == kind


def test_inputs_are_the_same_every_time_and_different_from_each_other() -> None:
    target = Target("conllu", [SEEDS["conllu"]], broken)
    first = list(inputs(target, 3, 10, 60))
    assert first == list(inputs(target, 3, 10, 60))
    assert first[5:] == list(inputs(target, 3, 15, 60))
    assert len({*first, *inputs(target, 4, 10, 60)}) > 90
    assert all(len(data) <= 100_000 for data in first)


def test_an_input_with_a_fault_is_made_shorter(tmp_path: Path) -> None:
    target = Target("broken", [b"abc"], broken)
    data = b"abc" * 50 + b"x" + b"cba" * 50
    fault = attempt(target, data, tmp_path)
    assert isinstance(fault, Fault)
    assert smaller(target, data, fault, tmp_path, 20) == b"x"
    assert not issubclass(TooSlow, Exception)


def test_values_change_in_one_place_or_a_few() -> None:
    value = {"a": [1, 2, {"b": None}], "c": "d"}
    changed = [Mutator(f"{number}").json(json.dumps(value).encode()) for number in range(60)]
    assert len(set(changed)) > 40
    assert all(isinstance(json.loads(one), object) for one in changed)


# What hypothesis makes up, in place of what damage makes of something sound.

plain: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = plain | st.lists(plain, max_size=3) | st.dictionaries(st.sampled_from(["text", "a", "span1", "label", "id"]), plain, max_size=3)
NAMES = [
    "id",
    "text",
    "a",
    "b",
    "label",
    "question",
    "keyphrases",
    "targets",
    "tokens",
    "span1",
    "span2",
    "task",
    "title",
    "ratings",
    "sentence1",
    "passages",
    "gold",
]
spans = st.lists(st.fixed_dictionaries({"span1": st.lists(st.integers(-1, 4), max_size=3), "label": values}), max_size=2)


@pytest.mark.parametrize("format", ["jsonl", "spans", "spr", "passages"])
@QUICK
@given(entries=st.lists(st.dictionaries(st.sampled_from(NAMES), values | spans, max_size=5), max_size=2))
def test_any_json_is_read_or_refused(tmp_path: Path, format: str, entries: list[dict[str, Any]]) -> None:
    tried = Target(format, [], lambda data, folder: read_all(format, data, folder))
    fault = attempt(tried, "\n".join(map(json.dumps, entries)).encode(), tmp_path / "in")
    assert fault is None, fault and fault.trace


def cells(number: int) -> st.SearchStrategy[str]:
    """A row whose head and relation are likely to make a tree, of labels that have rules."""
    upos = st.sampled_from(["DET", "NOUN", "PROPN", "PUNCT", "ADP", "X", "AUX"])
    relation = st.sampled_from(["det", "case", "punct", "fixed", "goeswith", "flat:foreign", "conj", "nsubj", "obj", "orphan", "obl"])
    features = st.sampled_from(["_", "ExtPos=ADV", "Polarity=Neg", "Typo=Yes"])
    brackets = st.sampled_from(["_", "Entity=(1-a", "Entity=1)", "Entity=(2-a)", "Entity=2)(1-b", "SpaceAfter=No"])
    return st.builds(
        lambda upos, features, head, relation, misc: f"{number}\tw\tw\t{upos}\t_\t{features}\t{head}\t{relation}\t_\t{misc}",
        upos,
        features,
        st.integers(0, 6),
        relation,
        brackets,
    )


@QUICK
@given(rows=st.tuples(*map(cells, range(1, 7))))
def test_any_tree_is_judged(tmp_path: Path, rows: tuple[str, ...]) -> None:
    judge(("# newdoc id = d\n# sent_id = s\n# text = w\n" + "\n".join(rows) + "\n\n").encode(), tmp_path)


@QUICK
@given(marks=st.lists(st.text("()12-e[]/|= ", max_size=12), min_size=1, max_size=6))
def test_any_brackets_are_read_or_refused(tmp_path: Path, marks: list[str]) -> None:
    fault = attempt(Target("entities", [], entities), "\n".join(marks).encode(), tmp_path / "in")
    assert fault is None, fault and fault.trace


@settings(QUICK, max_examples=15)
@given(body=st.fixed_dictionaries({"model": st.just("bert") | values, "text": st.text(max_size=30) | values}, optional={"second": values}))
def test_any_body_is_answered(tmp_path: Path, body: dict[str, Any]) -> None:
    send(json.dumps(body).encode(), tmp_path)


def test_an_answer_that_tells_too_much_is_noticed() -> None:
    for status, text in ((500, "{}"), (404, "Traceback"), (404, "root:x:0"), (422, '{"detail": 1}')):
        with pytest.raises(AssertionError):
            judged(status, text)
