"""Comparison of runs: differences and their intervals, against numbers worked out by hand and against the tables of the
runs.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.comparison.base import adjusted, corrected
from headscope.comparison.runs import compare, differences
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import RunError
from headscope.measures import make
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.stats.inference import Support, interval
from headscope.stats.resampled import Resampled
from headscope.views.compare import comparison
from helpers.architectures import build
from helpers.excerpts import excerpt
from helpers.families import FAMILIES

TINY = (("bert", "wordpiece"), ("gpt2", "gpt2"))
MEASURES = ["positions", "entropy", "relations", "trees", "coreference"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    return hs.run("mini", excerpt(), MEASURES, tmp_path_factory.mktemp("runs") / "trained", replicates=20, gallery=0)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    out = tmp_path_factory.mktemp("runs") / "untrained"
    return hs.run("mini", excerpt(), ["positions", "relations", "tokens"], out, weights="random", replicates=20, gallery=0)


def tiny(architecture: str, tokenizer: str) -> Model:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens))
    return Model(architecture, network, Tokenizer(tokens), *find_sites(network))


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_paired_and_independent_differences_equal_hand_computed_values() -> None:
    one = Support.of(np.ones((9, 1))), np.array([3.0])
    a = Resampled("x", column(1.0, 0.0, 2.0, 4.0), *one)
    b = Resampled("x", column(5.0, 1.0, 3.0, 5.0), *one)
    paired = differences(a, b, paired=True)
    assert (paired["a"][0], paired["b"][0], paired["difference"][0]) == (1.0, 5.0, 4.0)
    assert paired["low"][0] == paired["high"][0] == 4.0  # in every replicate, b is a plus 1
    assert (paired["p"][0], paired["documents"][0]) == (2 / 2**9, 9)  # the sign test over nine documents that agree
    independent = differences(a, b, paired=False)  # replicates 1, 2, 3 of b minus replicates 3, 1, 2 of a: -3, 3, 3
    welch = Support.of(np.ones((18, 1)))  # both have a variance of 4, so Welch's effective number of documents is 18
    expected = interval(np.array([4.0]), column(-3.0, 3.0, 3.0), welch)
    assert_allclose([independent["low"], independent["high"]], expected)
    unusable = differences(a, Resampled("x", b.values, Support.of(np.ones((5, 1))), one[1]), paired=True)
    assert unusable["difference"][0] == 4.0
    assert np.isnan(unusable["low"][0])


@pytest.mark.parametrize("name", MEASURES)
def test_tables_are_reproduced_from_the_replicates(trained: hs.Run, name: str) -> None:
    results, layout = trained.results, trained.results.layout
    measure = make(name, results.measures[name])
    place = {(id.kind, id.layer + 1, id.head + 1): number for number, id in enumerate(layout.ids())}
    found = {one.quantity: one for one in measure.resampled(results.state(name), layout)}
    for row in results[name]:
        one, at = found[row["quantity"]], place[row["kind"], row["layer"], row["head"]]
        assert one.values[0, at] == row["value"]
        assert one.n[at] == row["n"]
        assert one.support.documents[at] == row["documents"]
        low, high = one.bounds()
        assert_allclose([low[at], high[at]], [row["low"], row["high"]])


@pytest.mark.parametrize("name", ["relations", "coreference"])
def test_champions_equal_the_table_of_best_heads(trained: hs.Run, name: str) -> None:
    results, layout = trained.results, trained.results.layout
    champions = list(make(name, results.measures[name]).champions(results.state(name), layout))
    table = results[f"{name}_best"]
    assert [(one.label, one.heads) for one in champions] == list(zip(table["label"], table["heads"], strict=True))
    assert_allclose([one.scores.values[0, 0] for one in champions], table["value"])
    bounds = [one.scores.bounds() for one in champions]
    assert_allclose(np.stack(bounds)[..., 0], np.stack([table["low"], table["high"]], 1))


def test_a_run_does_not_differ_from_itself(trained: hs.Run) -> None:
    found = compare([trained.results, trained.results])
    assert found.how.startswith("paired")
    assert not found.left_out
    for table in found.differences.values():
        assert len(table) > 0
        assert set(table["difference"]) == {0.0}
        assert {bound for bound in [*table["low"], *table["high"]] if not np.isnan(bound)} == {0.0}


def test_trained_and_untrained_runs_are_compared_on_shared_measures(trained: hs.Run, untrained: hs.Run) -> None:
    found = compare([trained.results, untrained.results])
    assert found.left_out == (
        "entropy: only in trained weights",
        "trees: only in trained weights",
        "coreference: only in trained weights",
        "tokens: only in random weights",
    )
    det = found.differences["best"].where(label="det")
    assert det["b"][0] - det["a"][0] == det["difference"][0] < det["high"][0] < -0.5
    ours = trained["positions"].table.where(quantity="previous", layer=2, head=1)
    row = found.differences["heads"].where(quantity="previous", layer=2, head=1)
    assert row["a"] == ours["value"]
    assert row["low"][0] < row["difference"][0] < row["high"][0] < 0
    layer = found.differences["layers"].where(quantity="previous", layer=2)
    assert_allclose(layer["a"], trained["positions"].layers.where(quantity="previous", layer=2)["value"])


def test_models_of_different_shapes_are_compared_by_layer() -> None:
    rng = np.random.default_rng(0)
    runs = []
    for layers, heads in ((2, 3), (3, 2)):
        maps = [rng.dirichlet(np.ones(6), (layers, heads, 6)) for _ in range(4)]
        runs.append(hs.measure(maps, [["[CLS]", "a", "b", "c", "d", "[SEP]"]] * 4, ["entropy"], documents=list("wxyz")))
    found = compare([run.results for run in runs])
    assert "heads" not in found.differences
    assert "single heads" in found.left_out[0]
    assert found.how.startswith("paired")  # the documents have the same names
    assert found.differences["layers"].where(quantity="entropy")["layer"] == [1, 2]
    values = [run["entropy"].layers.where(quantity="entropy")["value"] for run in runs]
    assert_allclose(found.differences["layers"].where(quantity="entropy")["difference"], np.subtract(values[1][:2], values[0]))
    data = comparison(runs[0].results, runs[1].results)
    assert data["sites"] is None
    assert data["quantities"] == []
    assert [one["layer"] for one in data["layers"] if one["name"] == "entropy"] == [[1, 2]]


def test_given_maps_of_unnamed_texts_are_not_paired() -> None:
    maps = np.full((1, 2, 3, 3), 1 / 3)
    runs = [hs.measure([maps, maps], [["a", "b", "c"]] * 2, ["entropy"]) for _ in range(2)]
    assert compare([run.results for run in runs]).how.startswith("as two independent")


def test_sink_mass_is_compared_only_if_a_run_lists_it() -> None:
    """Rows of `sink` sum to 0.5; rows of the other runs sum to 1 up to rounding."""
    maps = np.full((1, 2, 3, 3), 1 / 3, dtype=np.float32)
    even, same, sink = (hs.measure(factor * maps, ["a", "b", "c"], ["entropy"]).results for factor in (1, 1, 0.5))
    listed = [{row["quantity"] for row in compare([even, other]).differences["overall"]} for other in (same, sink)]
    assert [sorted(quantities) for quantities in listed] == [["entropy", "max_weight"], ["entropy", "max_weight", "sink_mass"]]


def test_an_encoder_and_a_decoder_are_compared_without_layers_and_heads() -> None:
    runs = [hs.run(tiny(*names), "sampler", ["entropy", "relations"], limit=60, replicates=10, gallery=0, max_length=60) for names in TINY]
    found = compare([run.results for run in runs])
    assert not {"heads", "layers"} & set(found.differences)
    assert "layers: the runs share none" in found.left_out
    assert "det" in found.differences["best"]["label"]
    overall = found.differences["overall"].where(quantity="entropy")  # each model has one kind of heads: these two are compared
    assert_allclose(overall["a"], np.mean(runs[0]["entropy"].table.where(quantity="entropy")["value"]))
    assert_allclose(overall["b"], np.mean(runs[1]["entropy"].table.where(quantity="entropy")["value"]))
    rows = [run["relations"].table.where(label="det") for run in runs]
    assert {row["kind"][0] for row in rows} == {"encoder", "decoder"}
    data = comparison(runs[0].results, runs[1].results)
    assert data["layers"] == []
    assert len(data["best"]) == len(found.differences["best"])


def test_other_differences_between_runs_are_listed() -> None:
    sentences = hs.run("mini", "sampler", ["entropy"], limit=30, replicates=20, gallery=0)
    documents = hs.run("mini", "sampler", ["entropy"], unit="document", overlong="truncate", max_length=40, replicates=0, gallery=0)
    found = compare([sentences.results, documents.results])
    assert found.unlike == (
        f"max_length is 128 in {found.names[0]}; 40 in {found.names[1]}",
        f"limit is 30 in {found.names[0]}; not set in {found.names[1]}",
        f"entropy read a sentence at a time (too long: drop) in {found.names[0]}, "
        f"a document at a time (too long: truncate) in {found.names[1]}",
    )
    assert found.how.startswith("none: ")
    assert all(np.isnan(found.differences["layers"]["low"]))


def test_measures_with_different_options_are_left_out() -> None:
    maps = np.full((1, 2, 3, 3), 1 / 3)
    nats, bits = (hs.measure(maps, ["a", "b", "c"], {"entropy": {"base": base}, "positions": {}}) for base in ("nats", "bits"))
    assert compare([nats.results, bits.results]).left_out == ("entropy: base is nats in run (1), bits in run (2)",)
    only = hs.measure(maps, ["a", "b", "c"], {"entropy": {"base": "bits"}})
    with pytest.raises(RunError, match="no measure in common"):
        compare([nats.results, only.results])


def test_the_view_receives_arrays_over_heads(trained: hs.Run, untrained: hs.Run) -> None:
    data = comparison(trained.results, untrained.results, ("A", "B"))
    assert (data["a"]["name"], data["b"]["name"]) == ("A", "B")
    previous = next(one for one in data["quantities"] if one["name"] == "previous")
    assert len(previous["difference"]) == 144
    assert_allclose(previous["a"][12], trained["positions"].table.where(quantity="previous", layer=2, head=1)["value"][0], rtol=1e-4)
    reverse = next(one for one in data["quantities"] if one["name"] == "obj (head-to-dep)")
    assert reverse["about"] == "share of obj words that their governor attends to more than any other word does"


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    out = tmp_path_factory.mktemp("runs") / "third"
    return hs.run("mini", excerpt(), ["positions", "relations"], out, max_length=24, replicates=20, gallery=0)


def test_three_runs_are_compared_with_a_reference_or_in_all_pairs(trained: hs.Run, untrained: hs.Run, third: hs.Run) -> None:
    runs = [one.results for one in (trained, untrained, third)]
    found = compare(runs)
    assert found.names == ("trained weights, max length 128", "random weights, max length 128", "trained weights, max length 24")
    assert found.pairs == ((0, 1), (0, 2))
    assert "max_length is 128 in 1 and 2; 24 in 3" in found.unlike
    alone = compare(runs[:2])  # the differences of a pair do not depend on other runs
    rows = {name: table.where(second=found.names[1]) for name, table in found.differences.items()}
    for name in ("overall", "heads"):
        ours, theirs = (table.where(measure="positions") for table in (rows[name], alone.differences[name]))
        for column in ("a", "b", "difference", "low", "high"):
            assert ours[column] == theirs[column]
        if name == "overall":  # Holm's correction for more differences
            assert all(more >= less for more, less in zip(ours["p"], theirs["p"], strict=True))
    positions = trained["positions"].table
    overall = found.values["overall"].where(quantity="previous", run=found.names[0])
    assert_allclose(overall["value"], np.mean(positions.where(quantity="previous")["value"]))
    assert overall["low"][0] < overall["value"][0] < overall["high"][0]
    back = compare(runs, to=3)
    assert back.pairs == ((2, 0), (2, 1))
    assert_allclose(
        back.differences["overall"].where(second=found.names[0])["difference"],
        np.negative(found.differences["overall"].where(second=found.names[2])["difference"]),
    )
    every = compare(runs, pairs=True)
    assert every.pairs == ((0, 1), (0, 2), (1, 2))
    assert len(every.differences["best"]) == 3 / 2 * len(found.differences["best"])
    wide = found.wide("best")
    assert wide.columns[-5:] == [*(f"{number}: {name}" for number, name in enumerate(found.names, 1)), "2 − 1", "3 − 1"]
    det = next(row for row in wide if row["label"] == "det")
    heads = trained.results["relations_best"].where(label="det")["heads"][0]
    assert det[wide.columns[-5]].endswith(f"({heads})")
    assert det["2 − 1"].endswith("] *")
    with pytest.raises(RunError, match="no run 4 among 3"):
        compare(runs, to=4)


def test_p_values_are_those_of_a_t_test_and_corrected_by_holm() -> None:
    replicates = np.array([[0.9, 0.9, 0.9], [1.1, 1.1, 1.1], [1.0, 1.0, 1.0]])
    support = Support(np.array([10, 5, 10]), np.array([10.0, 5.0, 10.0]))
    p = adjusted(np.array([0.2228139, 0.5, 1e-7]), replicates, support)
    assert_allclose(p[0], 0.05, atol=1e-6)  # 2.228 standard errors of 0.1, with 10 degrees of freedom
    assert np.isnan(p[1:]).all()  # 5 documents are too few; a difference of 1e-7 is a rounding error
    assert [row["p"] for row in corrected([{"p": 0.01}, {"p": 0.04}, {"p": 0.03}])] == pytest.approx([0.03, 0.06, 0.06])


def test_a_comparison_of_three_runs_has_a_report_a_figure_and_tables(
    trained: hs.Run, untrained: hs.Run, third: hs.Run, tmp_path: Path
) -> None:
    found = hs.compare(trained, str(untrained.results.path), third)
    assert "warning: max_length is 128 in 1 and 2; 24 in 3" in str(found)
    assert "after Holm's correction for" in str(found)
    page = found.report(tmp_path / "three.html").read_text()
    assert "Three runs side by side" in page
    assert all(results.signature in page for results in found.comparison.results)
    assert "data-view='compare'" not in page.split("<script")[0]
    figure = found.plot("layers")
    assert len(figure.axes) >= 4
    assert {line.get_label() for line in figure.axes[0].get_lines()} == {f"{number}: {name}" for number, name in enumerate(found.names, 1)}
    runner = CliRunner()
    paths = [str(one.results.path) for one in (trained, untrained, third)]
    latex = runner.invoke(app, ["compare", *paths, "--table", "overall", "--format", "latex"])
    assert latex.stdout.count("\\\\") == 1 + len(found.wide("overall"))
    assert runner.invoke(app, ["compare", *paths, "-o", str(tmp_path / "three.svg")]).exit_code == 0
    rows = runner.invoke(app, ["compare", *paths, "--pairs", "--table", "overall", "--format", "json"])
    assert len(json.loads(rows.stdout)) == 3 * len(found.wide("overall"))
    assert "There are overall" in str(runner.invoke(app, ["compare", *paths, "--table", "colours"]).exception)


def test_the_compare_command_prints_tables_warnings_and_errors(trained: hs.Run, untrained: hs.Run, tmp_path: Path) -> None:
    a, b = str(trained.results.path), str(untrained.results.path)
    runner = CliRunner()
    shown = runner.invoke(app, ["compare", a, b, "--limit", "3"])
    assert shown.exit_code == 0
    assert "intervals: paired by document" in shown.output
    assert "warning: weights is trained in trained weights; random in random weights" in shown.output
    assert "skipped: trees: only in trained weights" in shown.output
    csv = runner.invoke(app, ["compare", a, b, "--format", "csv", "--quantity", "previous"])
    assert len(csv.stdout.splitlines()) == 145
    page = tmp_path / "compare.html"
    assert runner.invoke(app, ["compare", a, b, "-o", str(page)]).exit_code == 0
    assert "trees: only in trained weights" in page.read_text(encoding="utf-8")
    wrong = runner.invoke(app, ["compare", a, b, "--quantity", "colour"])
    assert isinstance(wrong.exception, RunError)
    assert "do not share a quantity 'colour'" in str(wrong.exception)
    (Path(b) / "states.safetensors").rename(tmp_path / "kept")
    missing = runner.invoke(app, ["compare", a, b])
    assert "states.safetensors is missing" in str(missing.exception)
    (tmp_path / "kept").rename(Path(b) / "states.safetensors")
