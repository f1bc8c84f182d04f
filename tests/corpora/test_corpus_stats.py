from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from headscope.corpora import Corpus, read, stats

Write = Callable[[str, str], Path]


def test_counts_of_a_small_file(columns: Write) -> None:
    path = columns(
        "a.conllu",
        """
        # newdoc id = x
        # keyphrases = a b; c
        1-2 ab _ _ _ _ _ _ _ _
        1 a _ DET DT _ 2 det _ Entity=(1-p(2-p)
        2 b _ NOUN NN _ 0 root _ Entity=1)
        3 c _ NOUN NN _ 2 conj _ Entity=(1-p)

        # newpar
        1 d _ NOUN NN _ 0 root _ _

        # newdoc id = y
        1 e _ NOUN _ _ 0 root _ Entity=(1-p)
        2 f _ _ _ _ 9 dep _ _

        1 g _ X _ _ 0 root _ Entity=(1-p)
        """,
    )
    result = stats(read(path, on_error="skip"))
    assert (result.documents, result.paragraphs, result.sentences, result.words) == (2, 3, 3, 5)
    assert (result.shortest, result.longest) == (1, 3)
    assert math.isclose(result.mean, 5 / 3)
    assert result.relations == {"det": 1, "root": 3, "conj": 1}
    assert result.upos == {"DET": 1, "NOUN": 3, "X": 1}
    assert result.xpos == {"DT": 1, "NN": 3}
    assert (result.mentions, result.entities, result.keyphrases) == (4, 3, 2)
    assert result.skipped.counts == {
        "multi-word tokens (their words are read)": 1,
        "sentences left out: head outside the sentence": 1,
        "mentions left out: they touch a sentence left out": 1,
    }


def test_nothing_to_count() -> None:
    result = stats(Corpus.of([]))
    assert (result.documents, result.shortest, result.longest) == (0, 0, 0)
    assert math.isnan(result.mean)
