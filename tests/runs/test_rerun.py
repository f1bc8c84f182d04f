"""Repeating a run: the same bits, or the differences and their causes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.comparison.identical import compare
from headscope.comparison.rerun import Rerun
from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.folder import Folder, encode_states, read_states
from headscope.results.results import Results
from headscope.results.table import Table


@pytest.fixture(scope="module")
def whole(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    hs.run(mini, "sampler", ["entropy"], out, limit=6, replicates=5, gallery=2)
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def test_a_rerun_of_a_run_is_identical(run: Path) -> None:
    found = hs.rerun(run)
    assert found.identical
    rows = sum(len(table) * 7 for table in Results.open(run).values())  # layer, value, low, high, n, documents, baseline
    heads = len(Results.open(run)["entropy"])
    assert found.same.numbers == rows + heads
    assert found.lines() == [
        f"identical to the last bit: 2 tables with {found.same.numbers:,} numbers, and the states behind them with "
        f"{found.same.states:,}, and the gallery"
    ]
    assert sorted(path.name for path in run.parent.iterdir()) == ["run"], "the folder of the rerun is removed"


def test_a_rerun_of_a_study_is_identical(mini: Model, tmp_path: Path) -> None:
    """Reruns of all kinds of studies are tested in tests/studies."""
    study = hs.flow(mini, "sampler", tmp_path / "study", measures=["A"], norm="sum", parts=["trees"], limit=3, replicates=0)
    found = hs.rerun(study)
    assert found.identical, repr(found)
    assert found.circumstances == ()
    assert found.same.tables == len(study.tables)
    with pytest.raises(RunError, match="studies run in one process"):
        hs.rerun(study, engine="processes")


def test_differences_of_a_rerun_are_listed(run: Path) -> None:
    """In a table, one number differs in its last bit and one by 0.1; the checksum is corrected."""
    results = Results.open(run)
    columns = {name: results["entropy"][name] for name in results["entropy"].columns}
    columns["value"][3] = float(np.nextafter(columns["value"][3], 9))
    columns["baseline"][4] += 0.1
    changed = Table.of(columns, results["entropy"].metadata)
    states, _ = read_states(run / "states.safetensors")
    files = Folder(run).finish({"entropy": changed, "entropy_layers": results["entropy_layers"]}, states, results.manifest)["files"]
    gallery = {"gallery.safetensors": results.manifest["files"]["gallery.safetensors"]}
    versions = {**results.manifest["identity"]["versions"], "torch": "1.0"}
    manifest = {**results.manifest, "files": files | gallery, "identity": {**results.manifest["identity"], "versions": versions}}
    Folder(run).write_manifest({**manifest, "made": {**manifest["made"], "threads": [1, 3]}})
    messages: list[str] = []
    found = hs.rerun(run, run.parent / "new", notify=messages.append)
    assert not found.identical
    assert not found.same.noise
    assert messages[0].startswith("torch was 1.0 and is ")
    differing = {(one.where, one.what): one for one in found.same.differences}
    assert set(differing) == {("table entropy", "value"), ("table entropy", "baseline")}
    assert differing["table entropy", "value"].noise
    assert differing["table entropy", "value"].differing == 1
    assert differing["table entropy", "value"].largest == pytest.approx(np.spacing(columns["value"][3]), rel=0.6)
    assert differing["table entropy", "baseline"].largest == pytest.approx(0.1)
    assert "threads: 1 and 3 then, 1 now" in found.lines()[-1]
    assert found.kept == run.parent / "new"
    assert (run.parent / "new" / "run.json").is_file()


def test_floating_point_noise_is_distinguished_from_larger_differences(run: Path) -> None:
    """Differences of states, differences of shapes, and missing tables."""
    then = Results.open(run)
    states, _ = read_states(run / "states.safetensors")
    other = Path(shutil.copytree(run, run.parent / "other"))
    for array in states["entropy"].arrays.values():
        if array.dtype.kind == "f":
            np.multiply(array, 1 + 1e-9, out=array, casting="same_kind")
    layers = {name: then["entropy_layers"][name][:-1] for name in then["entropy_layers"].columns}
    tables = {"entropy": then["entropy"], "entropy_layers": Table.of(layers, then["entropy_layers"].metadata)}
    Folder(other).finish(tables, states, then.manifest)
    found = compare(then, Results.open(other))
    assert all(one.noise for one in found.differences if one.where.startswith("state"))
    assert any(one.where == "state entropy" for one in found.differences)
    assert any(" and " in one.what for one in found.differences if one.where == "table entropy_layers")
    assert not found.noise
    Folder(other).finish({"entropy": then["entropy"]}, states, {**then.manifest, "tables": ["entropy"]})
    assert compare(then, Results.open(other)).only == ("table entropy_layers",)
    assert (other / "states.safetensors").read_bytes() == encode_states(states, {})


def test_corpora_are_found_relative_to_the_folder_where_the_run_was_started(
    mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A cat sat on a mat. It slept.")
    monkeypatch.chdir(tmp_path)
    hs.run(mini, "texts/a.txt", ["entropy"], "out/run", replicates=0, gallery=0)
    made = json.loads((tmp_path / "out" / "run" / "run.json").read_text())["made"]
    assert made["from"] == "../.."
    assert str(tmp_path) not in json.dumps(made)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert hs.rerun(tmp_path / "out" / "run").identical
    (tmp_path / "texts" / "a.txt").rename(tmp_path / "a.txt")
    with pytest.raises(RunError, match=r"was made from 'texts/a\.txt', which does not exist any more.*Name it with --corpus"):
        hs.rerun(tmp_path / "out" / "run")
    assert hs.rerun(tmp_path / "out" / "run", corpus=tmp_path / "a.txt").identical
    (tmp_path / "a.txt").write_text("Another text.")
    with pytest.raises(RunError, match=r"a\.txt has changed since .* was made: its sha256 was"):
        hs.rerun(tmp_path / "out" / "run", corpus=tmp_path / "a.txt")


def test_the_folder_where_a_run_was_started_is_stored_only_if_needed(whole: Path) -> None:
    assert "from" not in json.loads((whole / "run.json").read_text())["made"]


def test_runs_that_cannot_be_repeated_are_refused(mini: Model, run: Path, tmp_path: Path) -> None:
    documents = Corpus.of(list(read("sampler"))[:1])
    hs.run(mini, documents, ["entropy"], tmp_path / "memory", replicates=0, gallery=0)
    with pytest.raises(RunError, match=r"texts in memory, not from a file.*headscope\.rerun\(.*corpus="):
        hs.rerun(tmp_path / "memory")
    assert hs.rerun(tmp_path / "memory", corpus=documents).identical
    changed = hs.load()
    changed.network.encoder.layer[0].attention.self.query.weight[5, 7] += 1
    hs.run(changed, "sampler", ["entropy"], tmp_path / "changed", limit=2, replicates=0, gallery=0)
    with pytest.raises(RunError, match=r"the model mini has changed since .* its fingerprint was"):
        hs.rerun(tmp_path / "changed")
    assert hs.rerun(tmp_path / "changed", model=changed).identical
    maps = np.full((1, 1, 2, 2), 0.5)
    hs.measure(maps, ["a", "b"], ["entropy"], out=tmp_path / "maps", gallery=0)
    with pytest.raises(RunError, match="was made from maps"):
        hs.rerun(tmp_path / "maps")
    with pytest.raises(RunError, match="no folder"):
        hs.rerun(hs.run(mini, "sampler", ["entropy"], limit=2, replicates=0))
    with pytest.raises(RunError, match="already holds a run"):
        hs.rerun(run, run)


def test_the_exit_status_of_the_command_is_1_if_results_differ(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    Folder(run).write_manifest({**manifest, "settings": {**manifest["settings"], "seed": 1}})
    found = CliRunner().invoke(app, ["rerun", str(run)])
    assert found.exit_code == 1, found.output
    assert "more than floating-point noise" in found.stdout
    assert "seed was 0 and is 1" in found.stdout
    assert f"the new results are in {run.parent / 'run.rerun'}" in found.stdout
    again = CliRunner().invoke(app, ["rerun", str(run.parent / "run.rerun"), "--quiet"])
    assert (again.exit_code, again.stdout) == (0, "")


def test_rerun_returns_its_outcome_with_a_repr(run: Path) -> None:
    found = hs.rerun(run)
    assert isinstance(found, Rerun)
    assert repr(found).startswith("identical to the last bit")
