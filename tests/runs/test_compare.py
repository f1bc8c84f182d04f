"""Two runs compared: differences and their intervals, against numbers worked out by hand and against the runs' own tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from architectures import build
from families import FAMILIES
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import RunError
from headscope.measures import make
from headscope.measures.base import Resampled
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.runs.compare import compare, differences, layout_of
from headscope.views.compare import comparison

TINY = (("bert", "wordpiece"), ("gpt2", "gpt2"))
MEASURES = ["positions", "entropy", "relations", "trees", "coreference"]
LIMIT = 160  # texts


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    return hs.run("mini", "sampler", MEASURES, tmp_path_factory.mktemp("runs") / "trained", replicates=60, gallery=0, limit=LIMIT)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    out = tmp_path_factory.mktemp("runs") / "untrained"
    return hs.run("mini", "sampler", ["positions", "relations", "tokens"], out, weights="random", replicates=60, gallery=0, limit=LIMIT)


def tiny(architecture: str, tokenizer: str) -> Model:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens))
    return Model(architecture, network, Tokenizer(tokens), *find_sites(network))


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_differences_by_hand() -> None:
    one = np.array([True]), np.array([3.0])
    a = Resampled("x", column(1.0, 0.0, 2.0, 4.0), *one)
    b = Resampled("x", column(5.0, 1.0, 3.0, 5.0), *one)
    paired = differences(a, b, paired=True)
    assert (paired["a"][0], paired["b"][0], paired["difference"][0]) == (1.0, 5.0, 4.0)
    assert paired["low"][0] == paired["high"][0] == 1.0  # b is a and one more in every replicate
    apart = differences(a, b, paired=False)  # replicates 1, 2, 3 of b meet 3, 1, 2 of a: -3, 3, 3
    assert_allclose([apart["low"][0], apart["high"][0]], np.percentile([-3, 3, 3], [2.5, 97.5]))
    unusable = differences(a, Resampled("x", b.values, np.array([False]), one[1]), paired=True)
    assert unusable["difference"][0] == 4.0
    assert np.isnan(unusable["low"][0])


@pytest.mark.parametrize("name", MEASURES)
def test_replicates_give_the_tables_again(trained: hs.Run, name: str) -> None:
    results, layout = trained.results, layout_of(trained.results)
    measure = make(name, results.measures[name])
    place = {(id.kind, id.layer + 1, id.head + 1): number for number, id in enumerate(layout.ids())}
    found = {one.quantity: one for one in measure.resampled(results.state(name), layout)}
    for row in results[name]:
        one, at = found[row["quantity"]], place[row["kind"], row["layer"], row["head"]]
        assert one.values[0, at] == row["value"]
        assert one.n[at] == row["n"]
        if one.usable[at]:
            assert_allclose(np.nanpercentile(one.values[1:, at], [2.5, 97.5]), [row["low"], row["high"]])
        else:
            assert np.isnan(row["low"])


@pytest.mark.parametrize("name", ["relations", "coreference"])
def test_champions_are_those_of_the_table(trained: hs.Run, name: str) -> None:
    results, layout = trained.results, layout_of(trained.results)
    champions = list(make(name, results.measures[name]).champions(results.state(name), layout))
    table = results[f"{name}_best"]
    assert [(one.label, one.heads) for one in champions] == list(zip(table["label"], table["heads"], strict=True))
    assert_allclose([one.scores.values[0, 0] for one in champions], table["value"])
    bounds = [np.nanpercentile(one.scores.values[1:, 0], [2.5, 97.5]) for one in champions]
    assert_allclose(bounds, np.stack([table["low"], table["high"]], 1))


def test_a_run_does_not_differ_from_itself(trained: hs.Run) -> None:
    found = compare(trained.results, trained.results)
    assert found.how.startswith("paired")
    assert not found.left_out
    assert found.heads is not None
    for table in (found.heads, found.layers, found.best):
        assert len(table) > 0
        assert set(table["difference"]) == {0.0}
        assert {bound for bound in [*table["low"], *table["high"]] if not np.isnan(bound)} == {0.0}


def test_trained_and_untrained(trained: hs.Run, untrained: hs.Run) -> None:
    found = compare(trained.results, untrained.results)
    assert found.left_out == (
        "entropy: only in the first run",
        "trees: only in the first run",
        "coreference: only in the first run",
        "tokens: only in the second run",
    )
    det = found.best.where(label="det")
    assert det["b"][0] - det["a"][0] == det["difference"][0] < det["high"][0] < -0.5
    assert found.heads is not None
    ours = trained["positions"].table.where(quantity="previous", layer=2, head=1)
    row = found.heads.where(quantity="previous", layer=2, head=1)
    assert row["a"] == ours["value"]
    assert row["low"][0] < row["difference"][0] < row["high"][0] < 0
    layer = found.layers.where(quantity="previous", layer=2)
    assert_allclose(layer["a"], trained["positions"].layers.where(quantity="previous", layer=2)["value"])


def test_models_of_other_shapes_are_compared_by_layer() -> None:
    rng = np.random.default_rng(0)
    runs = []
    for layers, heads in ((2, 3), (3, 2)):
        maps = [rng.dirichlet(np.ones(6), (layers, heads, 6)) for _ in range(4)]
        runs.append(hs.measure(maps, [["[CLS]", "a", "b", "c", "d", "[SEP]"]] * 4, ["entropy"], documents=list("wxyz")))
    found = compare(runs[0].results, runs[1].results)
    assert found.heads is None
    assert "single heads" in found.left_out[0]
    assert found.how.startswith("paired")  # the documents have the same names
    assert found.layers.where(quantity="entropy")["layer"] == [1, 2]
    values = [run["entropy"].layers.where(quantity="entropy")["value"] for run in runs]
    assert_allclose(found.layers.where(quantity="entropy")["difference"], np.subtract(values[1][:2], values[0]))
    data = comparison(runs[0].results, runs[1].results)
    assert data["sites"] is None
    assert data["quantities"] == []
    assert [one["layer"] for one in data["layers"] if one["name"] == "entropy"] == [[1, 2]]


def test_given_maps_of_unnamed_texts_are_not_paired() -> None:
    maps = np.full((1, 2, 3, 3), 1 / 3)
    runs = [hs.measure([maps, maps], [["a", "b", "c"]] * 2, ["entropy"]) for _ in range(2)]
    assert compare(runs[0].results, runs[1].results).how.startswith("as of two independent")


def test_an_encoder_beside_a_decoder() -> None:
    runs = [hs.run(tiny(*names), "sampler", ["entropy", "relations"], limit=60, replicates=10, gallery=0, max_length=60) for names in TINY]
    found = compare(runs[0].results, runs[1].results)
    assert found.heads is None
    assert len(found.layers) == 0
    assert "layers: the two runs share none" in found.left_out
    assert "det" in found.best["label"]
    rows = [run["relations"].table.where(label="det") for run in runs]
    assert {row["kind"][0] for row in rows} == {"encoder", "decoder"}
    data = comparison(runs[0].results, runs[1].results)
    assert data["layers"] == []
    assert len(data["best"]) == len(found.best)


def test_what_else_differs_is_said() -> None:
    sentences = hs.run("mini", "sampler", ["entropy"], limit=30, replicates=20, gallery=0)
    documents = hs.run("mini", "sampler", ["entropy"], unit="document", overlong="truncate", max_length=40, replicates=0, gallery=0)
    found = compare(sentences.results, documents.results)
    assert found.unlike == (
        "max_length is 128 in the first run and 40 in the second",
        "limit is 30 in the first run and None in the second",
        "entropy read a sentence at a time (too long: drop) in the first run and a document at a time (too long: truncate) in the second",
    )
    assert found.how.startswith("not at all")
    assert all(np.isnan(found.layers["low"]))


def test_measures_taken_differently_are_left_out() -> None:
    maps = np.full((1, 2, 3, 3), 1 / 3)
    nats, bits = (hs.measure(maps, ["a", "b", "c"], {"entropy": {"base": base}, "positions": {}}) for base in ("nats", "bits"))
    assert compare(nats.results, bits.results).left_out == ("entropy: base is 'nats' in one and 'bits' in the other",)
    only = hs.measure(maps, ["a", "b", "c"], {"entropy": {"base": "bits"}})
    with pytest.raises(RunError, match="no measure in common"):
        compare(nats.results, only.results)


def test_the_view_gets_arrays_over_heads(trained: hs.Run, untrained: hs.Run) -> None:
    data = comparison(trained.results, untrained.results, ("A", "B"))
    assert (data["a"]["name"], data["b"]["name"]) == ("A", "B")
    previous = next(one for one in data["quantities"] if one["name"] == "previous")
    assert len(previous["difference"]) == 144
    assert_allclose(previous["a"][12], trained["positions"].table.where(quantity="previous", layer=2, head=1)["value"][0], rtol=1e-4)
    reverse = next(one for one in data["quantities"] if one["name"] == "obj (head-to-dep)")
    assert reverse["about"] == "share of obj words that their governor attends to more than any other word does"


def test_the_command(trained: hs.Run, untrained: hs.Run, tmp_path: Path) -> None:
    a, b = str(trained.results.path), str(untrained.results.path)
    runner = CliRunner()
    shown = runner.invoke(app, ["compare", a, b, "--limit", "3"])
    assert shown.exit_code == 0
    assert "intervals: paired by document" in shown.output
    assert "mind: weights is trained in the first run and random in the second" in shown.output
    assert "left out: trees: only in the first run" in shown.output
    csv = runner.invoke(app, ["compare", a, b, "--format", "csv", "--quantity", "previous"])
    assert len(csv.stdout.splitlines()) == 145
    page = tmp_path / "compare.html"
    assert runner.invoke(app, ["compare", a, b, "-o", str(page)]).exit_code == 0
    assert "trees: only in the first run" in page.read_text(encoding="utf-8")
    wrong = runner.invoke(app, ["compare", a, b, "--quantity", "colour"])
    assert isinstance(wrong.exception, RunError)
    assert "do not share a quantity 'colour'" in str(wrong.exception)
    (Path(b) / "states.safetensors").rename(tmp_path / "kept")
    missing = runner.invoke(app, ["compare", a, b])
    assert "states.safetensors is missing" in str(missing.exception)
    (tmp_path / "kept").rename(Path(b) / "states.safetensors")
