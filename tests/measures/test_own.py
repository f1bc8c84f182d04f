"""The page on custom measures: its examples are short, run, give right numbers and obey the laws. Only what the user
names is imported.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.batch import WORD
from headscope.core.document import Word
from headscope.engine.spec import RunSpec, make_spec
from headscope.errors import HeadscopeWarning, MeasureError, RunError
from headscope.measures import REGISTRY, Entropy, HeadMeans, MapBatch, Measure
from headscope.measures.own import _FROM, OWN, find, named
from helpers.worlds import Text, World, run, worlds
from laws.test_laws import (
    test_a_glimpse_at_merged_states_equals_the_table,
    test_merge_is_commutative_and_associative_and_start_is_neutral,
    test_replicates_equal_resampled_documents_and_documents_are_counted,
    test_sharding_batch_size_padding_and_order_do_not_change_the_state,
    test_tables_are_pure_and_states_are_restored_exactly_from_disk,
    uniform,
)

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-measure.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
LAWS = [
    test_a_glimpse_at_merged_states_equals_the_table,
    test_replicates_equal_resampled_documents_and_documents_are_counted,
    test_merge_is_commutative_and_associative_and_start_is_neutral,
    test_sharding_batch_size_padding_and_order_do_not_change_the_state,
    test_tables_are_pure_and_states_are_restored_exactly_from_disk,
]
del test_a_glimpse_at_merged_states_equals_the_table  # run below on the example; pytest must not run it again on the registry
del test_replicates_equal_resampled_documents_and_documents_are_counted
del test_merge_is_commutative_and_associative_and_start_is_neutral
del test_sharding_batch_size_padding_and_order_do_not_change_the_state
del test_tables_are_pure_and_states_are_restored_exactly_from_disk


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "reach.py"
    path.write_text(CODE[0], encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def reach(file: Path) -> type[Measure]:
    return find(f"{file}:Reach")


def test_the_example_has_at_most_40_lines() -> None:
    assert len(CODE[0].splitlines()) <= 40


def test_the_other_examples_of_the_page_run(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(file.parent))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in CODE[1:]:
        exec(code.replace('"sampler", [', '"sampler", limit=4, replicates=5, gallery=0, measures=['), names)
    assert Path("far.pdf").stat().st_size > 1000
    del sys.modules["reach"]


def plainly(text: Text, a: np.ndarray, far: int) -> tuple[list[float], list[float]]:
    """Return the distance and the share of far words, one value per row."""
    words = [i for i, role in enumerate(text.roles) if role == WORD]
    distances, shares = [], []
    for i in words:
        mass = max(sum(a[i, j] for j in words), 1e-9)
        distances.append(sum(a[i, j] * abs(i - j) for j in words) / mass)
        shares.append(sum(a[i, j] for j in words if abs(i - j) > far) / mass)
    return distances, shares


@given(world=worlds())
@settings(max_examples=25, deadline=None)
def test_the_example_equals_a_plain_computation(reach: type[Measure], world: World) -> None:
    measure = reach(far=2)  # type: ignore[call-arg]
    table = measure.tables(run(measure, world, [world.texts]), world.layout)["reach"]
    for layer, head, quantity, value, n, baseline in zip(
        *(table[name] for name in ("layer", "head", "quantity", "value", "n", "baseline")), strict=True
    ):
        which = ["distance", "far"].index(quantity)
        found = [plainly(text, text.maps[layer - 1, head - 1], 2)[which] for text in world.texts]
        even = [plainly(text, uniform(text), 2)[which] for text in world.texts]
        assert n == len(world.texts)
        assert_allclose(value, np.mean([np.mean(rows) for rows in found]), rtol=1e-4, atol=2e-6)
        assert_allclose(baseline, np.mean([np.mean(rows) for rows in even]), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("test_"))
def test_the_example_obeys_the_laws(law: Any, reach: type[Measure], tmp_path_factory: pytest.TempPathFactory) -> None:
    more = {"tmp_path_factory": tmp_path_factory} if "disk" in law.__name__ else {}
    law(measure=reach(), **more)


@pytest.fixture(scope="module")
def repeats(tmp_path_factory: pytest.TempPathFactory) -> type[Measure]:
    path = tmp_path_factory.mktemp("own") / "repeats.py"
    path.write_text(next(code for code in CODE if "class Repeats" in code), encoding="utf-8")
    return find(f"{path}:Repeats")


def test_the_example_of_positions_and_kinds_equals_values_worked_out_by_hand(repeats: type[Measure]) -> None:
    """`The` (row 1) gives 0.4 to `the` (column 3), which gives 0.1 back. `cat` and the special tokens do not count,
    although `[SEP]` occurs twice. The second text is shorter and repeats no word.
    """
    maps = np.full((1, 1, 6, 6), 0.1)
    maps[0, 0, 1, 3] = 0.4
    tokens, roles = ["[CLS]", "The", "cat", "the", "[SEP]", "[SEP]"], ["cls", "word", "word", "word", "sep", "sep"]
    run = hs.measure([maps, maps[..., :3, :3]], [tokens, tokens[:3]], [repeats], roles=[roles, roles[:3]])
    (row,) = run["repeats"].table
    assert row["value"] == pytest.approx((0.4 + 0.1) / 2)
    assert row["baseline"] == pytest.approx(1 / 6)
    assert row["n"] == 1


@given(world=worlds())
@settings(max_examples=25, deadline=None)
def test_the_example_of_positions_and_kinds_equals_a_plain_computation(repeats: type[Measure], world: World) -> None:
    measure = repeats()
    table = measure.tables(run(measure, world, [world.texts]), world.layout)["repeats"]
    for kind, layer, head, value, n in zip(*(table[name] for name in ("kind", "layer", "head", "value", "n")), strict=True):
        assert kind == "encoder"
        means = []
        for text in world.texts:
            words = [i for i, role in enumerate(text.roles) if role == WORD]
            others = {i: [j for j in words if j != i and text.forms[i].lower() == text.forms[j].lower()] for i in words}
            rows = [sum(text.maps[layer - 1, head - 1][i, j] for j in found) for i, found in others.items() if found]
            means += [np.mean(rows)] if rows else []
        assert n == len(means)
        assert_allclose(value, np.mean(means) if means else np.nan, rtol=1e-4, atol=2e-6)


def test_a_measure_that_counted_nothing_warns(repeats: type[Measure], tmp_path: Path) -> None:
    maps = np.full((1, 2, 3, 3), 1 / 3)
    expected = "repeats counted nothing: n is 0 for every head. Check that the texts have what it looks for (at level token)"
    with pytest.warns(HeadscopeWarning, match=re.escape(expected)) as issued:
        run = hs.measure(maps, ["a", "b", "c"], ["entropy", repeats], out=tmp_path / "run")
    assert [warning.filename for warning in issued] == [__file__]
    assert len(run.warnings) == 1, "entropy counted a text and must not warn"
    assert f"warning: {expected}" in CliRunner().invoke(app, ["show", str(tmp_path / "run")]).output
    assert expected in run.report().read_text(encoding="utf-8")


def test_labels_with_too_few_cases_have_a_separate_warning() -> None:
    tree = [Word("a", head=2, relation="x"), Word("b", head=0, relation="root")]
    with pytest.warns(HeadscopeWarning, match=r"relations lists no label: none has 20 cases \(the most frequent has 1\)"):
        hs.measure(np.full((1, 1, 2, 2), 0.5), ["a", "b"], ["relations"], words=[0, 1], annotation=tree, replicates=0)


def test_a_measure_named_by_file_and_its_instance_give_the_same_results(file: Path, reach: type[Measure]) -> None:
    how: dict[str, Any] = {"limit": 6, "replicates": 5, "gallery": 0}
    by_file = hs.run("mini", "sampler", {f"{file}:Reach": {"far": 3}}, **how)
    by_instance = hs.run("mini", "sampler", [reach(far=3)], **how)  # type: ignore[call-arg]
    assert by_file.measures == by_instance.measures == ["reach"]
    assert by_file["reach"].table["value"] == by_instance["reach"].table["value"]
    assert by_file.results.manifest["identity"] == by_instance.results.manifest["identity"]
    assert by_file["reach"].plot().axes
    assert by_file.signature.count("reach.far:3") == 1


def test_a_worker_finds_the_measures_of_its_specification(file: Path) -> None:
    """As in another process, the specification arrives as plain values, and no custom measure is registered."""
    chosen, own = named([f"{file}:Reach"], REGISTRY)
    sent = make_spec({"measures": chosen}, own=own).model_dump()
    OWN.clear()
    _FROM.clear()
    assert [measure.name for measure in RunSpec.model_validate(sent).build_measures()] == ["reach"]


def test_a_class_of_main_cannot_be_sent_to_other_processes() -> None:
    typed = type("Typed", (_Taken,), {"name": "typed", "__module__": "__main__"})
    with pytest.raises(MeasureError, match="Typed is only known to this process"):
        hs.run("mini", "sampler", [dataclass(frozen=True, kw_only=True)(typed)], engine="processes", gallery=0)


def test_resuming_accepts_the_same_measure_and_refuses_a_changed_one(tmp_path: Path) -> None:
    own = tmp_path / "reach.py"
    own.write_text(CODE[0], encoding="utf-8")
    how: dict[str, Any] = {"out": tmp_path / "R", "limit": 4, "replicates": 5, "gallery": 0}
    first = hs.run("mini", "sampler", [f"{own}:Reach"], **how)
    again = hs.run("mini", "sampler", [f"{own}:Reach"], resume=True, **how)
    assert again["reach"].table["value"] == first["reach"].table["value"]
    own.write_text(CODE[0].replace("1e-9", "1e-8"), encoding="utf-8")
    with pytest.raises(RunError, match="reach was"):
        hs.run("mini", "sampler", [f"{own}:Reach"], resume=True, **how)


@dataclass(frozen=True, kw_only=True)
class _Taken(HeadMeans):
    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "one that is there"

    def quantities(self) -> tuple[str, ...]:
        return ("one",)

    def observe(self, batch: MapBatch) -> tuple[torch.Tensor, np.ndarray]:
        return batch.weights.sum((-1, -2))[:, None], batch.queries.lengths[:, None]


class _Bare(_Taken):
    name = "bare"


@dataclass(frozen=True, kw_only=True)
class _Nameless(_Taken):
    name: ClassVar[str] = "two words"


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (["nowhere.py:Reach"], "nowhere.py: there is no such file"),
        (["no.such.module:Reach"], "cannot be imported"),
        (["json:Reach"], "json has no 'Reach'"),
        (["json:JSONDecoder"], "'JSONDecoder' is not a measure"),
        ([HeadMeans], "Implement observe, quantities"),
        ([_Taken], "there is already a measure 'entropy'"),
        ([_Bare], "_Bare is not a frozen dataclass"),
        ([_Nameless], "has no name or no summary"),
        (["reach_of_nobody"], "named by its file and class"),
    ],
)
def test_invalid_measures_are_refused(measures: list[Any], said: str) -> None:
    with pytest.raises(MeasureError, match=re.escape(said)):
        hs.run("mini", "sampler", measures, gallery=0)


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    with pytest.raises(MeasureError, match="ZeroDivisionError"):
        find(f"{path}:Reach")


def test_built_in_measures_are_resolved_to_their_names() -> None:
    assert named([Entropy(base="bits"), "tokens"], REGISTRY) == ({"entropy": {"base": "bits"}, "tokens": {}}, ())


def test_a_file_that_the_user_did_not_name_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "unasked.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(RunError, match="not requested"):
        make_spec({"own": [f"{path}:Reach"]}, "study.toml")
    with pytest.raises(MeasureError, match="unknown"):
        make_spec({"measures": {f"{path}:Reach": {}}}, "study.toml")
    assert not (tmp_path / "ran").exists()
    assert "Reach" not in OWN
