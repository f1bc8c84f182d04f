"""A study of ablation from a model and a corpus to its tables, compared with plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import headscope as hs
from headscope.core.document import Document
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import HeadscopeWarning, RunError
from headscope.models.answers import ask, asking_inputs
from headscope.models.gates import gated, gates_without
from headscope.models.importance import importance
from headscope.models.load import load_tokenizer
from headscope.models.loading.locate import locate
from headscope.models.model import Model
from headscope.results.table import Table
from headscope.stats.bootstrap import group_of
from headscope.stats.classification import KeyphraseF1
from headscope.stats.scores import Function, Mean, Perplexity
from headscope.studies.ablation.answers import baseline_warning, columns_of, constant_baseline, scored
from headscope.studies.ablation.prune import ascending, whole_groups
from headscope.studies.ablation.pruning_curves import Curves, prunable_table
from headscope.studies.ablation.spec import OWN
from headscope.studies.ablation.tables import Systems, removal
from headscope.studies.execute import execute
from headscope.studies.registry import REGISTRY
from headscope.views.words import findings
from helpers.predicting import CORPUS, loaded

SETTINGS: dict[str, Any] = {"replicates": 40, "orders": 1, "steps": 3, "mask_share": 0.4}
MANY = Corpus.of(replace(document, id=f"{document.id}x{copy}") for copy in range(4) for document in CORPUS)


@pytest.fixture(scope="module", params=["bert", "bert classes", "bert tags", "gpt2"])
def predicting_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return loaded(tmp_path_factory.mktemp("models"), request.param)


def texts_of(model: Model) -> list[Encoded]:
    unit: Any = "document" if model.classes else "sentence"
    encoder = Encoder(model.tokenizer, unit=unit, labelled=model.objective == "classes", tags=model.tagging)
    return [text for text in encoder.texts(MANY, Tally()) if model.predicts(text)]


def plain(model: Model, texts: list[Encoded], heads: list[HeadId]) -> tuple[float, float]:
    """Loss per prediction and accuracy without some heads: the whole model on one text at a time, without a cache."""
    losses, right = [], []
    assert model.whole is not None
    for text in texts:
        asked = ask(model, [text], 0.4, "0/0")
        with torch.no_grad(), gated(model, gates_without(model, heads)):
            logits = model.whole(**asking_inputs(model, [text], asked), use_cache=False).logits
        chosen = logits if model.objective == "classes" else logits[0, torch.from_numpy(asked.places)]
        labels = torch.from_numpy(asked.labels)
        losses += torch.nn.functional.cross_entropy(chosen, labels, reduction="none").tolist()
        right += (chosen.argmax(-1) == labels).tolist()
    return float(np.mean(losses)), float(np.mean(right))


def test_scores_without_heads_without_layers_and_with_one_head_equal_a_plain_loop(predicting_model: Model) -> None:
    texts = texts_of(predicting_model)
    found = execute(
        "ablation", {**SETTINGS, "score": "loss", "parts": ["heads", "all_but_one", "layers"]}, model=predicting_model, corpus=MANY
    )
    base, _ = plain(predicting_model, texts, [])
    assert found["summary"]["value"][0] == pytest.approx(base, rel=1e-5)
    ids = predicting_model.layout.ids()
    for row, head in zip(found["ablation"], ids, strict=True):
        assert (row["kind"], row["layer"], row["head"]) == (head.kind, head.layer + 1, head.head + 1)
        assert row["score"] == pytest.approx(plain(predicting_model, texts, [head])[0], rel=1e-5)
        assert row["difference"] == pytest.approx(row["score"] - base, abs=1e-5)
    for number, row in enumerate(found["ablation_layers"]):
        assert row["score"] == pytest.approx(plain(predicting_model, texts, ids[predicting_model.layout.slice(number)])[0], rel=1e-5)
    for row in found["ablation_all_but_one"].where(selection="in-sample"):
        own = ids[predicting_model.layout.slice(row["layer"] - 1)]
        each = [plain(predicting_model, texts, [other for other in own if other != head])[0] for head in own]
        assert row["best"] == int(np.argmin(each)) + 1
        assert row["score"] == pytest.approx(min(each), rel=1e-5)


def test_heads_that_share_a_key_and_value_are_pruned_together() -> None:
    alone = HeadLayout((Site("encoder", 0, 3, 3, ""), Site("encoder", 1, 2, 2, "")))
    assert whole_groups([4, 2, 0, 1, 3], alone, 3) == [4, 2, 0]
    pairs = HeadLayout((Site("decoder", 0, 4, 2, ""), Site("decoder", 1, 2, 1, "")))
    order = [4, 0, 2, 3, 5, 1]  # mean places in the order: 3 of heads 0 and 1, 2.5 of heads 2 and 3, 2 of heads 4 and 5
    assert whole_groups(order, pairs, 5) == [4, 5, 2, 3]
    assert whole_groups(order, pairs, 1) == []


def test_the_loss_of_a_trained_decoder_equals_that_of_transformers() -> None:
    first = next(iter(read("sampler")))
    corpus = Corpus.of([Document(first.id, first.sentences[:3])])
    found = hs.ablate("mini-decoder", corpus, parts=["layers"], replicates=0).results
    whole = AutoModelForCausalLM.from_pretrained(locate("mini-decoder").place, dtype=torch.float32).eval()
    tokenizer = load_tokenizer("mini-decoder")
    with torch.no_grad():
        ids = [torch.tensor(np.array([text.ids])) for text in Encoder(tokenizer).texts(corpus, Tally())]
        losses = [float(whole(each, labels=each).loss) * (each.shape[1] - 1) for each in ids]
    expected = sum(losses) / sum(each.shape[1] - 1 for each in ids)
    assert found["summary"]["value"][0] == pytest.approx(expected, rel=1e-5)
    assert 3 < expected < 6, "the model is trained: a uniform guess has a loss of 9.01"
    assert max(found["ablation_layers"]["difference"]) > 0.1


def test_the_head_that_is_kept_is_chosen_on_the_other_half_of_the_documents(predicting_model: Model) -> None:
    texts = texts_of(predicting_model)
    found = execute("ablation", {**SETTINGS, "score": "loss", "parts": ["all_but_one"]}, model=predicting_model, corpus=MANY)
    ids = predicting_model.layout.ids()[predicting_model.layout.slice(0)]
    halves = [[text for text in texts if group_of(text.document, 2) == fold] for fold in (0, 1)]
    assert all(halves)

    def kept(head: HeadId, some: list[Encoded]) -> float:
        return plain(predicting_model, some, [other for other in ids if other != head])[0]

    best = [min(ids, key=lambda head: kept(head, halves[1 - fold])) for fold in (0, 1)]
    sizes = [sum(len(ask(predicting_model, [text], 0.4, "0/0").labels) for text in half) for half in halves]
    expected = sum(kept(head, half) * size for head, half, size in zip(best, halves, sizes, strict=True)) / sum(sizes)
    row = next(iter(found["ablation_all_but_one"].where(selection="held-out", layer=1)))
    assert row["score"] == pytest.approx(expected, rel=1e-5)
    assert row["chosen"] == " ".join(dict.fromkeys(str(head.head + 1) for head in best))


def test_pruning_orders_are_scored_on_documents_they_were_not_chosen_on(predicting_model: Model) -> None:
    texts = texts_of(predicting_model)
    found = execute("ablation", {**SETTINGS, "score": "loss", "parts": ["heads", "pruning"]}, model=predicting_model, corpus=MANY)
    first, second = ([text for text in texts if group_of(text.document, 2) == fold] for fold in (0, 1))
    ids = predicting_model.layout.ids()
    base, _ = plain(predicting_model, first, [])
    harm = [plain(predicting_model, first, [head])[0] - base for head in ids]
    order = sorted(range(len(ids)), key=lambda place: harm[place])
    rows = list(found["pruning"].where(order="drop"))
    assert [row["heads"] for row in rows] == [4, 8, 12]
    for row in rows:
        gone = [ids[place] for place in order[: row["heads"]]]
        assert row["score"] == pytest.approx(plain(predicting_model, second, gone)[0], rel=1e-4)
        assert row["n"] == len(second)
    assert rows[-1]["score"] == pytest.approx(next(iter(found["pruning"].where(order="random 1", heads=12)))["score"])


def test_most_first_prunes_the_heads_with_the_largest_effect_first(predicting_model: Model) -> None:
    """The heads whose removal changes the loss most are pruned first: the reverse of the usual order."""
    settings = {**SETTINGS, "score": "loss", "parts": ["heads", "pruning"], "most_first": True, "orders": 0}
    found = execute("ablation", settings, model=predicting_model, corpus=MANY)
    assert list(dict.fromkeys(found["pruning"]["order"])) == ["importance", "drop", "importance, most first", "drop, most first"]
    assert found["prunable"]["order"] == ["importance", "drop"]
    texts = [text for text in texts_of(predicting_model) if group_of(text.document, 2) == 1]
    some = [text for text in texts_of(predicting_model) if group_of(text.document, 2) == 0]
    ids = predicting_model.layout.ids()
    harm = [plain(predicting_model, some, [head])[0] for head in ids]
    worst = sorted(range(len(ids)), key=lambda place: harm[place])[::-1][:4]
    row = next(iter(found["pruning"].where(order="drop, most first", heads=4)))
    assert row["score"] == pytest.approx(plain(predicting_model, texts, [ids[place] for place in worst])[0], rel=1e-4)
    whole = [next(iter(found["pruning"].where(order=order, heads=12)))["score"] for order in ("drop", "drop, most first")]
    assert whole[0] == pytest.approx(whole[1])


def test_the_accuracy_of_a_classifier_equals_a_plain_loop(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert classes")
    texts = texts_of(model)
    found = execute("ablation", {**SETTINGS, "parts": ["heads", "importance"]}, model=model, corpus=MANY)
    assert found.manifest["settings"]["score"] == "accuracy"
    for row, head in zip(found["ablation"], model.layout.ids(), strict=True):
        assert row["score"] == pytest.approx(plain(model, texts, [head])[1])
        assert row["test"] == "mcnemar"
    values = np.array(found["importance"]["importance"]).reshape(3, 4)
    np.testing.assert_allclose((values**2).sum(1), 1)
    assert sorted(found["importance"]["rank"]) == [*range(1, 13)]
    assert set(found["importance_correlation"]["method"]) == {"pearson", "spearman"}


def predicted_and_true_tags(model: Model, text: Encoded, heads: list[HeadId]) -> tuple[list[str], list[str]]:
    """The predicted tags of a text's words without some heads, and the true tags."""
    assert model.whole is not None
    places = [text.word_of.index(word) for word in range(len(text.words))]
    with torch.no_grad(), gated(model, gates_without(model, heads)):
        numbers = model.whole(**model.inputs([text])).logits[0].argmax(-1)
    return [model.whole.config.id2label[int(numbers[place])] for place in places], [str(tag) for tag in text.tags]


@pytest.mark.parametrize("level", ["token", "span"])
def test_the_f1_of_a_keyphrase_tagger_equals_a_plain_loop(tmp_path: Path, level: Any) -> None:
    """F1 of words and of phrases, from the tags that the model predicts for one text at a time."""
    model = loaded(tmp_path, "bert tags")
    assert model.tagging == "keyphrases"
    texts = texts_of(model)
    assert model.whole is not None
    with torch.no_grad():  # so that no tag is predicted more often than the others
        model.whole.classifier.bias -= model.whole(**model.inputs(texts)).logits.mean((0, 1))
    assert len(texts) == len(list(MANY))
    score = KeyphraseF1(level)
    settings = {"score": score.name, "parts": ["heads", "importance", "pruning"], "replicates": 20, "orders": 0}
    found = execute("ablation", settings, model=model, corpus=MANY)
    assert (found.manifest["settings"]["tags"], found.manifest["settings"]["unit"]) == ("keyphrases", "document")
    seen = set()
    for row, head in zip(found["ablation"], model.layout.ids(), strict=True):
        pairs = [predicted_and_true_tags(model, text, [head]) for text in texts]
        assert row["score"] == pytest.approx(float(score.of(score.statistics(*zip(*pairs, strict=True)))))
        seen.add(row["score"])
    assert len(seen) > 1
    assert set(found["ablation"]["test"]) == {"bootstrap"}
    assert len(found["importance"]) == 12


def test_a_tagger_that_finds_nothing_gets_a_warning_and_no_findings(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert tags")
    assert model.whole is not None
    with torch.no_grad():  # so that every word is tagged O
        model.whole.classifier.bias[model.classes["O"]] += 100
    found = execute("ablation", {"parts": ["heads", "pruning"], "replicates": 0, "orders": 0, "steps": 2}, model=model, corpus=MANY)
    (warning,) = found.manifest["warnings"][-1:]
    assert (
        "keyphrase_tokens of the whole model is 0.0000, no better than its lowest value (0.0000): the model has nothing to lose" in warning
    )
    assert findings(found) == []
    assert found["summary"]["value"][0] == 0
    assert np.isnan(found["summary"]["value"][1:]).all()
    assert np.isnan(found["prunable"]["share"]).all()
    assert len(found["ablation"]) == 12


def test_the_constant_baseline_of_each_score_by_hand(tmp_path: Path) -> None:
    """Three of four texts have the second class: the same answer for all texts is right for three."""
    model = loaded(tmp_path, "bert classes")
    assert model.classes == {"bad": 0, "fair": 1, "good": 2}
    table = np.zeros((4, len(columns_of(model))))
    table[:, columns_of(model).index("truth")] = [0, 1, 1, 1]
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    expected = {"accuracy": 0.75, "f1_macro": 3 / 7, "matthews": 0.0, "loss": entropy}
    for name, value in expected.items():
        score, _ = scored(name, table, model)
        baseline = constant_baseline(score, table, model)
        assert baseline is not None
        assert baseline.value == pytest.approx(value), name
        slightly = 0.01 if score.better == "higher" else -0.01
        assert baseline_warning(score, baseline.value + slightly, table, model) is None
        assert baseline_warning(score, baseline.value, table, model) is not None
        assert baseline_warning(score, baseline.value - slightly, table, model) is not None
    accuracy, _ = scored("accuracy", table, model)
    assert "no better than the answer 'fair' to every text (0.7500)" in str(baseline_warning(accuracy, 0.5, table, model))
    guessing = loaded(tmp_path, "gpt2")
    pieces = np.zeros((4, len(columns_of(guessing))))
    found = constant_baseline(Perplexity(), pieces, guessing)
    assert found is not None
    assert found.value == pytest.approx(guessing.answers)
    assert constant_baseline(Function(lambda _: 0.0, columns_of(guessing), OWN), pieces, guessing) is None


def test_a_tagger_needs_a_corpus_with_its_tags(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert tags")
    bare = Corpus.of([replace(document, keyphrases=()) for document in CORPUS])
    with pytest.raises(RunError, match="tags words by keyphrases, and sampler has no keyphrases"):
        execute("ablation", {}, model=model, corpus=bare)
    with pytest.raises(RunError, match="does not tag words by upos"):
        execute("ablation", {"tags": "upos"}, model=model, corpus=MANY)
    some = Corpus.of([*CORPUS, replace(next(iter(bare)), id="none")])
    found = execute("ablation", {"parts": ["layers"], "replicates": 0}, model=model, corpus=some)
    assert found.manifest["dropped"] == ["1 texts without a keyphrase skipped (first: none)"]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_importance_over_batches_sums_gradients_of_texts_in_corpus_order(predicting_model: Model, size: int) -> None:
    """Gradients are summed over `size` texts in the order of the corpus; `batch_tokens` does not change the sums."""
    settings = {**SETTINGS, "parts": ["importance"], "abs_over": "batch", "batch_texts": size, "normalise": "none"}
    texts = texts_of(predicting_model)
    slopes = importance(predicting_model, texts, share=0.4).slopes
    sums = [np.abs(slopes[start : start + size].sum(0)) for start in range(0, len(texts), size)]
    for tokens in (16, 4096):
        found = execute("ablation", {**settings, "batch_tokens": tokens}, model=predicting_model, corpus=MANY)
        np.testing.assert_allclose(found["importance"]["importance"], sum(sums) / len(texts), rtol=1e-4, atol=1e-6)


def test_a_user_defined_score_is_used_but_cannot_be_rerun(tmp_path: Path) -> None:
    """A function that computes accuracy gives the same scores as the built-in accuracy."""
    model = loaded(tmp_path, "bert classes")

    def right(table: np.ndarray) -> float:
        return float((table[:, 3] == table[:, 4]).mean())

    settings: dict[str, Any] = {"parts": ["heads", "layers"], "replicates": 20}
    own = hs.ablate(model, MANY, score=right, **settings)
    with pytest.warns(HeadscopeWarning, match="accuracy of the whole model is 0.2000, no better than the answer 'fair' to every text"):
        built_in = hs.ablate(model, MANY, **settings)
    assert own["ablation"]["score"] == pytest.approx(built_in["ablation"]["score"])
    assert own["ablation"]["test"][0] == "bootstrap"
    with pytest.raises(RunError, match="Give both"):
        hs.ablate(model, MANY, score="own", **settings)
    with pytest.raises(RunError, match="Give both"):
        hs.ablate(model, MANY, score="accuracy", function=right, **settings)
    with pytest.raises(RunError, match=r"scored by your own function, which is not saved. Call headscope.ablate"):
        REGISTRY["ablation"].refuse_rerun(own.results)
    REGISTRY["ablation"].refuse_rerun(built_in.results)


@pytest.mark.parametrize("score", ["loss", "masked_accuracy"])
def test_replicates_of_differences_agree_with_the_tables(tmp_path: Path, score: str) -> None:
    """Their values are the differences of the tables, and their bounds are the intervals."""
    model = loaded(tmp_path, "bert")
    found = execute("ablation", {**SETTINGS, "score": score, "parts": ["heads", "layers"]}, model=model, corpus=MANY)
    replicates = REGISTRY["ablation"].replicates(found)
    assert list(replicates) == ["ablation", "ablation_layers"]
    for name, keys in (("ablation", ("kind", "layer", "head")), ("ablation_layers", ("kind", "layer"))):
        assert len(replicates[name]) == len(found[name])
        for row in found[name]:
            numbers = replicates[name][tuple(row[key] for key in keys)].numbers
            assert numbers.values[0, 0] == pytest.approx(row["difference"])
            np.testing.assert_allclose(np.ravel(numbers.bounds()), [row["low"], row["high"]])
    without = execute("ablation", {**SETTINGS, "parts": ["layers"], "replicates": 0}, model=model, corpus=MANY)
    assert REGISTRY["ablation"].replicates(without) == {}


def test_mean_replacement_differs_from_zeros_and_batches_do_not_change_it(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    spec = {**SETTINGS, "parts": ["heads"], "how": "mean"}
    one, other = (execute("ablation", {**spec, "batch_tokens": size}, model=model, corpus=MANY) for size in (12, 2000))
    np.testing.assert_allclose(one["ablation"]["score"], other["ablation"]["score"], rtol=1e-5)
    zero = execute("ablation", {**spec, "how": "zero"}, model=model, corpus=MANY)
    assert not np.allclose(zero["ablation"]["score"], one["ablation"]["score"], rtol=1e-4)


def test_translations_are_scored_without_each_head(tmp_path: Path) -> None:
    """A random model translates badly, but the removal of a head changes the score."""
    pytest.importorskip("sacrebleu")
    model = loaded(tmp_path, "bart")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(f'{{"id": "{n}", "source": "The cat sat .", "target": "The dog sat on a mat ."}}\n' for n in range(3)))
    settings = {**SETTINGS, "corpus": str(pairs), "score": "chrf", "beams": 2, "max_length": 32, "parts": ["heads"]}
    found = execute("ablation", settings, model=model)
    assert len(found["ablation"]) == 3 * 4 + 2 * 3 + 2 * 3
    assert {*found["ablation"]["kind"]} == {"encoder", "decoder", "cross"}
    assert any(found["ablation"]["difference"])
    with pytest.raises(RunError, match=r"sampler has no pairs of texts.*the keys a and b or .* or source and target"):
        execute("ablation", {"score": "bleu", "max_length": 32}, model=model, corpus=MANY)


def test_invalid_scores_corpora_and_settings_are_refused(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    for settings, message in (
        ({"score": "accuracy"}, "cannot be scored by accuracy. Use one of loss, masked_accuracy, perplexity"),
        ({"max_length": 4000}, "max_length is 4000"),
    ):
        with pytest.raises(RunError, match=message):
            execute("ablation", {**SETTINGS, **settings}, model=model, corpus=MANY)
    classifier = loaded(tmp_path, "bert classes")
    bare = Corpus.of(Document(document.id, document.sentences) for document in CORPUS)
    with pytest.raises(RunError, match="is a classifier, which is scored on labels"):
        execute("ablation", SETTINGS, model=classifier, corpus=bare)
    with pytest.raises(RunError, match=r"no run.json"):
        execute("ablation", {**SETTINGS, "run": str(tmp_path), "by": "entropy"}, model=model, corpus=MANY)
    with pytest.raises(RunError, match="nothing to ablate on"):
        execute("ablation", SETTINGS, model=model, corpus=Corpus.of([]))
    one = execute("ablation", {**SETTINGS, "parts": ["pruning"]}, model=model, corpus=Corpus.of(list(CORPUS)[:1]))
    assert one.manifest["notes"] == [
        "pruning: too few documents to split, so orders were found and tested on the same texts (selection bias)"
    ]
    with pytest.raises(RunError, match="batch_texts = 0"):
        REGISTRY["ablation"].make({"batch_texts": 0})
    with pytest.raises(RunError, match="none twice"):
        REGISTRY["ablation"].make({"parts": ["heads", "heads"]})
    with pytest.raises(RunError, match=r"parts.0 = 'feet'"):
        REGISTRY["ablation"].make({"parts": "feet"})


def test_systems_and_curves_by_hand() -> None:
    layout = HeadLayout((Site("encoder", 0, 2, 2, "a"), Site("encoder", 1, 3, 3, "b")))
    systems = Systems(layout, ("heads", "layers"))
    assert [{site: gate.tolist() for site, gate in cut.items()} for cut in systems.cuts()] == [
        {0: [0, 1]}, {0: [1, 0]}, {1: [0, 1, 1]}, {1: [1, 0, 1]}, {1: [1, 1, 0]}, {0: [0, 0]}, {1: [0, 0, 0]},
    ]  # fmt: skip
    assert (systems.places("heads"), systems.places("layers")) == (slice(0, 5), slice(5, 7))
    assert {site: gate.tolist() for site, gate in removal(layout, [3]).items()} == {1: [1, 0, 1]}
    curves = Curves(layout, {"x": ascending(np.array([3.0, 1.0, 2.0, 1.0, 0.0]))}, 2)
    assert curves.orders["x"] == [4, 1, 3, 2, 0]
    assert curves.sizes == [3, 5]
    table = Table.of({"order": ["x", "x", "y", "y"], "share": [0.5, 1.0, 0.5, 1.0], "score": [0.995, 0.9, 0.98, 1.0]})
    assert prunable_table(table, 1.0, Mean("accuracy"), 0.01)["share"] == [0.5, 0.0]
    assert prunable_table(table, 1.0, Mean("loss", "lower"), 0.01)["share"] == [1.0, 1.0]
