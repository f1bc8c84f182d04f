"""Twins as a study: its folder, resuming after an interruption, reopening, rerunning and comparing it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

import headscope as hs
from headscope.api import TwinHeads
from headscope.corpora import read
from headscope.encoding.texts import Encoder
from headscope.errors import HeadscopeError, RunError
from headscope.figures import draw
from headscope.models import load as loading
from headscope.models.loading.random import untrained
from headscope.models.model import Model
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.base import layer_weights
from headscope.studies.execute import execute
from headscope.studies.registry import REGISTRY
from headscope.studies.twins import work as twins_work
from headscope.studies.twins.findings import of_twins
from headscope.studies.twins.heads import TABLES
from headscope.studies.twins.sums import SideBySide, Watched
from headscope.studies.twins.texts import Matcher, Names
from helpers.architectures import build
from helpers.families import FAMILIES

pytestmark = pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")  # about unknown words of tiny tokenizers
SETTINGS: dict[str, Any] = {"limit": 24, "max_length": 60, "replicates": 20, "batch_tokens": 40, "shard_tokens": 160, "control": True}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of two small random models, which tokenise words differently."""
    place = tmp_path_factory.mktemp("models")
    for name, tokenizer in {"bert": "wordpiece", "gpt2": "gpt2"}.items():
        tokens = FAMILIES[tokenizer]()
        build(name, vocabulary=len(tokens)).save_pretrained(place / name)
        tokens.save_pretrained(place / name)
    return {name: place / name for name in ("bert", "gpt2")}


@pytest.fixture(scope="module")
def models(folders: Mapping[str, Path]) -> tuple[Model, Model]:
    return hs.load(folders["bert"]), hs.load(folders["gpt2"])


@pytest.fixture(scope="module")
def settings(folders: Mapping[str, Path]) -> dict[str, Any]:
    return {**SETTINGS, "model": str(folders["bert"]), "other": str(folders["gpt2"])}


@pytest.fixture(scope="module")
def whole(settings: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Results:
    return execute("twins", settings, tmp_path_factory.mktemp("twins") / "whole")


def cells(results: Mapping[str, Table]) -> dict[str, dict[str, str]]:
    return {name: {column: repr(table[column]) for column in table.columns} for name, table in results.items()}


def test_a_shard_reports_every_batch(models: tuple[Model, Model], settings: Mapping[str, Any]) -> None:
    """All texts are in one shard of many batches: the share grows with each batch, also after the corpus was read."""
    shares: list[float] = []
    options = {**settings, "shard_tokens": 10**6, "control": False}
    execute("twins", options, model=models[0], other_model=models[1], progress=lambda share, *_: shares.append(share or 0.0))
    assert shares == sorted(shares)
    assert len({share for share in shares if 0 < share < 1}) >= 8
    assert shares[-1] == 1


def test_the_cost_of_a_text_counts_passes_and_pairs_of_heads(models: tuple[Model, Model]) -> None:
    """Every token passes all weights of the layers, and all pairs of the 16 heads are compared at each pair of tokens
    or words.
    """
    watched = Watched(models[0], "encoder", 0), Watched(models[1], "decoder", 1)
    matcher = Matcher((Encoder(models[0].tokenizer), Encoder(models[1].tokenizer)), ("encoder", "decoder"), "word", Names("a", "b"))
    text = next(iter(matcher.texts(read("sampler"))))
    weights = [layer_weights(model.network) for model in models]
    expected = sum(len(inputs) * each for inputs, each in zip(text.inputs, weights, strict=True)) + 17 * 128 * text.size**2
    assert SideBySide(*watched, "word", "mean", 64).cost(text) == expected


def test_the_folder_contains_the_settings_fingerprints_and_tables(
    whole: Results, settings: Mapping[str, Any], models: tuple[Model, Model]
) -> None:
    assert whole.study == "twins"
    assert list(whole) == ["summary", *TABLES]
    assert whole.manifest["counts"]["texts"] == 24
    assert whole.manifest["counts"]["shards"] > 3
    assert whole.manifest["settings"]["kind"] == ["encoder", "decoder"]
    assert whole.manifest["identity"]["model"] == models[0].fingerprint
    assert whole.manifest["identity"]["settings"]["other"] == models[1].fingerprint
    assert f"b:gpt2@{models[1].fingerprint[:8]}" in whole.signature.split("|")
    numbers = {(row["side"], row["quantity"]): row["value"] for row in whole["twins_summary"]}
    reported = {row["what"]: row for row in whole["summary"]}
    for letter in "ab":
        assert reported["mean distance to the twin in the other model"][letter] == numbers[letter, "twin"]
        assert reported["heads with a twin closer than 0.05"][letter] == numbers[letter, "twin_0.05"]
        assert reported["heads with a head of the untrained other closer than 0.1"][letter] == numbers[letter, "untrained_0.1"]
        assert reported["heads that are their twin's twin"][letter] == numbers[letter, "mutual"]


def test_sums_of_shards_equal_those_of_one_pass(whole: Results, models: tuple[Model, Model]) -> None:
    """To the last bit: sums of shards on disk equal the sums of one stream in memory."""
    watched = Watched(models[0], "encoder", 0), Watched(models[1], "decoder", 1)
    copies = Watched(untrained(models[0]), "encoder", 0), Watched(untrained(models[1]), "decoder", 1)
    stream = SideBySide(*watched, "word", "mean", 40, copies)
    encoders = Encoder(models[0].tokenizer, max_length=60), Encoder(models[1].tokenizer, max_length=60)
    held = []
    for text in islice(Matcher(encoders, ("encoder", "decoder"), "word", Names("bert", "gpt2")).texts(read("sampler")), 24):
        held.append(text)
        if sum(text.cost for text in held) >= 160:
            stream.add(held)
            held = []
    stream.add(held)
    sums = TwinHeads.of_study(whole).sums
    for name in ("rows", "words", "pairs"):
        assert_array_equal(getattr(sums, name), getattr(stream.sums, name))
    assert sums.untrained is not None
    assert stream.sums.untrained is not None
    for place in (0, 1):
        assert_array_equal(sums.untrained[place], stream.sums.untrained[place])


def test_an_interrupted_study_is_resumed_with_the_same_tables(
    whole: Results, settings: Mapping[str, Any], tmp_path: Path, folders: Mapping[str, Path]
) -> None:
    out = tmp_path / "study"

    def stop(share: float | None, texts: int, tokens: int) -> None:
        if texts > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute("twins", settings, out, progress=stop)
    with pytest.raises(RunError, match="not finished"):
        hs.open_study(out)
    with pytest.raises(RunError, match="level was 'word' and is 'token'"):
        execute("twins", {**settings, "level": "token", "other": settings["model"]}, out, resume=True)
    with pytest.raises(RunError, match=r"other was '[0-9a-f]{16}' and is '[0-9a-f]{16}'"):
        execute("twins", {**settings, "other": settings["model"], "kind": ("encoder", "encoder")}, out, resume=True)
    reported: list[tuple[float | None, int, int]] = []
    resumed = execute("twins", {**settings, "shard_tokens": None}, out, resume=True, progress=lambda *given: reported.append(given))
    assert resumed.manifest["settings"]["shard_tokens"] == 160, "shards are numbered, so their size is kept"
    assert 1 < resumed.manifest["counts"]["resumed_shards"] < resumed.manifest["counts"]["shards"]
    assert resumed.manifest["counts"]["texts"] == 24
    assert cells(resumed) == cells(whole)
    assert reported[-1][:2] == (1.0, 24)
    assert [texts for _, texts, _ in reported] == sorted(texts for _, texts, _ in reported)
    again = execute("twins", settings, out, resume=True)
    assert again.manifest["counts"] == resumed.manifest["counts"], "nothing is left to do"


def test_a_reopened_study_has_the_same_distances_findings_and_figures(whole: Results, models: tuple[Model, Model]) -> None:
    assert whole.path is not None
    study = hs.open_study(whole.path)
    assert study.tables == ["summary", *TABLES]
    found = hs.twins(*models, **SETTINGS)
    assert isinstance(found, TwinHeads)
    assert str(found).splitlines()[:-1] == str(study).splitlines()[len(study.results.warnings) : -1]
    again = TwinHeads.of_study(study.results)
    assert again.mutual() == found.mutual()
    assert (again.a, again.b) == (found.a, found.b)
    assert again.texts == 24
    assert again.dropped == found.dropped
    assert_array_equal(again.distances, found.distances)
    assert of_twins(again) == REGISTRY["twins"].findings(study.results)
    assert len(draw("twins", study.results, embedding="classical").axes) == 3
    assert len(study.plot("twins", sqrt=True).axes) == 3
    with pytest.raises(HeadscopeError, match="no embedding is called 'tsne'"):
        study.plot("twins", embedding="tsne")


def test_a_rerun_of_twins_is_identical(whole: Results, folders: Mapping[str, Path]) -> None:
    assert whole.path is not None
    assert hs.rerun(whole.path).identical
    with pytest.raises(RunError, match=r"the other model .*bert has changed since .* was made: its fingerprint was"):
        hs.rerun(whole.path, other=folders["bert"])
    assert hs.rerun(TwinHeads.of_study(whole), other=hs.load(folders["gpt2"])).identical


def test_studies_of_twins_are_compared(whole: Results, settings: Mapping[str, Any], tmp_path: Path) -> None:
    other = execute("twins", {**settings, "word_rows": "first", "control": False}, tmp_path / "first")
    compared = hs.compare(TwinHeads.of_study(whole), tmp_path / "first")
    assert compared.names == ("control", "no control")
    row = next(iter(compared.differences["twins_summary"].where(side="a", quantity="twin")))
    values = [next(iter(results["twins_summary"].where(side="a", quantity="twin")))["value"] for results in (whole, other)]
    assert row["difference"] == values[1] - values[0] != 0
    assert set(compared.differences) == {"twins_summary", "twins_layers", "twins"}
    numbers_alone = TwinHeads(**{**vars(TwinHeads.of_study(whole)), "results": None})
    with pytest.raises(RunError, match="made from numbers alone"):
        hs.compare(numbers_alone, whole.path or "")


def test_a_model_that_is_named_twice_is_loaded_once(folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load_model = loading.load

    def load(name: str, *options: Any, **more: Any) -> Model:
        loaded.append(str(name))
        return load_model(name, *options, **more)

    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(twins_work, "load", load)
    few: dict[str, Any] = {"limit": 1, "max_length": 60, "replicates": 0}
    hs.twins(folders["bert"], folders["bert"], **few)
    assert loaded == [str(folders["bert"])]
    hs.twins(folders["bert"], folders["gpt2"], **few)
    assert loaded[1:] == [str(folders["bert"]), str(folders["gpt2"])]


def test_a_loaded_model_is_not_confused_with_another_of_the_same_name(folders: Mapping[str, Path]) -> None:
    """A model with random weights has the name of the trained one."""
    redrawn = hs.load(folders["bert"], random=1)
    found = hs.twins(redrawn, folders["bert"], limit=2, max_length=60, replicates=0)
    assert found.results is not None
    identity = found.results.manifest["identity"]
    assert identity["model"] == redrawn.fingerprint
    assert identity["settings"]["other"] == hs.load(folders["bert"]).fingerprint != redrawn.fingerprint
    assert max(found.table()["distance"]) > 0
