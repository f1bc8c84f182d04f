"""Relations on real treebanks: baselines equal a plain count, and heads of the embedded model reach the documented
scores.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import headscope as hs
from headscope.corpora import Corpus

DATA = os.environ.get("HEADSCOPE_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="HEADSCOPE_DATA is not set: real-corpus tests skipped")

FILES = [
    "sampler",
    "ud/en_ewt-ud-dev.conllu.xz",
    "ud/en_gum-ud-dev.conllu.xz",
    "ud/de_gsd-ud-dev.conllu.xz",
    "ud/fi_tdt-ud-dev.conllu.xz",
    "ud/ja_gsd-ud-dev.conllu.xz",
    "stanford/gum5_sd_dev.conll.xz",
]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")  # mini has no Japanese vocabulary; these counts need no model
def test_offset_baselines_equal_a_plain_count(file: str) -> None:
    """Loops over the first three documents count, for each relation, how often each offset is right if it is clipped to
    the sentence.
    """
    corpus = Corpus.of(islice(hs.read(file if file == "sampler" else str(Path(str(DATA)) / file)), 3))
    run = hs.run(
        "mini",
        corpus,
        {"relations": {"least": 1, "punct": "include", "control": "none"}},
        max_length=250,
        replicates=0,
        gallery=0,
        layers=[1],
        allow_unknown=True,
    )
    sentences = [sentence.words for document in corpus for sentence in document.sentences]
    n: Counter[str] = Counter()
    right: Counter[tuple[str, int]] = Counter()
    for words in sentences:
        for index, word in enumerate(words):
            if word.head:
                for label in (word.relation or "", "all"):
                    n[label] += 1
                    for offset in range(-3, 4):
                        right[label, offset] += min(max(index + offset, -1), len(words) - 1) == word.head - 1
    table = run["relations"].table.where(layer=1, head=1, direction="dep-to-head")
    assert set(table["label"]) == {label for label in n if label not in ("punct", "root")}
    for label, count, baseline in zip(table["label"], table["n"], table["baseline"], strict=True):
        assert count == n[label], label
        assert baseline == pytest.approx(max(right[label, offset] for offset in range(-3, 4)) / n[label]), label


def test_heads_of_the_embedded_model_beat_the_best_offsets_on_ewt() -> None:
    """On 20 documents of EWT dev, single heads are far above the best offset for determiners, cases, objects and
    possessors. No head is right for half of all words.
    """
    corpus = Corpus.of(islice(hs.read(str(Path(str(DATA)) / "ud/en_ewt-ud-dev.conllu.xz")), 20))
    best = hs.run("mini", corpus, ["relations"], replicates=100, gallery=0).results["relations_best"]
    rows = {row["label"]: row for row in best}
    for label, head, least in (("det", "3-10", 0.85), ("case", "3-10", 0.75), ("obj", "8-4", 0.65), ("nmod:poss", "3-10", 0.7)):
        assert rows[label]["heads"] == head
        assert rows[label]["value"] > least
        assert rows[label]["lift_low"] > 0.05
        assert rows[label]["chance"] < rows[label]["value"] - 0.1
    assert 0.4 < rows["all"]["value"] < 0.5
    assert rows["all"]["in_sample"] >= rows["all"]["crossfit"] - 1e-9
