"""From a corpus to tables with the embedded model: batches, shards, processes and interruptions change no number."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import Site
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoder
from headscope.engine.accumulate import Accumulator, BatchView
from headscope.engine.plan import Plan
from headscope.errors import HeadscopeError, RunError
from headscope.measures import make
from headscope.models.model import Model
from headscope.results.folder import Folder, read_states
from headscope.stats.bootstrap import poisson_weights
from helpers.stopping import ends, waiting_run

FEW = [str(path) for path in read("sampler").paths[:3]]  # 50 sentences


@pytest.fixture(scope="module")
def whole(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in many small shards."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    hs.run(mini, FEW, out=out, shard_tokens=120, replicates=20)
    return out


def files(folder: Path) -> dict[str, bytes]:
    names = ["states.safetensors", "gallery.safetensors", *(f"tables/{path.name}" for path in sorted((folder / "tables").iterdir()))]
    return {name: (folder / name).read_bytes() for name in names}


def values(run: hs.Run) -> dict[str, np.ndarray[Any, Any]]:
    return {
        f"{name}/{column}": np.array(run.results[name][column])
        for name in run.results
        for column in ("value", "low", "high", "n", "baseline")
    }


def test_the_folder_contains_the_counts_versions_and_tables_of_the_run(whole: Path) -> None:
    manifest = json.loads((whole / "run.json").read_text())
    assert manifest["status"] == "complete"
    corpus = read(*FEW)
    sentences = [sentence for document in corpus for sentence in document.sentences]
    assert manifest["counts"]["texts"] == len(sentences)
    assert manifest["counts"]["words"] == sum(map(len, sentences))
    assert manifest["counts"]["documents"] == len(list(corpus))
    assert manifest["counts"]["shards"] > 5
    assert "multi-word tokens" in manifest["read"][0]
    assert manifest["identity"]["versions"]["torch"] == torch.__version__
    assert not (whole / "partial").exists()
    run = hs.open_run(whole)
    assert run.measures == ["positions", "tokens", "entropy"]
    assert len(run["entropy"].table.where(quantity="entropy")) == 144
    assert run["entropy"].table.columns == ["kind", "layer", "head", "quantity", "value", "low", "high", "n", "documents", "baseline"]
    assert run["entropy"].table.arrow.schema.metadata[b"signature"].decode() == run.signature


def test_tables_equal_eager_attention_and_numpy(whole: Path) -> None:
    """Only the tokens are from headscope: the network is run text by text with output_attentions=True."""
    model = hs.load()  # not the shared model, which must stay unchanged
    texts = list(Encoder(model.tokenizer).texts(read(*FEW), Tally()))
    found = []
    for text in texts:
        model.network.set_attn_implementation("eager")
        with torch.no_grad():
            out = model.network(input_ids=torch.tensor(text.ids)[None], output_attentions=True)
        maps = torch.stack(out.attentions)[:, 0].double().numpy()
        n = maps.shape[-1]
        last = [i for i, token in enumerate(text.ids) if token == 3]
        logs = np.log(np.where(maps > 0, maps, 1))
        found.append(
            [
                np.diagonal(maps, -1, -2, -1).sum(-1) / n,
                maps[..., last].sum(-1).mean(-1),
                -(maps * logs).sum(-1).mean(-1),
                -(maps * logs).sum(-1)[..., 0],
                maps.max(-1).mean(-1),
            ]
        )
    expected = np.mean(found, axis=0).reshape(5, -1)
    run = hs.open_run(whole)
    for row, (measure, quantity) in enumerate(
        [("positions", "previous"), ("tokens", "to_sep"), ("entropy", "entropy"), ("entropy", "entropy_cls"), ("entropy", "max_weight")]
    ):
        assert_allclose(run[measure].table.where(quantity=quantity)["value"], expected[row], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("settings", [{"batch_tokens": 1}, {"batch_tokens": 700, "shard_tokens": 100_000}])
def test_batches_shards_and_document_order_change_nothing(mini: Model, whole: Path, settings: dict[str, Any]) -> None:
    found = values(hs.run(mini, Corpus.of(reversed(list(read(*FEW)))), replicates=20, gallery=0, **settings))
    for name, array in values(hs.open_run(whole)).items():
        assert_allclose(found[name], array, rtol=2e-5, atol=2e-6, err_msg=name)


def test_several_processes_write_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    hs.run("mini", FEW, out=tmp_path / "run", engine="processes", shard_tokens=120, replicates=20)
    assert files(tmp_path / "run") == files(whole)


def test_a_killed_and_resumed_run_writes_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """The process is killed with SIGKILL while some shards are finished and some are not, and no worker outlives it.
    The killed process is the one that writes the parts, as in a run without workers.
    """
    out = tmp_path / "run"
    options = ["--out", str(out), "--engine", "processes", "--workers", "1", "--shard-tokens", "120", "--replicates", "20"]
    options += [word for path in FEW for word in ("--corpus", path)]
    with waiting_run(tmp_path, options, parts=2) as process:
        process.kill()
        process.wait()
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    assert ends(process.pid), "workers outlived the process that started them"
    settings: dict[str, Any] = {"out": out, "shard_tokens": 120, "replicates": 20}
    with pytest.raises(RunError, match="--resume"):
        hs.run("mini", FEW, **settings)
    run = hs.run("mini", FEW, resume=True, **settings)
    assert run.results.manifest["counts"]["resumed_shards"] > 0
    assert files(out) == files(whole)


def test_ctrl_c_keeps_finished_shards_and_prints_how_to_continue(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--out", str(out), "--engine", "processes", "--workers", "1", "--shard-tokens", "60", "--replicates", "20"]
    with waiting_run(tmp_path, options) as process:
        os.killpg(process.pid, signal.SIGINT)  # like a terminal: to the run and all its workers
        _, stderr = process.communicate()
    assert process.returncode == 130, stderr.decode()
    assert "--resume continues" in stderr.decode()
    assert "Traceback" not in stderr.decode()
    assert list(out.glob("partial/*-*.safetensors"))


def test_resume_of_a_finished_run_computes_nothing(mini: Model, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*_: object) -> None:
        pytest.fail("a shard was computed")

    monkeypatch.setattr("headscope.engine.compute.ShardRunner.__call__", computed)
    before = (whole / "run.json").read_bytes()
    run = hs.run(mini, FEW, out=whole, shard_tokens=120, replicates=20, resume=True)
    assert (whole / "run.json").read_bytes() == before
    assert len(run["tokens"].table) == 864


def test_resume_with_other_settings_or_texts_is_refused_with_the_differences(mini: Model, whole: Path) -> None:
    with pytest.raises(RunError, match=r"max_length was 128 and is 64; seed was 0 and is 3"):
        hs.run(mini, FEW, out=whole, shard_tokens=120, replicates=20, resume=True, max_length=64, seed=3)
    with pytest.raises(RunError, match="the corpus has changed"):
        hs.run(mini, Corpus.of(list(read("sampler"))[:1]), out=whole, shard_tokens=120, replicates=20, resume=True)


def test_a_folder_in_use_or_with_other_files_is_refused(mini: Model, whole: Path, tmp_path: Path) -> None:
    with Folder(whole).locked(), pytest.raises(RunError, match="another run is writing"):
        hs.run(mini, "sampler", out=whole, overwrite=True)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(RunError, match="it contains tables"):
            hs.run(mini, "sampler", out=tmp_path, overwrite=overwrite)
    assert (tmp_path / "tables" / "thesis.tex").read_text() == "precious"
    assert not (tmp_path / ".lock").exists()


def test_overwrite_replaces_the_run_and_nothing_else(mini: Model, tmp_path: Path) -> None:
    hs.run(mini, "sampler", out=tmp_path / "run", limit=3).report()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "tables" / "mine.csv").write_text("mine")
    run = hs.run(mini, "sampler", ["entropy"], out=tmp_path / "run", limit=2, overwrite=True)
    assert (tmp_path / "run" / "tables" / "mine.csv").read_text() == "mine"
    assert not (tmp_path / "run" / "report.html").exists(), "a report of the replaced run would mislead"
    assert run.results.manifest["counts"]["texts"] == 2
    assert list(hs.open_run(tmp_path / "run").results) == ["entropy", "entropy_layers"]
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_a_damaged_part_is_named(mini: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    hs.run(mini, "sampler", out=out, limit=3)
    manifest = json.loads((out / "run.json").read_text())
    Folder(out).write_manifest({**manifest, "status": "running"})
    (out / "partial").mkdir()
    (out / "partial" / "00000000-00000000.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}")
    with pytest.raises(RunError, match=r"00000000-00000000\.safetensors is damaged.*Remove that file"):
        hs.run(mini, "sampler", out=out, limit=3, resume=True)


def test_a_run_that_failed_before_it_began_does_not_block_its_folder(mini: Model, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing to measure"):
        hs.run(mini, "sampler", out=tmp_path / "run", max_length=5)
    assert hs.run(mini, "sampler", out=tmp_path / "run", limit=2).results.manifest["counts"]["texts"] == 2


def test_temporary_files_of_a_killed_run_are_removed(mini: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / ".run.json.4711.tmp").write_text("{")
    hs.run(mini, "sampler", out=out, limit=2, resume=True)
    assert not list(out.glob(".*.tmp"))


def test_a_run_is_resumed_with_another_path_to_the_same_corpus(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("A cat sat. It slept.")
    monkeypatch.chdir(tmp_path)
    first = hs.run(mini, "a.txt", out=tmp_path / "run", replicates=0)
    before = files(tmp_path / "run"), (tmp_path / "run" / "run.json").read_bytes()
    again = hs.run(mini, tmp_path / "a.txt", out=tmp_path / "run", replicates=0, resume=True)
    assert again.signature == first.signature
    assert (files(tmp_path / "run"), (tmp_path / "run" / "run.json").read_bytes()) == before, "it was opened, not run again"


def test_documents_are_counted_with_a_limit_on_texts(mini: Model) -> None:
    first = next(iter(read("sampler")))
    run = hs.run(mini, "sampler", ["entropy"], limit=len(first.sentences) + 1, replicates=0)
    assert run.results.manifest["counts"]["documents"] == 2


def test_the_signature_contains_settings_that_are_not_defaults(mini: Model) -> None:
    default = hs.run(mini, "sampler", limit=2, replicates=0).signature
    assert "entropy." not in default
    options: dict[str, dict[str, Any]] = {"entropy": {"base": "bits"}, "tokens": {"average": "token", "groups": ["sep"]}}
    other = hs.run(mini, "sampler", options, limit=2, replicates=0, layers=[1, 2], overlong="truncate", preset="reference").signature
    for part in ("entropy.base:bits", "entropy.smoothing:0.0001", "tokens.average:token", "tokens.groups:sep", "layers:1,2"):
        assert part in other.split("|")
    for part in ("overlong:truncate", "preset:reference", "measures:entropy,tokens", "unit:sentence"):
        assert part in other.split("|")
    assert "segment_ids" not in other, "segment_ids has the value of the preset"
    assert default.split("|run:")[1] != other.split("|run:")[1]


def test_a_changed_model_has_another_fingerprint_and_cannot_be_sent_to_processes(mini: Model) -> None:
    changed = hs.load()
    changed.network.encoder.layer[0].attention.self.query.weight.zero_()
    assert changed.fingerprint != mini.fingerprint
    with pytest.raises(RunError, match="Name the model"):
        hs.run(changed, "sampler", engine="processes")


def test_tables_are_reproduced_from_the_states(mini: Model, whole: Path) -> None:
    states, _ = read_states(whole / "states.safetensors")
    for name in ("positions", "tokens", "entropy"):
        again = make(name).tables(states[name], mini.layout)[name]
        assert_allclose(again["value"], hs.open_run(whole)[name].table["value"], rtol=0)


def test_layers_can_be_chosen(mini: Model, whole: Path) -> None:
    run = hs.run(mini, FEW, ["tokens"], layers=[3, 12], replicates=20, gallery=0)
    assert sorted(set(run["tokens"].table["layer"])) == [3, 12]
    every = hs.open_run(whole)["tokens"].table
    for layer in (3, 12):
        mine = run["tokens"].table.where(layer=layer, quantity="to_sep")
        assert_allclose(mine["value"], every.where(layer=layer, quantity="to_sep")["value"], atol=1e-5)
        assert_allclose(mine["baseline"], every.where(layer=layer, quantity="to_sep")["baseline"], atol=1e-6)
    with pytest.raises(RunError, match="has no layer 13"):
        hs.run(mini, "sampler", layers=[13])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"corpus": "nowhere.conllu"}, "there is no such file"),
        ({"max_length": 300}, "ends at 256 tokens. Use --max-length 256"),
        ({"unit": "verse"}, "unit = 'verse'"),
        ({"measures": ["entropy", "grace"]}, "measure 'grace' is unknown"),
        ({"colour": "red"}, "there is no setting 'colour'"),
        ({"engine": "cloud"}, "engine 'cloud' is unknown"),
        ({"corpus": "sampler", "max_length": 5}, "nothing to measure"),
        ({"measures": []}, "measures is empty"),
        ({"layers": []}, "layers is empty"),
        ({"model": ""}, "has no name"),
        ({"engine": "processes", "workers": 0}, "0 workers"),
        ({"measures": {"positions": {"offsets": "near"}}}, "option offsets is ('near',)"),
        ({"measures": {"positions": {"offsets": [10**30]}}}, "fit in a text"),
        ({"measures": {"tokens": {"groups": ["sep", "sep"]}}}, "Name each only once"),
        ({"measures": {"entropy": {"smoothing": "some"}}}, "option smoothing is 'some'"),
        ({"model": "./nowhere"}, "is not a folder"),
        ({"device": "quantum"}, "device 'quantum' cannot be used"),
    ],
)
def test_invalid_settings_are_refused_with_one_clear_error(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(HeadscopeError) as error:
        hs.run(**settings)
    assert says in str(error.value)


def test_nan_in_padded_rows_changes_no_number(mini: Model) -> None:
    """Some kernels leave NaN in rows that see no token. A batch with such rows must equal its texts alone."""
    short, long = sorted(Encoder(mini.tokenizer).texts(read("sampler"), Tally()), key=len)[::40][:2]
    site = Site("encoder", 0, 2, 2, "x")
    rng = np.random.default_rng(0)
    maps = [rng.dirichlet(np.ones(len(t)), size=(2, len(t))).astype(np.float32) for t in (short, long)]
    measures = [make(name, {"level": level}) for name in ("positions", "tokens", "entropy") for level in ("token", "word")]
    for measure in measures:
        plan = Plan.make([measure], [site])
        alone = Accumulator(plan, 0)
        for text, own in zip((short, long), maps, strict=True):
            alone.add(BatchView([text], "mean", partial(poisson_weights, replicates=0)), 0, torch.from_numpy(own[None].copy()))
        padded = np.full((2, 2, len(long), len(long)), np.nan, dtype=np.float32)
        padded[0, :, : len(short)] = 0
        padded[0, :, : len(short), : len(short)] = maps[0]
        padded[1] = maps[1]
        together = Accumulator(plan, 0)
        together.add(BatchView([short, long], "mean", partial(poisson_weights, replicates=0)), 0, torch.from_numpy(padded))
        for name, array in alone.states[measure.name].arrays.items():
            assert_allclose(together.states[measure.name][name], array, rtol=1e-5, atol=1e-6)


def test_a_corpus_with_a_file_name_that_is_not_utf8_is_measured(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    Path(os.fsdecode(name)).write_text("The cat sat on the mat. It was a good mat.\n", encoding="utf-8")
    run = hs.run("mini", os.fsdecode(name), ["entropy"], tmp_path / "out", replicates=2)
    assert "|corpus:caf?.txt@" in run.signature
    opened = hs.open_run(tmp_path / "out")
    assert "caf?.txt" in opened.report().read_text(encoding="utf-8")
