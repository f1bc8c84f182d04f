"""Keywords by attention: received attention, scores of single heads and trained systems, compared with plain loops and
with numbers worked out by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.words import WordGroups, word_map
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.results import Results
from headscope.studies.execute import execute
from headscope.studies.keywords import curves, learning
from headscope.studies.keywords.features import Rarity, Words, read_words
from headscope.studies.registry import REGISTRY
from helpers.families import document
from helpers.predicting import loaded

TEXTS = [
    "The cat sat on a mat , the cat !",
    "A dog , the cats .",
    "The dog sat on the mat .",
    "Cats play on a mat .",
    "The dog saw the cats playing .",
]


def documents(copies: int = 6) -> list[Document]:
    """Texts with the keyphrases `cat`, `cats` and `dog`. The last text also contains a keyphrase of two words."""
    found = []
    for copy in range(copies):
        for number, text in enumerate(TEXTS):
            phrases = ("cat", "cats playing", "cats", "dog")
            found.append(replace(document(f"d{number}x{copy}", text), keyphrases=phrases))
    return found


def encoded(model: Model, copies: int = 1) -> list[Encoded]:
    return list(Encoder(model.tokenizer, "document", 64, "truncate", tags="keyphrases").texts(documents(copies), Tally()))


def encoded_rate(model: Model, copies: int) -> float:
    """The share of words that are part of a keyphrase."""
    tags = [tag for text in encoded(model, copies) for tag in text.tags]
    return sum(tag != "O" for tag in tags) / len(tags)


@pytest.mark.parametrize("source", ["all", "cls", "words"])
def test_received_attention_equals_a_loop_over_texts(bert_or_gpt2: Model, source: Any) -> None:
    texts = encoded(bert_or_gpt2)
    found = read_words(bert_or_gpt2, texts, source, batch_tokens=40)
    start = 0
    for text in texts:
        groups = WordGroups.build([text], bert_or_gpt2.device)
        parts: list[torch.Tensor] = []
        bert_or_gpt2.stream(bert_or_gpt2.inputs([text]), lambda index, weights, *_: parts.append(word_map(weights, groups, groups)[0]))  # noqa: B023
        maps = torch.cat(parts).detach().double().numpy()
        roles = groups.side.roles[0].tolist()
        rows = [row for row, role in enumerate(roles) if source == "all" or (role == 1 if source == "cls" else role == 0)]
        columns = [column for column, role in enumerate(roles) if role == 0]
        for word, column in enumerate(columns):
            own = maps[:, rows, column] if rows else np.zeros((len(maps), 1))
            assert_allclose(found.received[start + word], [own.mean(1), own.max(1)], atol=1e-5)
        start += len(text.words)
    assert start == len(found.received)
    assert found.keys.tolist() == [tag != "O" for text in texts for tag in text.tags]


def planted_words(seed: int = 0, texts: int = 12) -> Words:
    """Words with random received attention. Keywords receive more from head 2."""
    rng = np.random.default_rng(seed)
    encoder = Encoder(loaded_tokenizer(), "document", 64, "truncate", tags="keyphrases")
    some = list(encoder.texts(documents(3)[:texts], Tally()))
    words = Words(tuple(some), rng.random((sum(len(text.words) for text in some), 2, 4)).astype(np.float32))
    words.received[:, :, 2] += words.keys[:, None]
    return words


def loaded_tokenizer() -> Any:
    from helpers.families import tokenizer

    return tokenizer("wordpiece")


def test_every_system_learns_the_planted_head() -> None:
    words, other = planted_words(), planted_words(1)
    for name in ("best head", "scalar mix", "all heads", "all heads, position, tf-idf"):
        learn = learning.SYSTEMS[name]
        found = learn(words, 1.0)
        scores = found.score(other)
        assert (scores[other.keys][:, None] > scores[~other.keys]).mean() > 0.97, name
        cuts = learning.tuned(learn, words, 1.0, np.arange(len(words.texts)) % 3 == 0)
        right, wrong, missed = learning.counts(scores, other, "token", cuts[0]).sum(0)
        assert 2 * right / (2 * right + wrong + missed) > 0.8, name
        assert found.weights is not None
        assert np.abs(found.weights).max(0).argmax() == 2
    mixed = learning.SYSTEMS["scalar mix"](words, 1.0).weights
    assert mixed is not None
    assert mixed.sum() == pytest.approx(1)
    assert learning.SYSTEMS["every word"](words, 1.0).score(other).tolist() == [0] * len(other.text_of)


def test_the_threshold_maximises_f1() -> None:
    """No other score gives a higher F1 as a threshold."""
    words = planted_words()
    scores = np.random.default_rng(2).normal(size=len(words.text_of)) + words.keys
    for level in learning.LEVELS:
        cut = learning.threshold(scores, words, level)
        values = []
        for other in scores:
            found, wrong, missed = learning.counts(scores, words, level, other).sum(0)
            values.append(2 * found / max(2 * found + wrong + missed, 1))
        found, wrong, missed = learning.counts(scores, words, level, cut).sum(0)
        assert 2 * found / (2 * found + wrong + missed) == pytest.approx(max(values))


def test_counts_by_threshold_by_hand() -> None:
    """At a threshold of 0.5, words with log odds of 0 or more are marked; at 0 all words are, at 1 none."""
    words = planted_words()
    logits = np.where(words.keys, 2.0, -1.0)
    logits[np.flatnonzero(words.keys)[0]] = -3.0
    found = curves.by_threshold(logits, words).sum(0)[:, 0]  # the counts of words
    keys, n = int(words.keys.sum()), len(words.keys)
    at = {round(float(cut), 3): numbers.tolist() for cut, numbers in zip(curves.THRESHOLDS, found, strict=True)}
    assert at[0.5] == [keys - 1, 0, 1]
    assert at[0.2] == [keys - 1, n - keys, 1]  # the other words have a probability of 0.27
    assert at[0.0] == [keys, n - keys, 0]
    assert at[1.0] == [0, 0, keys]


def test_the_best_heads_are_kept_first_in_doubling_numbers() -> None:
    assert curves.sizes(144) == [1, 2, 4, 8, 16, 32, 64, 128, 144]
    assert curves.sizes(4) == [1, 2, 4]
    assert curves.sizes(1) == [1]
    words, other = planted_words(), planted_words(1)
    assert curves.ranking(words, 1.0)[0] == 2
    found = curves.by_heads(words, other, 1.0, np.arange(len(words.texts)) % 3 == 0).sum(0)
    assert found.shape == (2, 2, 3)  # 1 and 2 of 4 heads, words and phrases
    right, wrong, missed = found[0, 0]
    assert 2 * right / (2 * right + wrong + missed) > 0.9, "head 2 alone identifies the keywords"


def test_rarity_and_position_features_by_hand() -> None:
    words = planted_words(texts=5)
    known = Rarity.learnt(words)
    values = words.rarity(known)[:, 0]
    # `the` occurs twice in the first text and in 4 of 5 texts. `cat` occurs twice in the first text and in no other.
    # The rarity of a comma is 0.
    first = [word.form for word in words.texts[0].words]
    assert values[first.index("cat")] == pytest.approx((1 + np.log(2)) * np.log(6 / 2))
    assert values[first.index("The")] == pytest.approx((1 + np.log(2)) * np.log(6 / 5))
    assert values[first.index(",")] == 0
    assert words.places[1].tolist() == [1 / len(first), pytest.approx(np.log(2))]


def test_tables_of_heads_and_curves_equal_plain_computations(bert_or_gpt2: Model, tmp_path: Path) -> None:
    corpus, dev = Corpus.of(documents(4)), Corpus.of([replace(one, id=f"dev/{one.id}") for one in documents(2)])
    found = execute(
        "keywords", {"replicates": 20, "dev": "/some/where/dev.jsonl"}, tmp_path / "kw", model=bert_or_gpt2, corpus=corpus, dev=dev
    )
    assert f"|dev:dev.jsonl@{dev.hash()[:8]}|" in found.signature
    study = Results.open(tmp_path / "kw")
    assert study.study == "keywords"
    words = read_words(bert_or_gpt2, encoded(bert_or_gpt2, 2), "all")
    x, text_of, keys = words.received[:, 0, 5].astype(np.float64), words.text_of, words.keys
    differences, aucs = [], []
    for number in range(len(words.texts)):
        key, other = x[keys & (text_of == number)], x[~keys & (text_of == number)]
        differences.append(key.mean() - other.mean())
        aucs.append(np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a in key for b in other]))
    row = list(found["keywords_heads"].where(received="mean"))[5]
    assert row["relative"] == pytest.approx(np.mean(differences), rel=1e-4)
    assert row["auc"] == pytest.approx(np.mean(aucs), rel=1e-4)
    assert row["low"] <= row["relative"] <= row["high"]
    assert row["n"] == len(words.texts)
    shares = np.clip(x, 1e-6, 1 - 1e-6)
    assert row["direct"] == pytest.approx(-np.mean(np.where(keys, np.log(shares), np.log(1 - shares))), rel=1e-4)
    assert row["loss_low"] <= row["loss"] <= row["loss_high"]
    ranked = found["keywords_ranking"]
    assert ranked["cross_entropy"] == sorted(found["keywords_heads"]["loss"])
    assert ranked["rank"] == list(range(1, 2 * bert_or_gpt2.layout.size + 1))
    first = next(iter(ranked))
    rate = encoded_rate(bert_or_gpt2, 4)
    assert first["constant"] == pytest.approx(-np.mean(np.where(keys, np.log(rate), np.log(1 - rate))))
    assert first["gain"] == pytest.approx(first["constant"] - first["cross_entropy"])
    curve = found["keywords_curves"]
    for level in ("words", "phrases"):
        whole = next(iter(found["keywords_scores"].where(system="all heads", level=level)))
        last = list(curve.where(by="heads", level=level))[-1]
        assert last["heads"] == bert_or_gpt2.layout.size
        assert [last[name] for name in ("precision", "recall", "f1", "low", "high")] == [
            whole[name] for name in ("precision", "recall", "f1", "low", "high")
        ]
    assert curve.where(by="threshold", level="words")["recall"][0] == 1
    everything = next(iter(found["keywords_scores"].where(system="every word", level="words")))
    assert everything["recall"] == 1
    assert everything["precision"] == pytest.approx(keys.mean())
    assert study.state("whole")["numbers/coefficients"].shape == (2 * bert_or_gpt2.layout.size,)


def test_intervals_of_relative_attention_and_auc_contain_their_values() -> None:
    """Relative attention is a difference. It is below 0 for a head that attends less to keywords."""
    run = hs.run("mini", "sampler", ["keywords"], limit=8, max_length=32, replicates=20, gallery=0)
    rows = [row for row in run["keywords"].table if row["low"] == row["low"]]
    assert min(row["value"] for row in rows if row["quantity"] == "relative") < 0
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert all(row["low"] >= 0 and row["high"] <= 1 for row in rows if row["quantity"] == "auc")


def test_folds_score_every_document_once_and_document_order_does_not_matter(bert_or_gpt2: Model, tmp_path: Path) -> None:
    given = documents()
    found = execute("keywords", {"replicates": 10, "folds": 3}, model=bert_or_gpt2, corpus=Corpus.of(given))
    assert sorted(found.state("fold").arrays)[:2] == ["bytes/document", "lengths/document"]
    assert set(found["keywords_scores"]["n"]) == {len(given)}
    again = execute("keywords", {"replicates": 10, "folds": 3}, model=bert_or_gpt2, corpus=Corpus.of(given[::-1]))
    for name in ("f1", "low", "high"):
        assert_allclose(again["keywords_scores"][name], found["keywords_scores"][name], atol=1e-6)
    assert_allclose(again["keywords_heads"]["loss"], found["keywords_heads"]["loss"], atol=1e-5)


def test_invalid_corpora_and_settings_are_refused(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    bare = Corpus.of(replace(one, keyphrases=()) for one in documents(1))
    with pytest.raises(RunError, match="this study needs keyphrases, and sampler has none"):
        execute("keywords", {}, model=model, corpus=bare)
    absent = Corpus.of([*documents(2), replace(documents(1)[0], id="absent", keyphrases=("zebra",))])
    found = execute("keywords", {"replicates": 0, "folds": 2}, model=model, corpus=absent)
    assert "1 texts without a keyphrase skipped (first: absent)" in found.manifest["dropped"]
    with pytest.raises(RunError, match="at least two"):
        execute("keywords", {}, model=model, corpus=Corpus.of(documents(1)[:1]))
    with pytest.raises(RunError, match="folds = 1"):
        REGISTRY["keywords"].make({"folds": 1})
    with pytest.raises(RunError, match=r"takes 0\.0 GiB"):
        read_words(model, encoded(model), limit_bytes=10)


def test_a_finished_study_is_not_resumed_with_other_dev_documents(tmp_path: Path) -> None:
    model, corpus, out = loaded(tmp_path, "bert"), Corpus.of(documents(2)), tmp_path / "study"
    spec = REGISTRY["keywords"].make({"replicates": 0, "dev": ["tried.jsonl"]})
    first = execute("keywords", spec, out, model=model, corpus=corpus, dev=Corpus.of(documents(1)))
    same = execute("keywords", spec, out, model=model, corpus=corpus, dev=Corpus.of(documents(1)), resume=True)
    assert same["keywords_scores"]["f1"] == first["keywords_scores"]["f1"]
    with pytest.raises(RunError, match="dev was"):
        execute("keywords", spec, out, model=model, corpus=corpus, dev=Corpus.of(documents(1)[:3]), resume=True)


def test_findings_list_heads_in_the_order_of_the_printed_loss() -> None:
    from headscope.results.table import Table
    from headscope.studies.keywords.findings import _alone
    from headscope.studies.keywords.tables import summary

    numbers = {"loss": [0.20, 0.10, 0.15], "auc": [0.60, 0.70, 0.80], "relative": [0.1, 0.1, -0.1], "p_holm": [0.5, 0.01, 0.01]}
    own = {name: column * 2 for name, column in numbers.items()}
    heads = Table.of(
        {"layer": [1, 2, 3] * 2, "head": [1, 1, 1] * 2, "received": ["mean"] * 3 + ["max"] * 3, "n": [9] * 6, "documents": [8] * 6, **own}
    )
    assert list(_alone(heads))[1] == (
        "The most informative single heads, by the loss of a regression on one head in nats per word, are "
        "2-1 (0.1000, AUC 0.70), 3-1 (0.1500, AUC 0.80), 1-1 (0.2000, AUC 0.60)."
    )
    scores = Table.of({"level": ["words"], "system": ["all heads"], "f1": [0.6], "low": [0.5], "high": [0.7], "n": [9], "documents": [8]})
    summarised = summary(scores, heads)
    assert summarised.columns == ["quantity", "which", "value", "low", "high", "n", "documents"], (
        "the published F1 is counted differently and must not be shown"
    )
    assert list(summarised)[1] == {
        "quantity": "highest AUC of a head (mean)",
        "which": "3-1",
        "value": 0.8,
        "low": pytest.approx(float("nan"), nan_ok=True),
        "high": pytest.approx(float("nan"), nan_ok=True),
        "n": 9,
        "documents": 8,
    }
