"""An edge-probing study from a corpus to its tables, and the errors for invalid input."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora import Corpus
from headscope.drawing.theme import render
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.models.sites import find_sites
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.layers import centre_of_gravity, expected_layer
from headscope.studies.edge_probe.join import joined
from headscope.studies.edge_probe.task import Task
from headscope.studies.registry import REGISTRY
from helpers.architectures import build
from helpers.edge_probes import QUICK, short_training
from helpers.families import FAMILIES

pytestmark = pytest.mark.filterwarnings("ignore:.*logistic regression on one layer")  # it beats briefly trained probes


@pytest.fixture(scope="module", autouse=True)
def _short() -> Iterator[None]:
    with short_training():
        yield


def test_tables_agree_with_each_other(edge_study: hs.StudyResult) -> None:
    scores = edge_study["edge_scores"]
    assert len(scores) == 2 * 2 * 13
    for row in edge_study["edge_tasks"]:
        curve = scores.where(task=row["task"], probe="cumulative")
        assert curve["layer"] == list(range(13))
        assert [curve["score"][0], curve["score"][-1]] == [row["embeddings"], row["all_layers"]]
        assert row["expected_layer"] == pytest.approx(float(expected_layer(np.array(curve["score"]))))
        np.testing.assert_allclose(np.diff(curve["score"]), curve["adds"][1:])
        assert math.isnan(curve["adds"][0])
        np.testing.assert_allclose(np.subtract(curve["score"], curve["control"]), curve["selectivity"])
        assert row["selectivity"] == pytest.approx(curve["selectivity"][-1])
        mix = edge_study["edge_mix"].where(task=row["task"])["weight"]
        assert sum(mix) == pytest.approx(1)
        assert row["centre"] == pytest.approx(float(centre_of_gravity(np.array(mix))))
        seeds = edge_study["edge_seeds"].where(task=row["task"])
        assert seeds["seed"] == [0, 1]
        assert np.mean(seeds["all_layers"]) == pytest.approx(row["all_layers"])
        # With layer 0 alone there is nothing to mix: a single probe and a cumulative one are the same.
        alone = scores.where(task=row["task"], probe="single")
        assert alone["score"][0] == curve["score"][0]
        assert alone["linear"] == curve["linear"]
        assert row["task"] != "pos" or min(curve["linear"]) > 0.5
        for table in (curve, alone):
            np.testing.assert_allclose(np.subtract(table["score"], table["linear"]), table["beyond_linear"])
        assert max(curve["documents"]) < 6
        assert all(map(math.isnan, [*curve["low"], *curve["high"]]))
    assert edge_study["summary"]["task"] == edge_study["edge_tasks"]["task"]
    layers = [value for value in edge_study["summary"]["expected_layer"] if value == value]
    assert layers == sorted(layers)


def test_turns_of_examples_agree_with_their_beliefs(edge_study: hs.StudyResult) -> None:
    assert len(edge_study["edge_examples"])
    for row in edge_study["edge_examples"]:
        own = edge_study["edge_beliefs"].where(task=row["task"], example=row["example"])
        belief = {(one["label"], one["layer"]): one["belief"] for one in own}
        before, after = row["before"], row["after"]
        first = belief[before, row["before_layer"]] - belief[after, row["before_layer"]]
        last = belief[after, row["after_layer"]] - belief[before, row["after_layer"]]
        assert row["before_layer"] < row["after_layer"]
        assert min(first, last) == pytest.approx(row["margin"], abs=1e-6)
        assert row["turn"] == ("corrected" if after == row["gold"] else "spoiled" if before == row["gold"] else "changed")
        assert row["text"].count("[") == (2 if row["task"] == "coref" else 1)


def test_an_interrupted_study_resumes_to_identical_tables(
    edge_study: hs.StudyResult, mini_on_cpu: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**QUICK, "tasks": ["pos", "coref"], "single": True}
    run, task_runs = Task.run, []

    def interrupted_run(self: Task, *args: object) -> object:
        task_runs.append(self.name)
        if len(task_runs) == 3:
            raise KeyboardInterrupt
        return run(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Task, "run", interrupted_run)
    with pytest.raises(KeyboardInterrupt):
        hs.probe_edge(mini_on_cpu, "sampler", None, tmp_path / "study", **settings)
    assert (tmp_path / "study" / "states").is_dir()
    with pytest.raises(RunError, match="already holds a run"):
        hs.probe_edge(mini_on_cpu, "sampler", None, tmp_path / "study", **settings)
    again = hs.probe_edge(mini_on_cpu, "sampler", None, tmp_path / "study", resume=True, **settings)
    assert task_runs == ["pos", "pos", "coref", "coref", "coref"]
    assert not (tmp_path / "study" / "states").exists()
    assert again.signature == edge_study.signature
    for name in edge_study.tables:
        assert again[name].to_text("csv") == edge_study[name].to_text("csv")
    opened = hs.probe_edge(mini_on_cpu, "sampler", None, tmp_path / "study", resume=True, **settings)
    assert len(task_runs) == 5
    assert str(opened) == str(hs.open_study(tmp_path / "study"))
    with pytest.raises(RunError, match="seeds was 2 and is 1"):
        hs.probe_edge(mini_on_cpu, "sampler", None, tmp_path / "study", resume=True, **{**settings, "seeds": 1})


def _toy(number: int, words: str, labels: str, other: bool = False) -> Document:
    forms = words.split()
    edges = [Edge("size", (label,), (place, place + 1), (0, 1) if other else None) for place, label in enumerate(labels.split())]
    return Document(f"d{number}", (Sentence(tuple(Word(form) for form in forms)),), edges=tuple(edges))


def test_a_user_defined_task_is_scored_on_dev_and_shown_on_look(mini_on_cpu: object) -> None:
    pairs = [("the cat sat", "short short short"), ("elephants trumpeted loudly", "long long long"), ("a dog ran", "short short short")]
    train = Corpus.of(_toy(number, *pairs[number % 3]) for number in range(9))
    dev = Corpus.of([_toy(0, "the elephants ran", "short long short"), _toy(1, "a cat", "short unheard")])
    look = Corpus.of([_toy(5, "dog trumpeted", "short long")])
    quick = {**QUICK, "checks": 6, "seeds": 1, "hidden": 32}
    study = hs.probe_edge(mini_on_cpu, train, dev, look=look, **quick)  # type: ignore[arg-type]
    (row,) = study["edge_tasks"]
    assert (row["task"], row["labels"], row["trained"], row["n"]) == ("size", 3, 24, 5)
    assert row["published_layer"] is None
    scores = study["edge_scores"].where(probe="cumulative")
    assert max(scores["score"]) <= 2 * 4 / (2 * 4 + 1)  # one of five labels never occurs in training: at most four are found
    given = study["edge_examples"].where(kind="given")
    assert given["text"] == ["[dog] trumpeted", "dog [trumpeted]"]
    assert given["gold"] == ["short", "long"]
    assert "Belief" in render(study.plot("tenney3", "size/1"), "svg").decode()
    with pytest.raises(RunError, match=r"no example size/99.*edge_examples"):
        study.plot("tenney3", "size/99")
    with pytest.raises(RunError, match="nothing to label for deps, xyz"):
        hs.probe_edge(mini_on_cpu, train, tasks=["size", "xyz", "deps"], **quick)  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"memory has nothing to label"):
        hs.probe_edge(mini_on_cpu, Corpus.of([_toy(1, "a b", "")]), **quick)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="too few texts"):
        hs.probe_edge(mini_on_cpu, Corpus.of([_toy(1, "a b", "x y")]), **quick)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="max_length"):
        hs.probe_edge(mini_on_cpu, train, dev, **{**quick, "max_length": 999})  # type: ignore[arg-type]


def test_the_order_of_documents_does_not_change_results(mini_on_cpu: object) -> None:
    texts = [("the cat sat", "x y z"), ("elephants trumpeted loudly", "y y z"), ("a dog ran away", "x y z z"), ("it rained", "x z")]
    documents = [_toy(number, *texts[number % 4]) for number in range(24)]
    quick = {**QUICK, "seeds": 1, "checks": 3, "limit_dev": 3, "cache_dtype": "float32"}
    one, other = (hs.probe_edge(mini_on_cpu, Corpus.of(order), **quick) for order in (documents, documents[::-1]))  # type: ignore[arg-type]
    for name in ("edge_scores", "edge_mix", "edge_tasks"):
        for column in one[name].columns:
            left, right = one[name][column], other[name][column]
            if isinstance(left[0], float):
                np.testing.assert_allclose(left, right, atol=1e-5)
            else:
                assert left == right


@pytest.mark.parametrize(("architecture", "tokenizer"), [("gpt2", "gpt2"), ("t5", "t5")])
def test_decoders_and_encoder_decoders_are_probed_in_every_layer(architecture: str, tokenizer: str) -> None:
    tokens = FAMILIES[tokenizer]()
    network = build(architecture, vocabulary=len(tokens))
    tiny = Model(architecture, network, Tokenizer(tokens), *find_sites(network))
    train = Corpus.of(_toy(number, "the unbelievable words split", "x y z z", other=True) for number in range(8))
    study = hs.probe_edge(tiny, train, **{**QUICK, "seeds": 1, "checks": 20, "rate": 0.02, "batch": 1, "hidden": 32})  # type: ignore[arg-type]
    assert study["edge_mix"]["layer"] == [0, 1, 2]
    assert study["edge_tasks"]["all_layers"] == [1.0]  # labels depend on the words, which every layer encodes


def _without_baseline(table: Table) -> Table:
    """The table without the columns of the linear baseline."""
    return Table(table.arrow.select([name for name in table.columns if "linear" not in name]))


def test_joined_studies_list_tasks_in_the_order_of_expected_layers(edge_study: hs.StudyResult, mini_on_cpu: object, tmp_path: Path) -> None:
    train = Corpus.of(_toy(number, "a cat sat", "x y y", other=True) for number in range(6))
    other = hs.probe_edge(mini_on_cpu, train, **{**QUICK, "seeds": 1, "control": False, "examples": 0})  # type: ignore[arg-type]
    assert len(other["edge_examples"]) == 0
    with pytest.raises(RunError, match="the study has no examples"):
        other.plot("tenney3")
    assert "size: F1" in str(other)
    earlier = {name: _without_baseline(other[name]) for name in other.results}
    whole = joined([edge_study.results, Results(other.results.manifest, earlier, None, states={})], tmp_path / "all")
    assert [row["linear"] for row in whole["edge_scores"].where(task="size")] == [None] * 13
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "all"), "edge_scores"])
    assert shown.exit_code == 0, shown.output
    assert sorted(whole["summary"]["task"]) == ["coref", "pos", "size"]
    layers = [value for value in whole["summary"]["expected_layer"] if value == value]
    assert layers == sorted(layers)
    opened = hs.open_study(tmp_path / "all")
    assert len(opened["edge_mix"]) == 3 * 13
    assert "joined:2 studies" in opened.signature
    for figure in ("tenney1", "tenney2", "layerscores"):
        drawn = render(opened.plot(figure), "svg").decode()
        assert "size" in drawn
        assert "Coreference" in drawn
    for wrong, match in (([edge_study.results], "one study"), ([edge_study.results] * 2, "coref is in more than one")):
        with pytest.raises(RunError, match=match):
            joined(wrong)
    REGISTRY["edge_probe"].refuse_rerun(edge_study.results)
    with pytest.raises(RunError, match=r"all was joined from several studies. Rerun those, each in its own folder"):
        REGISTRY["edge_probe"].refuse_rerun(opened.results)


def test_the_command_prints_findings_and_warnings_and_draws_figures(tmp_path: Path) -> None:
    lines = [
        {"text": text, "targets": [{"span1": [0, 1], "label": "short"}, {"span1": [1, 2], "label": "long"}]}
        for text in ("a hippopotamus", "the crocodile", "one elephant", "my rhinoceros", "her grasshopper", "no armadillo") * 2
    ]
    path = tmp_path / "toy.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out"
    options = [
        "probe",
        "edge",
        "--corpus",
        str(path),
        "--seeds",
        "1",
        "--checks",
        "2",
        "--rate",
        "0.00001",
        "--replicates",
        "0",
        "--hidden",
        "8",
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "spans: F1" in done.output
    warning = "warning: spans: a logistic regression on one layer scores up to"
    assert warning in done.output
    assert warning in CliRunner().invoke(app, ["show", str(out)]).output
    page = CliRunner().invoke(app, ["report", str(out), "-o", str(tmp_path / "page.html")])
    assert page.exit_code == 0, page.output
    assert warning.removeprefix("warning: ") in (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["show", str(out), "edge_scores", "--format", "csv"])
    assert shown.output.count("cumulative") == 13
    drawn = CliRunner().invoke(app, ["plot", str(out), "tenney2", "-o", str(tmp_path / "f.svg")])
    assert drawn.exit_code == 0
    assert (tmp_path / "f.svg").stat().st_size > 1000


def test_presets_set_the_recipe_and_invalid_settings_are_refused() -> None:
    make = REGISTRY["edge_probe"].make
    spec = make({"preset": "reference"})
    assert (spec.recipe("pos").rate, spec.recipe("pos").check_every, spec.recipe("pos").checks) == (1e-4, 1000, 250)
    assert (spec.recipe("spr").check_every, spec.recipe("spr").checks, spec.recipe("spr").stop_after) == (100, 100, 21)
    assert spec.resolved(("pos",)).select == "dev"
    for apart in (None, -1):  # mentions any number of sentences apart
        assert make({"apart": apart}).apart is None
        assert make({"apart": apart}).resolved(("coref",)).unit == "document"
    assert make({"rate": 0.5}).recipe("pos").rate == 0.5
    assert (make({"limit": 0}).limit, make({"limit_dev": 0}).limit_dev) == (None, None)
    for settings, match in (
        ({"tasks": []}, "at least one"),
        ({"negatives": "abs"}, "negatives"),
        ({"tusks": 1}, "there is no setting"),
        ({"apart": -2}, "apart = -2"),
    ):
        with pytest.raises(RunError, match=match):
            make(settings)


@pytest.mark.parametrize(
    ("path", "task", "slots"),
    [("probing/uds_spr-dev.jsonl.xz", "spr", 2), ("probing/wnut17-dev.conll.xz", "entities", 1)],
)
def test_real_corpora_are_probed_for_their_annotated_task(data: Path, mini_on_cpu: object, path: str, task: str, slots: int) -> None:
    quick = {**QUICK, "limit": 40, "checks": 1, "seeds": 1, "control": False, "examples": 2}
    study = hs.probe_edge(mini_on_cpu, data / path, **quick)  # type: ignore[arg-type]
    (row,) = study["edge_tasks"]
    assert row["task"] == task
    assert row["trained"] > row["n"] > 0
    assert row["published_layer"] is not None
    for example in study["edge_examples"]:
        assert example["text"].count("[") >= slots
