"""Runs over norm maps and value-zeroing maps: settings, batches, resuming, refusals, notices and comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.maps import map_sentence
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.compute import ShardRunner
from headscope.engine.plan import Plan
from headscope.engine.spec import make_spec
from headscope.errors import RunError
from headscope.measures import make
from headscope.models import capture
from headscope.models.maps import maps_of
from headscope.models.model import Model
from headscope.report import body
from headscope.report.summary import sentences
from helpers.stopping import stopped

FEW: dict[str, Any] = {"limit": 6, "replicates": 10, "gallery": 0}
OTHERS = ("norm", "value-zeroing")


def encoded(model: Model, number: int = 6) -> list[Encoded]:
    return list(Encoder(model.tokenizer, unit="sentence", max_length=128).texts(read("sampler"), Tally()))[:number]


def arrays(run: hs.Run) -> dict[str, np.ndarray]:
    return {name: np.array(run[name].table["value"]) for name in run.results.of_heads()}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("embedded", ["mini", "mini_decoder"])
def test_padding_and_batches_change_nothing(name: Any, embedded: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(embedded)
    texts = sorted(encoded(model), key=len)
    maps = maps_of(model, name)
    wanted = frozenset({1, 6})
    together: dict[int, torch.Tensor] = {}
    seen: dict[int, torch.Tensor | None] = {}

    def keep(site: int, weights: torch.Tensor, visible: torch.Tensor | None, _: object) -> None:
        together[site], seen[site] = weights, visible

    maps.stream(texts, keep, wanted)
    assert together.keys() == wanted
    for number, text in enumerate(texts):
        size = len(text)

        def alone(site: int, weights: torch.Tensor, *_: object, number: int = number, size: int = size) -> None:
            np.testing.assert_allclose(together[site][number, :, :size, :size], weights[0], atol=1e-5)
            np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
            if (visible := seen[site]) is not None:
                assert not together[site][number][:, :size].masked_select(~visible[number, :size]).any()

        maps.stream([text], alone, wanted)


@pytest.mark.parametrize("embedded", ["mini", "mini_decoder"])
def test_measures_of_norm_maps_without_maps_equal_those_of_maps(
    embedded: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = request.getfixturevalue(embedded)
    texts, maps = encoded(model, 12), maps_of(model, "norm")
    measures = [
        make("positions", {}),
        make("tokens", {}),
        make("entropy", {}),
        make("sinks", {"tokens": 12}),
        make("relations", {"least": 1}),
    ]
    runner = ShardRunner(model, Plan.make(measures, maps.sites), replicates=3, batch_tokens=200, maps=maps)
    with monkeypatch.context() as patch:
        patch.setattr(capture, "stream", lambda *_: pytest.fail("maps were made"))
        found = runner(texts)
    with monkeypatch.context() as patch:
        patch.setattr(Model, "needs_maps", "to compare")
        expected = runner(texts)
    for name, state in expected.items():
        for key, array in state.arrays.items():
            np.testing.assert_allclose(found[name][key], array, rtol=2e-5, atol=2e-5, err_msg=f"{name} {key}")


@pytest.mark.parametrize("name", OTHERS)
def test_a_stopped_run_resumes_to_the_same_numbers(name: str, small_folder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "model": str(small_folder),
        "measures": ["tokens", "relations", "distances"],
        "map": name,
        "limit": 12,
        "replicates": 10,
    }
    spec = make_spec({**settings, "shard_tokens": 60})
    stopped(spec, tmp_path / "run", 2)
    resumed = hs.run(str(small_folder), "sampler", settings["measures"], tmp_path / "run", resume=True, map=name, limit=12, replicates=10)
    assert resumed.results.manifest["counts"]["resumed_shards"] == 2
    whole = hs.run(
        str(small_folder), "sampler", settings["measures"], map=name, limit=12, replicates=10, batch_tokens=50, shard_tokens=10_000
    )
    for table in resumed.results:
        for column in resumed.results[table].columns:
            if isinstance(resumed.results[table][column][0], float):
                np.testing.assert_allclose(
                    resumed.results[table][column], whole.results[table][column], atol=1e-5, err_msg=f"{table} {column}"
                )
    with pytest.raises(RunError, match=r"map was '.*' and is 'weights'"):
        hs.run(str(small_folder), "sampler", settings["measures"], tmp_path / "run", resume=True, limit=12, replicates=10)


@pytest.mark.parametrize("name", OTHERS)
def test_every_measure_of_maps_accepts_other_maps(name: str, small_folder: Path, tmp_path: Path) -> None:
    measures = ["positions", "tokens", "entropy", "sinks", "sequences", "relations", "trees", "coreference", "distances", "keywords"]
    run = hs.run(str(small_folder), "sampler", measures, tmp_path / "run", map=name, limit=16, replicates=5, gallery=8)
    assert f"|map:{name}|" in run.signature
    assert {len(arrays(run)["tokens"]) // len(set(run["tokens"].table["quantity"]))} == {4 if name == "norm" else 2}
    gallery = run.results.gallery
    assert gallery is not None
    text, stack = gallery.stacks[0]
    width = len(gallery.texts[text]["source"]["tokens"])
    model = hs.load(str(small_folder))
    full = next(one for one in encoded(model, 16) if one.id == gallery.texts[text]["id"])
    expected: dict[int, torch.Tensor] = {}
    maps_of(model, name).stream([full], lambda site, weights, *_: expected.update({site: weights}), frozenset({0, 1}))  # type: ignore[arg-type]
    for head, shown in stack.items():
        np.testing.assert_allclose(shown / 65535, expected[head.layer][0, head.head, :width, :width], atol=1e-4)


def test_pages_and_findings_name_the_kind_of_maps(small_folder: Path, tmp_path: Path) -> None:
    run = hs.run(str(small_folder), "sampler", ["tokens"], tmp_path / "norm", map="norm", **FEW)
    notice = map_sentence("norm")
    assert notice is not None
    assert sentences(run.results)[0] == notice
    assert run.results.map == "norm"
    assert "(norm maps)" in body(run.results)
    assert "published" not in body(run.results)
    assert notice in body(run.results).replace("\n", " ")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "norm")]).output
    assert notice in shown
    weights = hs.run(str(small_folder), "sampler", ["tokens"], **FEW)
    assert weights.results.map == "weights"
    assert "map" not in weights.signature
    assert "norm map" not in " ".join(sentences(weights.results))


def test_runs_over_different_kinds_of_maps_are_compared(small_folder: Path, tmp_path: Path) -> None:
    for name in ("weights", *OTHERS):
        hs.run(str(small_folder), "sampler", ["tokens"], tmp_path / name, map=name, **FEW)
    compared = hs.compare(tmp_path / "weights", tmp_path / "norm").comparison
    assert compared.names == ("attention weights", "norm maps")
    assert compared.unlike == ("map is weights in attention weights; norm in norm maps",)
    assert compared.how.startswith("paired by document")
    assert len(compared.differences["heads"])
    layers = hs.compare(tmp_path / "weights", tmp_path / "value-zeroing").comparison
    assert layers.names == ("attention weights", "value-zeroing maps")
    assert "single heads: the runs do not have the same layers and heads" in layers.left_out
    assert len(layers.differences["layers"])


def test_the_command_and_the_settings_file_accept_a_kind_of_maps(small_folder: Path, tmp_path: Path) -> None:
    spec = tmp_path / "norm.toml"
    spec.write_text(f'model = "{small_folder}"\nmeasures = ["tokens"]\nmap = "norm"\nlimit = 6\nreplicates = 10\n')
    options = ["--model", str(small_folder), "--measures", "tokens", "--limit", "6", "--replicates", "10", "--gallery", "0", "-q"]
    outs = [tmp_path / "file", tmp_path / "flags"]
    for out, given in zip(outs, (["run", str(spec), "--gallery", "0", "-q"], ["run", "--map", "norm", *options]), strict=True):
        done = CliRunner().invoke(app, [*given, "--out", str(out)])
        assert done.exit_code == 0, done.output
    first, second = map(hs.open_run, outs)
    assert first.signature == second.signature
    assert "|map:norm|" in first.signature
    planned = CliRunner().invoke(app, ["run", "--map", "value-zeroing", *options, "--plan", "--tried", "0"])
    lengths = [len(text) for text in encoded(hs.load(str(small_folder)))]
    assert f"over {sum(n * (n + 1) for n in lengths):,} tokens in all" in planned.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"map": "norms"}, r"map = 'norms': Input should be 'weights', 'norm' or 'value-zeroing'"),
        (
            {"map": "norm", "measures": ["saliency"]},
            r"saliency takes gradients of attention weights, and maps of norm are not weights\. Use --map weights",
        ),
    ],
)
def test_unknown_maps_and_measures_of_weights_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=says):
        hs.run(**settings)


def test_the_option_map_is_refused_for_saved_maps(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "--maps", str(tmp_path / "none.npz"), "--map", "norm"])
    assert isinstance(done.exception, RunError)
    assert "--map norm needs a model, and --maps are measured as they are" in str(done.exception)
