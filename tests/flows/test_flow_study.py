"""The whole flow study: from a corpus and a model to a folder of tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoder
from headscope.errors import RunError
from headscope.models.jacobian.flow import flow
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.stats.bootstrap import group_of
from headscope.studies.execute import execute
from headscope.studies.flow.trees import TreeDistances, held_out
from headscope.studies.registry import REGISTRY

SETTINGS: dict[str, Any] = {"limit": 9, "items": 10, "replicates": 50, "norm": "sum", "measures": ["A", "G"], "context": 32}


@pytest.fixture(scope="module")
def whole(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return execute("flow", SETTINGS, tmp_path_factory.mktemp("flow") / "whole", model=mini)


def numbers(results: Results) -> dict[str, list[dict[str, Any]]]:
    """All tables with the printed form of each value, so that NaN equals NaN."""
    return {name: [{key: repr(value) for key, value in row.items()} for row in results[name]] for name in results}


def test_a_study_of_the_sampler_has_the_tables_of_all_parts(whole: Results) -> None:
    assert list(whole) == [
        "summary", "flow_coreference", "flow_coreference_headline", "flow_coreference_distances", "flow_coreference_items",
        "flow_coreference_values", "flow_classes", "flow_class_contrasts", "flow_class_headlines", "flow_class_values",
        "flow_tree_distances", "flow_tree_distances_chains", "flow_tree_distances_subsets", "flow_attachment",
        "flow_agreement", "flow_precision",
    ]  # fmt: skip
    assert len(whole["flow_coreference_items"]) == 2 * 10
    assert whole["flow_coreference_items"].where(measure="A", same=True)["same"].count(True) == 5
    assert len(whole["flow_coreference_values"]) == 2 * 10 * 12
    assert set(whole["flow_precision"]["relative_error"]) == {0.0}, "the sum norm is exact"
    assert len(set(whole["flow_classes"].where(measure="A", **{"class": "open"})["documents"])) == 1
    assert max(whole["flow_classes"]["documents"]) > 4, "sentences are drawn from all documents"
    parts = dict.fromkeys(whole["summary"]["part"])
    assert list(parts) == ["coreference", "classes", "trees", "attachment", "agreement"]
    assert whole.manifest["study"] == "flow"
    assert Results.open(whole.path or Path()).signature == whole.signature


def test_tree_correlations_equal_those_of_sentences_run_one_by_one(mini: Model, whole: Results) -> None:
    """The row of a layer is the mean over sentences. Each sentence is a separate input of the model."""
    spec = REGISTRY["flow"].make({**SETTINGS, "limit": None, "parts": ["trees"], "measures": ["A"]})
    few = Corpus.of([Document(document.id, document.sentences[:2]) for document in list(read("sampler"))[:3]])
    found = execute("flow", spec, model=mini, corpus=few)["flow_tree_distances"]
    by_hand = TreeDistances()
    for text in Encoder(mini.tokenizer).texts(few, Tally()):
        by_hand.observe(text, flow(mini, text, ("A",)).values)
    expected = by_hand.tables()["tree_distances"]
    for column in ("value", "n", "sentences"):
        assert found[column] == expected[column]


def test_a_stopped_study_is_resumed_with_the_same_numbers(mini: Model, whole: Results, tmp_path: Path) -> None:
    out = tmp_path / "stopped"

    def stop(share: float | None, texts: int, tokens: int) -> None:
        if texts > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute("flow", SETTINGS, out, model=mini, progress=stop)
    with pytest.raises(RunError, match="not finished"):
        Results.open(out)
    with pytest.raises(RunError, match=r"already holds a run.*--resume"):
        execute("flow", SETTINGS, out, model=mini)
    with pytest.raises(RunError, match="norm was 'sum' and is 'mean'"):
        execute("flow", {**SETTINGS, "norm": "mean"}, out, model=mini, resume=True)
    shares: list[float] = []
    resumed = execute("flow", SETTINGS, out, model=mini, resume=True, progress=lambda share, *_: shares.append(share or 0.0))
    assert resumed.manifest["counts"]["resumed_shards"] >= 1
    assert numbers(resumed) == numbers(whole)
    assert shares == sorted(shares)
    assert shares[-1] <= 1


def test_the_order_of_documents_changes_nothing(mini: Model) -> None:
    settings = {**SETTINGS, "limit": None, "items": 8, "draw": "balanced", "replicates": 20, "parts": ["classes", "agreement"]}
    documents = [Document(document.id, document.sentences[:3]) for document in list(read("sampler"))[:4]]
    one, other = (execute("flow", settings, model=mini, corpus=Corpus.of(order)) for order in (documents, documents[::-1]))
    for name in ("flow_classes", "flow_agreement"):
        for left, right in zip(one[name], other[name], strict=True):
            for key, value in left.items():
                assert repr(value) == repr(right[key]) or math.isclose(value, right[key], rel_tol=1e-9, abs_tol=1e-12)


def test_sketches_depend_only_on_the_text_and_report_their_error(mini: Model) -> None:
    settings = {**SETTINGS, "limit": None, "measures": ["G"], "norm": "frobenius", "method": "sketch", "probes": 4, "parts": ["classes"]}
    documents = [Document(document.id, tuple(sorted(document.sentences, key=len)[:1])) for document in list(read("sampler"))[:2]]
    both = execute("flow", settings, model=mini, corpus=Corpus.of(documents))
    errors = both["flow_precision"]["relative_error"]
    assert all(0.05 < error < 0.6 for error in errors)
    assert any("sketched with 4 probes" in note for note in both.manifest["notes"])
    again = execute("flow", settings, model=mini, corpus=Corpus.of(documents[::-1]))
    np.testing.assert_allclose(again["flow_classes"]["value"], both["flow_classes"]["value"], rtol=1e-6)


def test_unannotated_parts_are_omitted_or_refused_and_wrong_settings_are_refused(mini: Model, tmp_path: Path) -> None:
    bare = tmp_path / "bare.txt"
    bare.write_text("The dog barked at it.\n\nIt ran away.\n")
    plain = execute("flow", {**SETTINGS, "corpus": str(bare)}, model=mini)
    assert plain.manifest["settings"]["parts"] == ["agreement"]
    for settings, message in (
        ({"corpus": str(bare), "parts": ["trees"]}, "trees needs trees, and .* has none.*leave trees out of --parts"),
        ({"corpus": str(bare), "parts": ["coreference"]}, "coreference needs mentions"),
        ({"parts": ["agreement"], "measures": ["A"]}, "agreement compares measures, and only one was requested"),
        ({"max_length": 1000}, "max_length is 1000, but mini ends at"),
    ):
        with pytest.raises(RunError, match=message):
            execute("flow", {**SETTINGS, **settings}, model=mini)
    for settings, message in (
        ({"measures": list[str]()}, "name at least one"),
        ({"measures": ["B"]}, "measures.0 = 'B'"),
        ({"colour": 1}, "there is no setting 'colour'"),
        ({"probes": 1}, "probes = 1"),
    ):
        with pytest.raises(RunError, match=message):
            REGISTRY["flow"].make({**SETTINGS, **settings})


def test_the_reference_preset_sets_defaults_that_settings_override(mini: Model) -> None:
    spec = REGISTRY["flow"].make({"preset": "reference"}).resolved({"mentions", "trees", "parts of speech"})
    assert (spec.norm, spec.draw, spec.deletion, spec.labels, spec.resample, spec.pick) == (
        "sum", "alternating", "listwise", "whole", "sentence", "first",
    )  # fmt: skip
    own = REGISTRY["flow"].make({"preset": "reference", "norm": "spectral"}).resolved(set())
    assert (own.norm, own.parts) == ("spectral", ("agreement",))


def test_train_mode_of_a_model_without_dropout_is_noted() -> None:
    settings = {**SETTINGS, "limit": 2, "measures": ["A"], "parts": ["trees"]}
    model = load("mini")
    trained, evaluated = (execute("flow", {**settings, "mode": mode}, model=model) for mode in ("train", "eval"))
    assert trained.manifest["notes"] == [
        "mode train: mini has no dropout, so train mode changes nothing: all numbers are those of mode eval"
    ]
    assert evaluated.manifest["notes"] == []
    assert trained["flow_tree_distances"]["value"] == evaluated["flow_tree_distances"]["value"]


def test_columns_are_recovered_from_merged_states() -> None:
    first, second = StateColumns(), StateColumns()
    for kept, words in ((first, ["naïve", ""]), (second, ["日本"])):
        kept.add_words("word", words)
        kept.add("values/A", np.arange(2.0 * len(words)).reshape(-1, 2))
    again = StateColumns(first.state.merge(second.state))
    assert again.words("word") == ["naïve", "", "日本"]
    assert again.numbers("values/A").tolist() == [[0, 1], [2, 3], [0, 1]]
    assert again.under("values/") == ["A"]
    assert (again.words("none"), again.numbers("none").tolist()) == ([], [])


def test_the_best_layer_is_chosen_on_other_documents() -> None:
    names = [f"d{number}" for number in range(40)]
    zero = next(name for name in names if group_of(name, 2) == 0)
    one = next(name for name in names if group_of(name, 2) == 1)
    values = np.array([[5.0, 1.0], [2.0, 9.0], [3.0, 4.0]])  # by sentence and layer
    found = held_out(values, [zero, one, one])
    assert found.tolist() == [1.0, 2.0, 3.0], "each group has the layer that is best on the other: 0 the second, 1 the first"
    assert np.isnan(held_out(values, [zero] * 3)).all()


def test_rollout_and_norms_can_be_studied_like_attention(mini: Model) -> None:
    found = execute(
        "flow",
        REGISTRY["flow"].make({**SETTINGS, "limit": 3, "measures": ["A", "rollout", "norms"], "parts": ["trees", "agreement"]}),
        model=mini,
    )
    assert set(found["flow_tree_distances"]["measure"]) == {"A", "rollout", "norms"}
    assert len(found["flow_agreement"].where(over="entries", layer=1)) == 3
