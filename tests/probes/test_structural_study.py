"""A structural probe from corpora to a folder: separate splits, planted trees, resuming, figures and a page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.document import Document
from headscope.corpora import Corpus
from headscope.drawing.theme import render
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import RunError
from headscope.figures import draw
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.report import write_report
from headscope.results.results import Results
from headscope.studies.execute import execute
from headscope.studies.hidden_states import HiddenStates
from headscope.studies.registry import REGISTRY
from headscope.studies.structural_probe import reading, sweep
from headscope.studies.structural_probe import work as module
from headscope.studies.structural_probe.findings import sentences
from headscope.studies.structural_probe.reading import material
from headscope.studies.structural_probe.spec import StructuralSpec
from helpers.architectures import build
from helpers.families import FAMILIES

STUDY = REGISTRY["structural_probe"]
SETTINGS: dict[str, Any] = {"epochs": 3, "replicates": 40, "max_length": 60}


@pytest.fixture(scope="module")
def tiny() -> Model:
    tokens = FAMILIES["wordpiece"]()
    network = build("bert", vocabulary=len(tokens), max_position_embeddings=512)
    return Model("tiny", network, Tokenizer(tokens), *find_sites(network))


@pytest.fixture(scope="module")
def few() -> Corpus:
    """Some short sentences of every document of the sampler."""
    return Corpus.of([replace(d, sentences=tuple(s for s in d.sentences if len(s) < 12)[:5], mentions=()) for d in hs.read("sampler")])


@pytest.fixture(scope="module")
def whole(tiny: Model, few: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return execute(STUDY, {**SETTINGS, "seeds": 2}, tmp_path_factory.mktemp("structural") / "whole", model=tiny, corpus=few)


def resolved(corpus: Corpus, **settings: Any) -> StructuralSpec:
    """The settings, with those of the preset filled in."""
    spec: StructuralSpec = STUDY.resolve(STUDY.make({**SETTINGS, **settings}), {"corpus": corpus, "dev": None})
    return spec


def numbers(results: Results) -> dict[str, list[dict[str, str]]]:
    return {name: [{key: repr(value) for key, value in row.items()} for row in results[name]] for name in results}


def test_tables_and_manifest_have_the_expected_rows(whole: Results) -> None:
    assert list(whole) == ["summary", "structural", "structural_ranks", "structural_training", "structural_trees"]
    table = whole["structural"]
    rows = table.where(metric="UUAS")
    places = list(zip(rows["source"], rows["layer"], rows["rank"], rows["seeds"], strict=True))
    assert places == [
        *(("model", layer, 16, 2) for layer in (0, 1, 2)), ("random", 1, 16, 2), ("random", 2, 16, 2),
        ("decay", 0, 16, 2), ("projection", 0, 16, 2), ("linear", None, None, None),
    ]  # fmt: skip
    assert sorted(set(whole["structural_ranks"]["rank"])) == [1, 2, 4, 8, 16]
    assert all(row["low"] <= row["value"] <= row["high"] for row in table if row["low"] == row["low"])
    assert all(row["sd"] is not None for row in table if row["source"] != "linear")
    training = whole["structural_training"]
    assert set(training["probe"]) == {"distance", "depth"}
    assert max(training["epochs"]) == 3
    best = whole.manifest["best_layer"]
    loss = {layer: np.mean(training.where(source="model", layer=layer, rank=16, probe="distance")["loss"]) for layer in (0, 1, 2)}
    assert best == min(loss, key=lambda layer: loss[layer])
    assert set(whole["structural_ranks"]["layer"]) == {best}
    assert whole.manifest["study"] == "structural_probe"
    assert Results.open(whole.path or Path()).signature == whole.signature
    assert not (whole.path / "states").exists()  # type: ignore[operator]
    # The probe of the best layer is the same in the layer sweep and in the rank sweep.
    same = whole["structural_ranks"].where(rank=16, metric="UUAS")["value"]
    assert same == pytest.approx(table.where(source="model", layer=best, metric="UUAS")["value"])


def test_example_trees_are_those_of_test_sentences(tiny: Model, few: Corpus, whole: Results) -> None:
    """Words, heads and depths are those of the test sentences. The predicted edges join the words that are scored."""
    words = list(whole["structural_trees"])
    parts = material(tiny, few, None, resolved(few))
    texts = {text.id: (text, tree) for text, tree in zip(parts.test.texts, parts.test.trees, strict=True)}
    names = list(dict.fromkeys(word["text"] for word in words))
    assert len(names) == min(12, sum(6 <= len(text.words) <= 18 for text in parts.test.texts))
    for name in names:
        own, (text, tree) = [word for word in words if word["text"] == name], texts[name]
        assert [word["form"] for word in own] == [word.form for word in text.words]
        assert [word["head"] for word in own] == [head + 1 for head in text.annotation.heads]
        assert [word["depth"] for word in own] == tree.depths.tolist()
        assert [word["joined"] is None for word in own] == [not scored for scored in tree.scored]
        joined = [(word["word"], word["joined"]) for word in own if word["joined"]]
        assert len(joined) == len(tree.edges)  # as many edges as the gold tree has
        assert len({frozenset(edge) for edge in joined}) == len(joined)
        assert all(word["predicted"] >= 0 for word in own)
    svg = render(draw("structural_trees", whole, quantity="2,1"), "svg").decode()
    assert svg.index(f"2. {names[1]}") < svg.index(f"1. {names[0]}")
    for wrong in ("0", "x", "1,99", ""):
        with pytest.raises(RunError, match="does not name sentences"):
            draw("structural_trees", whole, quantity=wrong)


def test_splits_share_no_document(tiny: Model, few: Corpus) -> None:
    spec = resolved(few)
    parts = material(tiny, few, None, spec)
    documents = [{text.document for text in part.texts} for part in (parts.train, parts.held_out, parts.test)]
    assert [len(some) for some in documents] == [13, 1, 4]
    assert not documents[0] & documents[1] | documents[0] & documents[2] | documents[1] & documents[2]
    assert parts.notes[0] == "scored on 4 of 18 documents of the corpus itself, because there is no --dev"
    moved = material(tiny, Corpus.of(reversed(list(few))), None, spec)
    assert {text.id for text in moved.test.texts} == {text.id for text in parts.test.texts}
    released = material(tiny, few, few, resolved(few, preset="reference"))
    assert released.held_out is released.test
    assert all((text.segments == 1).all() for text in released.train.texts)
    lone = material(tiny, Corpus.of(list(few)[:1]), None, spec)  # a single document is split by sentences
    assert "1 of 4 sentences" in lone.notes[0]


def test_planted_trees_are_found(few: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Model) -> None:
    """If some coordinates encode the distances in the tree and others are noise, the probe finds nearly all edges."""

    def planted(model: Model, texts: Any, folder: Path | None, *, layers: Any, dtype: str, **rest: Any) -> HiddenStates:
        random = np.random.default_rng(0)
        blocks, lengths = [], []
        for text in texts:
            heads = text.annotation.heads
            vectors = np.zeros((len(layers), len(heads), 48), dtype=np.float32)
            for word in range(len(heads)):
                place = word
                while heads[place] >= 0:  # one coordinate per ancestor: the squared distance is the distance in the tree
                    vectors[-1, word, place] = 1
                    place = heads[place]
            vectors[:, :, 24:] += random.normal(size=(len(layers), len(heads), 24)) / 2
            blocks.append(vectors.reshape(-1))
            lengths.append(len(heads))
        return HiddenStates(tuple(layers), 48, tuple(lengths), np.concatenate(blocks))

    monkeypatch.setattr(module, "hidden_states", planted)
    for place in (module, reading):
        monkeypatch.setattr(place, "hidden_shape", lambda model: (2, 48))
    settings = {**SETTINGS, "epochs": 40, "rate": 0.03, "batch": 5, "baselines": ["linear"], "ranks": [1, 24]}
    found = execute(STUDY, settings, model=tiny, corpus=few)
    table = found["structural"].where(source="model")
    value = {(row["layer"], row["metric"]): row["value"] for row in table}
    assert found.manifest["best_layer"] == 1
    assert value[1, "UUAS"] > 90
    assert value[1, "Root%"] > 85
    assert value[1, "DSpr"] > 0.8
    assert value[0, "UUAS"] < 50
    ranks = found["structural_ranks"].where(metric="UUAS")["value"]
    assert ranks[0] + 20 < ranks[1]


@pytest.mark.parametrize("every", [0.0, 1e9], ids=["every epoch kept", "no epoch kept"])
def test_a_stopped_study_resumes_to_identical_tables(
    tiny: Model, few: Corpus, whole: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    monkeypatch.setattr(sweep, "EVERY", every)
    settings, out = {**SETTINGS, "seeds": 2}, tmp_path / "stopped"
    for least in (0.2, 0.5, 0.9):  # in the first, the second and the last sweep

        def stop(share: float | None, texts: int, tokens: int, least: float = least) -> None:
            if share is not None and share > least:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            execute(STUDY, settings, out, model=tiny, corpus=few, resume=True, progress=stop)
        assert (out / "states").is_dir()
    with pytest.raises(RunError, match="is not finished"):
        Results.open(out)
    with pytest.raises(RunError, match="started with other settings: rate was"):
        execute(STUDY, {**settings, "rate": 0.1}, out, model=tiny, corpus=few, resume=True)
    again = execute(STUDY, settings, out, model=tiny, corpus=few, resume=True)
    assert numbers(again) == numbers(whole)
    assert again.manifest["counts"]["resumed_shards"] == 3
    assert not (out / "states").exists()
    assert not (out / "partial").exists()


@pytest.mark.parametrize(("architecture", "tokenizer"), [("gpt2", "gpt2"), ("t5", "t5")])
def test_decoders_and_encoders_of_encoder_decoders_are_probed(few: Corpus, architecture: str, tokenizer: str) -> None:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens))
    model = Model(architecture, network, Tokenizer(tokens), *find_sites(network))
    found = execute(STUDY, {**SETTINGS, "epochs": 1, "baselines": ["random"], "ranks": [2]}, model=model, corpus=few)
    rows = found["structural"].where(metric="UUAS")
    assert list(zip(rows["source"], rows["layer"], strict=True)) == [("model", 0), ("model", 1), ("model", 2), ("random", 1), ("random", 2)]
    assert all(0 < value < 100 for value in rows["value"])


def test_figures_findings_and_page_contain_their_texts(whole: Results, tmp_path: Path) -> None:
    for name in ("structural", "structural_ranks"):
        svg = render(draw(name, whole), "svg").decode()
        assert "NSpr: depths, Spearman" in svg
        assert "means of 2 seeds" in svg
    lines = sentences(whole, whole.manifest["best_layer"])
    assert len(lines) == 3
    assert re.search(r"A linear map of layer \d \(.*\) recovers \d+%.* of the edges", lines[0])
    assert "words left to right" in lines[0]
    page = write_report(whole, tmp_path / "page.html").read_text()
    assert "Syntax trees in hidden states" in page
    assert "BERTbase7 may be layer 7 or 8" in page
    bare = {name: table for name, table in whole.items() if name != "structural_ranks"}
    assert len(sentences(bare, whole.manifest["best_layer"])) == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"layers": [0, 9]}, r"mini has no layer 9\. Its hidden states are those of layers 0 \(embeddings\) to 2"),
        ({"rank": 17}, r"rank 17 is larger than the 16 dimensions"),
        ({"ranks": [2, 40]}, r"rank 40 is larger than the 16 dimensions"),
        ({"layers": [1], "ranks_layer": 2}, r"layer 2, on which ranks are tested, is not among the layers"),
        ({"max_length": 4000}, r"max_length is 4000, but mini ends at 512 tokens"),
    ],
)
def test_layers_ranks_and_lengths_that_do_not_exist_are_refused(tiny: Model, few: Corpus, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=says):
        execute(STUDY, {**SETTINGS, **settings}, model=tiny, corpus=few)


def test_invalid_settings_and_corpora_without_trees_are_refused(tiny: Model, few: Corpus) -> None:
    for settings, says in (
        ({"ranks": [0]}, "a rank is 1 or more"),
        ({"layers": [1, 1]}, "none twice"),
        ({"layers": []}, "at least one"),
        ({"ranks": [2, 2]}, "none twice"),
        ({"baselines": ["x"]}, "linear"),
        ({"cache_limit": 0}, "greater than 0"),
    ):
        with pytest.raises(RunError, match=says):
            STUDY.make(settings)
    bare = Corpus.of(
        [Document("d", tuple(replace(s, words=tuple(replace(w, head=None) for w in s.words)) for s in d.sentences)) for d in few]
    )
    for corpus, dev in ((bare, None), (few, bare)):
        with pytest.raises(RunError, match="this study needs trees, and memory has none"):
            hs.probe_structural(tiny, corpus, dev, **SETTINGS)
    with pytest.raises(RunError, match=r"take .* MiB as float16, more than the limit"):
        execute(STUDY, {**SETTINGS, "cache_limit": 1e-6}, model=tiny, corpus=few)


def test_states_are_kept_in_a_named_cache_without_changing_results(tiny: Model, few: Corpus, tmp_path: Path) -> None:
    """The place of the states changes neither numbers nor the signature, and a second study reads the same states."""
    quick = {**SETTINGS, "epochs": 1, "layers": [1], "ranks": [], "baselines": [], "replicates": 0}
    without = hs.probe_structural(tiny, few, out=tmp_path / "without", **quick)
    with_cache = hs.probe_structural(tiny, few, out=tmp_path / "with", cache=tmp_path / "cache", **quick)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.states")}
    assert len(kept) == 3  # sentences for training, early stopping and scoring
    assert not (tmp_path / "with" / "states").exists()
    assert (numbers(with_cache.results), with_cache.signature) == (numbers(without.results), without.signature)
    hs.probe_structural(tiny, few, cache=tmp_path / "cache", **{**quick, "rate": 0.01})
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.states")} == kept


def test_the_command_prints_findings_and_refuses_an_existing_run(tmp_path: Path) -> None:
    out = tmp_path / "probe"
    options = ["--layers", "7", "--ranks", "none", "--baselines", "linear", "--epochs", "1", "--limit", "60", "--replicates", "0"]
    result = CliRunner().invoke(app, ["probe", "structural", *options, "-o", str(out), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "BERT-base 7: 79.8" in result.output
    assert "A linear map of layer 7 (the output of block 7, hidden_states[7])" in result.output
    assert list(Results.open(out)) == ["summary", "structural", "structural_training", "structural_trees"]
    with pytest.raises(RunError, match="already holds a run"):
        CliRunner().invoke(app, ["probe", "structural", *options, "-o", str(out)], catch_exceptions=False)
