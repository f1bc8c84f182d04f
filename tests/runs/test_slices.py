"""Slices of a run: each equals a run over its documents alone, and the tables of the whole run do not change."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.batch import MapBatch
from headscope.core.document import Document, Sentence, Word
from headscope.core.heads import HeadLayout
from headscope.core.slices import LENGTHS, MOST, NO_VALUE, in_order, slice_of
from headscope.core.state import State
from headscope.corpora import Corpus
from headscope.engine.spec import make_spec
from headscope.errors import HeadscopeError, HeadscopeWarning, RunError
from headscope.measures import Measure
from headscope.measures.base import Columns
from headscope.models.model import Model
from helpers.excerpts import excerpt
from helpers.stopping import stopped

MEASURES: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("positions", "tokens", "entropy", "distances")},
    **{name: {"least": 1} for name in ("relations", "coreference", "pronouns")},
    "trees": {"heads": ("1-1",)},
}
SETTINGS: dict[str, Any] = {"replicates": 20, "gallery": 0}
GENRES = ("news", "diary", NO_VALUE)
CORPUS_BOUND = {"chance", "chance_error"}  # columns that depend on trees of other sentences of the corpus


def documents(count: int = 14) -> list[Document]:
    """Documents of the sampler with two genres in turn; the last one has no genre."""
    whole = excerpt(count, 4)
    named = [{"genre": GENRES[number % 2], "year": str(1990 + number % 2)} for number in range(count - 1)]
    return [replace(document, metadata=metadata) for document, metadata in zip(whole, [*named, {}], strict=True)]


@pytest.fixture(scope="module")
def sliced(small_model: Model, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    out = tmp_path_factory.mktemp("runs") / "sliced"
    return hs.run(small_model, Corpus.of(documents()), MEASURES, out, by="genre", shard_tokens=300, **SETTINGS)


def assert_same_tables(left: hs.Run, right: hs.Run) -> None:
    """Assert that the tables of two runs are equal: floats up to rounding, counts and words exactly."""
    assert list(left.results) == list(right.results)
    for name in left.results:
        a, b = left.results[name], right.results[name]
        assert (a.columns, len(a)) == (b.columns, len(b)), name
        for column in set(a.columns) - CORPUS_BOUND:
            if all(isinstance(value, float) for value in a[column]):
                assert_allclose(a[column], b[column], rtol=1e-5, atol=1e-6, err_msg=f"{column} of {name}")
            else:
                assert a[column] == b[column], f"{column} of {name}"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in [folder / "states.safetensors", *(folder / "tables").iterdir()]}


def test_slices_do_not_change_the_tables_of_the_whole_run(small_model: Model, sliced: hs.Run) -> None:
    whole = hs.run(small_model, Corpus.of(documents()), MEASURES, shard_tokens=300, **SETTINGS)
    for name in whole.results:
        for column in whole.results[name].columns:
            np.testing.assert_array_equal(sliced.results[name][column], whole.results[name][column])
    assert sliced.slices == {"diary": 6, "news": 7, NO_VALUE: 1}
    assert whole.slices == {}


@pytest.mark.parametrize("genre", GENRES)
def test_a_slice_equals_a_run_over_its_documents_alone(small_model: Model, sliced: hs.Run, genre: str) -> None:
    own = [document for document in documents() if slice_of(document, "genre") == genre]
    alone = hs.run(small_model, Corpus.of(own), MEASURES, **SETTINGS)
    part = hs.open_run(sliced.results.path or "").slice(genre=genre)
    assert_same_tables(part, alone)
    assert part.results.manifest["counts"]["documents"] == len(own) == sliced.slices[genre]
    assert math.isnan(part["entropy"].table["low"][0]) == (len(own) < 6)
    assert sliced["entropy"].slices.where(genre=genre).without("genre")["value"] == part["entropy"].table["value"]


def test_batches_shards_and_order_change_nothing(small_model: Model, sliced: hs.Run) -> None:
    other = hs.run(small_model, Corpus.of(documents()[::-1]), MEASURES, by="genre", shard_tokens=90, batch_tokens=64, **SETTINGS)
    for genre in GENRES:
        part = other.slice(genre=genre)
        # The order of documents only changes which trees of other sentences a control uses.
        assert_same_tables(part, sliced.slice(genre=genre))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same documents, as lines of text in several files."""
    folder = tmp_path_factory.mktemp("files")
    found = []
    for number in range(3):
        found.append(folder / f"{number}.jsonl")
        rows = [
            {"id": document.id, "text": " ".join(sentence.text for sentence in document.sentences), **document.metadata}
            for document in documents()[number::3]
        ]
        found[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return found


def test_engines_readers_and_resumed_runs_write_the_same_bytes(small_folder: Path, paths: list[Path], tmp_path: Path) -> None:
    settings = {"by": "genre", "shard_tokens": 120, **SETTINGS}
    measures = ["entropy", "tokens"]
    hs.run(small_folder, paths, measures, tmp_path / "local", **settings)
    hs.run(small_folder, paths, measures, tmp_path / "processes", engine="processes", workers=1, readers=2, **settings)
    names = {"model": str(small_folder), "corpus": [str(path) for path in paths], "measures": measures}
    stopped(make_spec({**names, **{name: value for name, value in settings.items() if name != "gallery"}}), tmp_path / "resumed", 2)
    run = hs.run(small_folder, paths, measures, tmp_path / "resumed", resume=True, **settings)
    assert run.results.manifest["counts"]["resumed_shards"] == 2
    assert "tables/entropy.slices.parquet" in files(tmp_path / "local")
    for name in ("processes", "resumed"):
        assert files(tmp_path / name) == files(tmp_path / "local")
    assert hs.rerun(tmp_path / "local").identical
    with pytest.raises(RunError, match="by was 'genre' and is 'year'"):
        hs.run(small_folder, paths, measures, tmp_path / "local", resume=True, **{**settings, "by": "year"})


def test_differences_of_slices_equal_those_of_separate_runs(small_model: Model, sliced: hs.Run) -> None:
    runs = [
        hs.run(small_model, Corpus.of([one for one in documents() if slice_of(one, "genre") == genre]), MEASURES, **SETTINGS)
        for genre in ("news", "diary")
    ]
    separate, found = hs.compare(*runs), hs.compare(*(sliced.slice(genre=genre) for genre in ("news", "diary")))
    assert found.names == ("genre=news", "genre=diary")
    assert found.comparison.how == separate.comparison.how == "as two independent samples of documents"
    for name, table in separate.differences.items():
        other = found.differences[name]
        assert len(other) == len(table) > 0
        for column in ("a", "b", "difference", "low", "high", "p", "documents"):
            assert_allclose(other[column], table[column], rtol=1e-5, atol=1e-6)
    assert any(p <= 1 for p in found.differences["heads"]["p"])  # there are intervals, and p-values are corrected


def test_slices_with_the_same_documents_are_paired(small_model: Model, sliced: hs.Run) -> None:
    assert hs.compare(sliced.slice(genre="news"), sliced.slice(genre="news")).comparison.how.startswith("paired")


def test_any_corpus_has_slices_by_label_subset_speaker_and_length(small_model: Model) -> None:
    words = tuple(Word(form) for form in ["a", "b", "c", "d"])
    plain = Document("x", (Sentence(words, speaker="ann"), Sentence(words, speaker="ann")), label="good", subset="pro")
    assert [slice_of(plain, name) for name in ("label", "subset", "speaker", "length", "genre")] == [
        "good",
        "pro",
        "ann",
        "1-16 words",
        NO_VALUE,
    ]
    assert slice_of(replace(plain, metadata={"label": 3, "genre": ""}), "label") == "3"
    assert slice_of(replace(plain, sentences=(*plain.sentences, Sentence(words, speaker="bob"))), "speaker") == NO_VALUE
    sizes = [bound + extra for bound in LENGTHS for extra in (0, 1)]
    lengths = [slice_of(Document("x", (Sentence(words[:1] * size),)), "length") for size in sizes]
    ranges = ["1-16", "17-64", "17-64", "65-256", "65-256", "257-1024", "257-1024"]
    assert lengths == [*(f"{name} words" for name in ranges), "1025 words or more"]
    assert in_order(lengths[::-1]) == sorted(lengths, key=lambda name: int(name.split("-")[0].split()[0]))
    assert in_order([NO_VALUE, "b", "a10", "a9"]) == ["a9", "a10", "b", NO_VALUE]


def test_a_column_of_slices_is_renamed_if_the_tables_have_a_column_of_its_name(small_model: Model) -> None:
    """Tables of relations have a column `label`, so the column of slices has another name."""
    corpus = Corpus.of(replace(document, label=str(number % 2)) for number, document in enumerate(documents(4)))
    run = hs.run(small_model, corpus, {"relations": {"least": 1}}, by="label", **SETTINGS)
    table = run["relations"].slices
    assert table.columns[:2] == ["document_label", "kind"]
    assert run.slice(label=1)["relations"].table["value"] == table.where(document_label="1")["value"]


@dataclass(frozen=True, kw_only=True)
class Seen(Measure):
    """A user-defined measure of the number of texts per head. It adds only to the state of the whole run."""

    name: ClassVar[str] = "seen"
    summary: ClassVar[str] = "texts"

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        return State({"n": np.zeros(layout.size, dtype=np.int64)}, {"n": "sum"})

    def update(self, state: State, batch: MapBatch) -> None:
        state["n"][batch.layout.slice(batch.index)] += len(batch.documents)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        return {self.name: {"head": [str(id) for id in layout.ids()], "n": state["n"]}}


def test_a_measure_without_slices_is_reported_by_a_warning(small_model: Model) -> None:
    with pytest.warns(HeadscopeWarning, match="seen has no slices"):
        run = hs.run(small_model, Corpus.of(documents(4)), ["entropy", Seen], by="genre", **SETTINGS)
    assert run["seen"].table["n"][0] == run.results.manifest["counts"]["texts"]
    assert run.slice(genre="news").measures == ["entropy"]
    with pytest.raises(RunError, match=r"no table 'seen' of slices\. It has entropy, entropy_layers"):
        _ = run["seen"].slices


def test_invalid_slices_are_refused_with_one_clear_error(small_model: Model, sliced: hs.Run) -> None:
    corpus = Corpus.of(documents())
    with pytest.raises(RunError, match=r"no document of memory has a value in the column 'topic'\. The columns are genre, year, length"):
        hs.run(small_model, corpus, by="topic", **SETTINGS)
    many = Corpus.of(replace(document, id=f"{number}", metadata={"n": number}) for number, document in enumerate(documents(2)[:1] * 40))
    with pytest.raises(RunError, match=f"'n' has 40 different values, and a run has at most {MOST} slices"):
        hs.run(small_model, many, ["entropy"], by="n", **SETTINGS)
    with pytest.raises(RunError, match=r"has no slice genre=law\. It has genre=diary, genre=news, genre="):
        sliced.slice(genre="law")
    with pytest.raises(RunError, match="are by genre, not by year"):
        sliced.slice(year=1990)
    with pytest.raises(RunError, match="the run has no slices"):
        hs.run(small_model, corpus, ["entropy"], limit=2, **SETTINGS).slice(genre="news")
    with pytest.raises(HeadscopeError, match="maps have no column 'genre'"):
        hs.measure(np.full((1, 1, 2, 2), 0.5), ["a", "b"], by="genre")


def output_of(*arguments: object) -> str:
    """The output of a command that succeeds."""
    outcome = CliRunner().invoke(app, [str(one) for one in arguments])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_slices_are_shown_and_compared_on_the_command_line(sliced: hs.Run, paths: list[Path], tmp_path: Path) -> None:
    folder = sliced.results.path
    assert f"slices by genre: diary (6 documents), news (7 documents), {NO_VALUE} (1 document)" in output_of("show", folder)
    rows = json.loads(output_of("show", folder, "entropy", "--where", "genre=news", "--where", "layer=2", "--format", "json"))
    expected = sliced.slice(genre="news")["entropy"].table.where(layer=2)
    assert [row["value"] for row in rows] == expected["value"]
    assert "genre=diary − genre=news" in output_of("compare", folder, "genre=news", "genre=diary", "--quantity", "entropy")
    overall = output_of("compare", folder, "--table", "overall", "--format", "json")
    assert {(row["first"], row["second"]) for row in json.loads(overall)} == {
        ("genre=diary", "genre=news"),
        ("genre=diary", f"genre={NO_VALUE}"),
    }
    spec = tmp_path / "run.toml"
    spec.write_text(f'corpus = "{paths[0]}"\nby = "year"\nlimit = 3\nreplicates = 0\nmeasures = ["entropy"]\n')
    assert "slices by year: 1990" in output_of("run", spec, "--gallery", 0, "-o", tmp_path / "run")
