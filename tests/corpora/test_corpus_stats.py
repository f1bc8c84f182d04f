from __future__ import annotations

import lzma
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora import Corpus, read, stats

Write = Callable[[str, str], Path]


def test_counts_of_a_small_file_match_values_by_hand(columns: Write) -> None:
    path = columns(
        "a.conllu",
        """
        # newdoc id = x
        # keyphrases = A b; c
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
    assert result.lengths.counts == {3: 1, 1: 2}
    assert result.relations == {"det": 1, "root": 3, "conj": 1}
    assert result.upos == {"DET": 1, "NOUN": 3, "X": 1}
    assert result.xpos == {"DT": 1, "NN": 3}
    assert (result.mentions, result.entities, result.keyphrases) == (4, 3, 2)
    assert result.skipped.counts == {
        "multi-word tokens (their words are read)": 1,
        "sentences skipped: head outside the sentence": 1,
        "mentions skipped: they touch a skipped sentence": 1,
    }


@pytest.fixture
def story(columns: Write) -> Corpus:
    """A corpus of two documents: `Ann saw the dog . / It barked , and she laughed . / Ann ran .` and `Rain .`."""
    return read(
        columns(
            "story.conllu",
            """
            # newdoc id = story
            # keyphrases = the dog; cats; Ann ran
            1 Ann _ PROPN NNP _ 2 nsubj _ Entity=(1-person)
            2 saw _ VERB VBD _ 0 root _ _
            3 the _ DET DT _ 4 det _ Entity=(2-animal
            4 dog _ NOUN NN _ 2 obj _ Entity=2)
            5 . _ PUNCT . _ 2 punct _ _

            1 It _ PRON PRP _ 2 nsubj _ Entity=(2-animal)
            2 barked _ VERB VBD _ 0 root _ Entity=(3-event)
            3 , _ PUNCT , _ 6 punct _ _
            4 and _ CCONJ CC _ 6 cc _ _
            5 she _ PRON PRP _ 6 nsubj _ Entity=(1-person)
            6 laughed _ VERB VBD _ 2 conj _ _
            7 . _ PUNCT . _ 2 punct _ _

            1 Ann _ PROPN NNP _ 2 nsubj _ Entity=(1-person)
            2 ran _ VERB VBD _ 0 root _ SpaceAfter=No
            3 . _ PUNCT . _ 2 punct _ _

            # newdoc id = weather
            1 Rain _ NOUN NN _ 0 root _ _
            2 . _ PUNCT . _ 1 punct _ _
            """,
        )
    )


def test_statistics_of_trees_match_values_by_hand(story: Corpus) -> None:
    result = stats(story)
    assert (result.words, result.punctuation) == (17, 5)
    assert [result.lengths.quantile(q / 4) for q in range(5)] == [2, 2.75, 4, 5.5, 7]
    assert result.lengths.mean == 17 / 4
    assert {relation: dict(offsets.counts) for relation, offsets in result.offsets.items()} == {
        "nsubj": {1: 4},
        "det": {1: 1},
        "obj": {-2: 1},
        "cc": {2: 1},
        "conj": {-4: 1},
        "punct": {-3: 1, 3: 1, -5: 1, -1: 2},
    }
    assert result.dependencies.counts == {1: 5, 2: 1, -2: 1, -4: 1}
    assert result.dependencies.right == 6 / 8
    assert result.dependencies.distances.mean == (5 + 2 + 2 + 4) / 8


def test_statistics_of_coreference_match_values_by_hand(story: Corpus) -> None:
    found = stats(story).coreference
    assert (found.mentions, found.entities, found.singletons, found.chains.n, found.coreferent) == (6, 3, 1, 2, 5)
    assert found.chains.counts == {3: 1, 2: 1}
    assert found.lengths.counts == {1: 5, 2: 1}
    assert found.kinds == {"name": 2, "pronoun": 2, "nominal": 2}
    assert found.types == {"person": 3, "animal": 2, "event": 1}
    # Antecedents, with the number of the first word: It (5) - the dog (2), she (9) - Ann (0), Ann (12) - she (9).
    assert found.words_back.counts == {3: 2, 9: 1}
    assert found.sentences_back.counts == {1: 3}


def test_statistics_of_keyphrases_match_values_by_hand(story: Corpus) -> None:
    found = stats(story).phrases
    assert found.per_document.counts == {3: 1, 0: 1}
    assert found.lengths.counts == {2: 2, 1: 1}
    assert found.found == 2, "`cats` does not occur in the text"


def test_statistics_of_edges_match_values_by_hand() -> None:
    edges = (
        Edge("srl", ("ARG0",), (0, 1), (1, 4)),
        Edge("srl", ("ARG0",), (0, 1), (2, 3)),
        Edge("spr", ("sentient", "volition"), (0, 2), (3, 4)),
        Edge("spr", (), (0, 1)),
    )
    document = Document("d", (Sentence(tuple(map(Word, "abcd"))),), edges=edges)
    found = stats(Corpus.of([document, Document("e", document.sentences)])).edges
    assert found.tasks == {"srl": 2, "spr": 2}
    assert found.labels == {"srl": {"ARG0": 2}, "spr": {"sentient": 1, "volition": 1}}
    assert found.lengths.counts == {1: 5, 3: 1, 2: 1}


def test_labels_of_documents_are_counted() -> None:
    documents = [Document(f"d{number}", (Sentence((Word("a"),)),), label=label) for number, label in enumerate(["pos", None, "neg", "pos"])]
    assert stats(Corpus.of(documents)).labels == {"pos": 2, "neg": 1}


def test_statistics_of_an_empty_corpus_are_0_or_nan() -> None:
    result = stats(Corpus.of([]))
    assert (result.documents, result.sentences, result.words, result.mentions, result.keyphrases) == (0, 0, 0, 0, 0)
    assert math.isnan(result.lengths.mean)


def independent_count(path: Path) -> dict[str, Any]:
    """The same statistics, computed from the lines of a CoNLL-U file with GUM's brackets, without headscope's code."""
    found: dict[str, Any] = {"lengths": [], "relations": Counter(), "upos": Counter(), "offsets": {}, "mentions": {}}
    document, position = "", 0
    opened: list[tuple[str, int]] = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for sentence in lines.read().strip().split("\n\n"):
            rows = []
            for line in sentence.split("\n"):
                if line.startswith("# newdoc id = "):
                    document, position = line, 0
                if re.match(r"\d+\t", line):
                    rows.append(line.split("\t"))
            found["lengths"].append(len(rows))
            for row in rows:
                found["relations"][row[7]] += 1
                found["upos"][row[3]] += 1
                if row[6] != "0":
                    found["offsets"].setdefault(row[7], []).append(int(row[6]) - int(row[0]))
                entity = re.search(r"(?:^|\|)Entity=([^|]*)", row[9])
                for bracket in re.findall(r"\([^()]+\)?|[^()]+\)", entity[1]) if entity else []:
                    name = bracket.strip("()").split("-")[0]
                    if bracket.startswith("("):
                        opened.append((name, position))
                    if bracket.endswith(")"):
                        start = max(i for i, (other, _) in enumerate(opened) if other == name)
                        place = (opened.pop(start)[1], position, len(found["lengths"]))
                        found["mentions"].setdefault((document, name), []).append(place)
                position += 1
    return found


def test_statistics_of_gum_match_an_independent_count(data: Path) -> None:
    path = data / "ud/en_gum-ud-dev.conllu.xz"
    result, plain = stats(read(path)), independent_count(path)
    lengths, mentions = plain["lengths"], plain["mentions"]
    assert [result.lengths.quantile(q / 4) for q in range(5)] == np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]).tolist()
    assert result.lengths.mean == pytest.approx(np.mean(lengths))
    assert (result.relations, result.upos) == (plain["relations"], plain["upos"])
    for relation, offsets in plain["offsets"].items():
        assert result.offsets[relation].right == np.mean(np.array(offsets) > 0)
        assert result.offsets[relation].distances.mean == pytest.approx(np.abs(offsets).mean())
    assert result.entities == len(mentions)
    assert result.mentions == sum(map(len, mentions.values()))
    assert result.coreference.chains.counts == Counter(len(places) for places in mentions.values() if len(places) > 1)
    words, sentences = Counter[int](), Counter[int]()
    for places in mentions.values():
        places.sort()
        for (start, _, sentence), (later, _, later_sentence) in pairwise(places):
            words[later - start] += 1
            sentences[later_sentence - sentence] += 1
    assert result.coreference.words_back.counts == words
    # A mention lies within one sentence: the sentence of its last word, which is counted here, is that of its first.
    assert result.coreference.sentences_back.counts == sentences


@pytest.mark.parametrize("name", ["ud/en_ewt-ud-dev.conllu.xz", "ud/fi_tdt-ud-dev.conllu.xz"])
def test_statistics_of_trees_match_an_independent_count(data: Path, name: str) -> None:
    result, plain = stats(read(data / name)), independent_count(data / name)
    assert (result.lengths.counts, result.relations, result.upos) == (Counter(plain["lengths"]), plain["relations"], plain["upos"])
    assert {relation: offsets.counts for relation, offsets in result.offsets.items()} == {
        relation: Counter(offsets) for relation, offsets in plain["offsets"].items()
    }
