"""Correlation with trees and attachment: by hand, by scipy, and on GUM beside METHODS' golden numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headscope.core.document import Document
from headscope.corpora import read
from headscope.errors import MeasureError
from headscope.studies.flow.attachment import Attachment, spanning
from headscope.studies.flow.paths import CHAINS
from headscope.studies.flow.subsets import SubsetDistances
from headscope.studies.flow.trees import TreeDistances
from helpers.plain_texts import encoded, sentence

TAGS, HEADS, LABELS = (
    "DET NOUN AUX ADV VERB ADP DET NOUN PUNCT",
    [2, 5, 5, 5, 0, 8, 8, 5, 5],
    "det nsubj aux advmod root case det obl punct",
)


def test_flow_that_is_the_tree() -> None:
    """Flow that falls evenly with the distance has r = 1 in each variant; if it falls faster, only its ranks have."""
    document = sentence(TAGS, HEADS, LABELS)
    text = encoded(document)
    study = TreeDistances(replicates=20)
    # Of each word its place and its ancestors, the root last.
    lines: list[list[int]] = []
    for word in range(9):
        line = [word]
        while HEADS[line[-1]]:
            line.append(HEADS[line[-1]] - 1)
        lines.append(line)
    near = np.zeros((2, 11, 11))
    for i in range(9):
        for j in range(9):
            meet = next(above for above in lines[i] if above in lines[j])
            near[0, i + 1, j + 1] = 10 - lines[i].index(meet) - lines[j].index(meet)
    near[1] = np.exp(near[0])
    study.observe(text, {"A": near})
    rows = study.tables()["tree_distances"]
    for variant in ("undirected", "undirected with diagonal", "directed", "directed with diagonal"):
        chosen = rows.where(variant=variant)
        assert chosen.where(method="pearson", layer=1)["value"] == pytest.approx([1], abs=1e-6)
        assert chosen.where(method="spearman", layer=2)["value"] == pytest.approx([1], abs=1e-6)
        assert [row["n"] for row in chosen if row["layer"] is not None] == [1] * 4
    assert rows.where(method="pearson", layer=2, variant="undirected")["value"][0] < 0.95


def test_correlations_are_scipys_over_the_pairs_of_each_variant() -> None:
    rng = np.random.default_rng(0)
    study = TreeDistances(punct="exclude", replicates=50)
    expected: dict[str, list[float]] = {"undirected": [], "directed": []}
    for number in range(7):
        pieces = [int(size) for size in rng.integers(1, 3, 9)]
        text = encoded(sentence(TAGS, HEADS, LABELS, id=f"d{number % 6}"), pieces)
        matrix = rng.random((2, len(text), len(text)))
        study.observe(text, {"G": matrix})
        first = np.cumsum([1, *pieces])
        words = [[matrix[1, first[i] : first[i + 1], first[j] : first[j + 1]].mean() for j in range(8)] for i in range(8)]
        heads = [head - 1 for head in HEADS[:8]]
        steps = {(i, i): 0 for i in range(8)}
        for _ in range(8):  # one arc more at a time, down; punctuation, the last word, is left out
            steps |= {(i, j): steps[i, heads[j]] + 1 for i in range(8) for j in range(8) if heads[j] >= 0 and (i, heads[j]) in steps}
        down = {pair: value for pair, value in steps.items() if value}
        around = {
            (i, j): min(steps[k, i] + steps[k, j] for k in range(8) if (k, i) in steps and (k, j) in steps)
            for i in range(8)
            for j in range(8)
            if i != j
        }
        for variant, pairs in (("undirected", around), ("directed", down)):
            expected[variant].append(stats.spearmanr([words[i][j] for i, j in pairs], [-value for value in pairs.values()]).statistic)
    rows = study.tables()["tree_distances"].where(method="spearman", layer=2)
    for variant, values in expected.items():
        row = next(iter(rows.where(variant=variant)))
        assert row["value"] == pytest.approx(np.mean(values), abs=1e-6)
        assert row["low"] < row["value"] < row["high"]
        assert (row["n"], row["sentences"], row["documents"]) == (7, 7, 6)


def test_correlations_among_verbs_and_their_core_arguments() -> None:
    """She said the old cat chased mice : two verbs, with the subjects of both and one object; distances counted by
    hand.
    """
    tags, heads = "PRON VERB DET ADJ NOUN VERB NOUN PUNCT", [2, 0, 5, 5, 6, 2, 6, 2]
    labels = "nsubj root det amod nsubj ccomp obj punct"
    #         she said cat chased mice
    places = [0, 1, 4, 5, 6]
    apart = [[0, 1, 3, 2, 3], [1, 0, 2, 1, 2], [3, 2, 0, 1, 2], [2, 1, 1, 0, 1], [3, 2, 2, 1, 0]]
    rng = np.random.default_rng(1)
    study = SubsetDistances(replicates=20)
    expected: list[list[float]] = [[], []]
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    for number in range(7):
        text = encoded(sentence(tags, heads, labels, id=f"d{number}"))
        matrix = rng.random((2, 10, 10))
        study.observe(text, {"A": matrix})
        for layer in range(2):
            flow = [matrix[layer, places[i] + 1, places[j] + 1] for i, j in pairs]
            expected[layer].append(stats.pearsonr(flow, [-apart[i][j] for i, j in pairs]).statistic)
    study.observe(encoded(sentence("NOUN VERB", [2, 0], "nsubj root", id="short")), {"A": rng.random((2, 4, 4))})  # one distance only
    rows = study.tables()["tree_distances_subsets"].where(tokens="verbs and core arguments", variant="undirected", method="pearson")
    for layer in (1, 2):
        row = next(iter(rows.where(measure="A", layer=layer)))
        assert row["value"] == pytest.approx(np.mean(expected[layer - 1]), abs=1e-6)
        assert (row["n"], row["sentences"], row["documents"]) == (7, 8, 7)
    near = [-abs(places[i] - places[j]) for i, j in pairs]
    (position,) = rows.where(measure="position")
    assert position["value"] == pytest.approx(stats.pearsonr(near, [-apart[i][j] for i, j in pairs]).statistic, abs=1e-6)
    assert position["layer"] is None


def test_classes_of_words_and_all_of_them() -> None:
    """The class of all words has the numbers of the table of all words; a class by its tags is a part of the matrix."""
    rng = np.random.default_rng(2)
    whole, subsets = TreeDistances(replicates=5), SubsetDistances(replicates=5)
    values = []
    for number in range(3):
        text = encoded(sentence(TAGS, HEADS, LABELS, id=f"d{number}"))
        matrix = rng.random((1, 11, 11))
        for study in (whole, subsets):
            study.observe(text, {"G": matrix})
        open_class = [1, 3, 4, 7]  # NOUN ADV VERB NOUN: all hang on the verb
        flow = [matrix[0, i + 1, j + 1] for i in open_class for j in open_class if i != j]
        values.append(stats.spearmanr(flow, [-1 if 4 in (i, j) else -2 for i in open_class for j in open_class if i != j]).statistic)
    rows = subsets.tables()["tree_distances_subsets"]
    for variant in ("undirected", "directed"):
        same = {"measure": "G", "variant": variant, "method": "pearson", "layer": 1}
        assert rows.where(**same, tokens="all")["value"] == whole.tables()["tree_distances"].where(**same)["value"]
    found = rows.where(measure="G", tokens="open classes", variant="undirected", method="spearman", layer=1)
    assert found["value"] == pytest.approx([np.mean(values)], abs=1e-6)
    assert set(rows.where(tokens="verbs", layer=1)["n"]) == {0}, "one verb has no pair"
    assert set(rows["tokens"]) == {"all", "verbs and core arguments", "nominals", "verbs", "open classes", "closed classes"}


def test_sentences_without_two_distances_have_no_correlation() -> None:
    study = TreeDistances(replicates=5)
    for size in (1, 2, 3):
        text = encoded(sentence(" ".join(["NOUN"] * size), [0, *[1] * (size - 1)]))
        study.observe(text, {"A": np.random.default_rng(0).random((1, size + 2, size + 2))})
    rows = study.tables()["tree_distances"].where(method="pearson", layer=1)
    # Undirected, two words have one distance; directed, so have three, of which two hang on the first.
    assert {row["variant"]: row["n"] for row in rows} == {
        "undirected": 1,
        "undirected with diagonal": 2,
        "directed": 0,
        "directed with diagonal": 2,
    }
    with pytest.raises(MeasureError, match="no tree"):
        study.observe(encoded(sentence("NOUN VERB")), {"A": np.zeros((1, 4, 4))})
    with pytest.raises(MeasureError, match="Use one of document, sentence"):
        TreeDistances(resample="word")  # type: ignore[arg-type]


def test_attachment_by_hand() -> None:
    """the cat has never slept in the house . : of eight arcs "next word" has det, advmod and det; obl and punct join
    no neighbours.
    """
    text = encoded(sentence(TAGS, HEADS, LABELS))
    study = Attachment(replicates=5)
    flow = np.zeros((1, 11, 11))
    for word, head in enumerate(HEADS):
        flow[0, head, word + 1] = 1.0  # from the head to the dependent; the root's goes to [CLS]'s column of nobody
    study.observe(text, {"G": flow, "A": flow.swapaxes(1, 2)})
    rows = [row for row in study.tables()["attachment"] if row["layer"] == 1 or row["tree"] in CHAINS]  # not that of the best layer
    found = {(row["tree"], row["arcs"], row["direction"]): row for row in rows}
    assert found["next word", "all", "directed"]["value"] == pytest.approx(3 / 8)
    assert found["next word", "all", "undirected"]["value"] == pytest.approx(3 / 8)
    assert found["previous word", "all", "directed"]["value"] == 0
    assert found["previous word", "all", "undirected"]["value"] == pytest.approx(3 / 8)
    assert found["next word", "all", "directed"]["arcs_a_sentence"] == 8
    assert found["next word", "core", "directed"]["arcs_a_sentence"] == 1  # nsubj
    assert found["next word", "non-core", "directed"]["arcs_a_sentence"] == 1  # obl
    assert found["next word", "open-open", "directed"]["value"] == pytest.approx(1 / 3)  # cat, never, house on slept
    assert found["next word", "closed-closed", "directed"]["n"] == 0
    assert np.isnan(found["next word", "closed-closed", "directed"]["value"])
    assert found["G", "all", "directed"]["value"] == 1
    assert found["G", "all", "directed"]["layer"] == 1
    assert found["next word", "all", "directed"]["layer"] is None
    assert found["A", "all", "undirected"]["value"] > found["A", "all", "directed"]["value"]
    turned = Attachment(transpose=True, replicates=5)
    turned.observe(text, {"A": flow.swapaxes(1, 2)})
    assert next(iter(turned.tables()["attachment"].where(tree="A", arcs="all", direction="directed")))["value"] == 1


def test_labels_whole_or_without_their_subtype() -> None:
    document = sentence("PRON NOUN AUX VERB", [2, 4, 4, 0], "nmod:poss nsubj:pass aux:pass root")
    for labels, arcs in (("main", 1), ("whole", 0)):
        study = Attachment(labels=labels, replicates=0)  # type: ignore[arg-type]
        study.observe(encoded(document), {})
        assert study.tables()["attachment"].where(arcs="non-core")["arcs_a_sentence"] == [arcs] * 4
        assert study.tables()["attachment"].where(arcs="core")["arcs_a_sentence"] == [1] * 4
    with pytest.raises(MeasureError, match="Use one of whole, main"):
        Attachment(labels="short")  # type: ignore[arg-type]


def test_trees_stay_in_their_sentence() -> None:
    rng = np.random.default_rng(3)
    heads = spanning(rng.random((7, 7)), [0, 0, 0, 1, 1, 1, 1])
    assert all(head == -1 or (head < 3) == (word < 3) for word, head in enumerate(heads))
    assert [head for head in heads[:3] if head < 0] == [head for head in heads[3:] if head < 0] == [-1]
    # The best of both trees for one word over another: 0 -> 1 beats 1 -> 0.
    assert spanning(np.array([[0, 2.0], [1.0, 0]]), [0, 0]) == [-1, 0]
    assert spanning(np.array([[0, 2.0], [1.0, 0]]), [0, 0], transpose=True) == [1, -1]


# METHODS' numbers for chains, and those of the data at hand; by chain and variant, or chain, class of arcs and
# direction.
CORRELATIONS = {
    ("next word", "undirected"): (0.356, 0.359),
    ("next word", "undirected with diagonal"): (0.509, 0.507),
    ("next word", "directed with diagonal"): (0.812, 0.812),
    ("next word", "directed"): (0.356, 0.348),
    ("previous word", "directed with diagonal"): (0.724, 0.722),
    ("previous word", "directed"): (0.162, 0.192),
}
ATTACHMENTS = {
    ("next word", "all", "directed"): (0.3212, 0.3207),
    ("next word", "all", "undirected"): (0.3993, 0.4053),
    ("previous word", "all", "directed"): (0.0781, 0.0846),
    ("next word", "open-open", "directed"): (0.2407, 0.2289),
    ("next word", "open-open", "undirected"): (0.3198, 0.3101),
    ("next word", "core", "directed"): (0.2216, 0.2159),
    ("next word", "core", "undirected"): (0.3272, 0.3220),
    ("next word", "non-core", "directed"): (0.0645, 0.0664),
    ("next word", "non-core", "undirected"): (0.0780, 0.0804),
}


def test_chains_on_gum(data: Path) -> None:
    """METHODS' golden numbers are of the first 500 of 707 sentences (9,647 words) of GUM's dev part in UD 2.3; what is
    at hand is UD 2.5.

    That has 784 sentences; without GUM_interview_peres, which has 77, they are 707, so it seems to be the same part
    and one document. Which of them were the first 500 depends on the order of the documents then, which is not
    known: the first 500 now are longer (23.1 words to 19.3) and hold little of the how-to texts, and correlations go
    with the length of sentences. So here are all sentences. All golden ones have a correlation, so those of one and
    two words must have been left out: 751 are left. Attachment then agrees to .007 for all arcs and to .012 in each
    class, correlations to .008; except that of "previous word" without the diagonal, the one that changes most with
    length (-.37 below 11 words, .52 above 30), to .03. Arcs between closed classes are too few to compare (84
    sentences).
    """
    trees, attached = TreeDistances(replicates=0), Attachment(labels="whole", replicates=0)
    documents = read(data / "ud/en_gum-r2.5-ud-dev.conllu.xz")
    texts = [Document(document.id, (one,)) for document in documents for one in document.sentences if len(one) > 2]
    assert len(texts) == 751
    for document in texts:
        text = encoded(document, specials=False)
        trees.observe(text, {"A": np.zeros((1, len(text), len(text)))})
        attached.observe(text, {})
    correlations = {(row["chain"], row["variant"]): row for row in trees.tables()["tree_distances_chains"].where(method="pearson")}
    for key, (golden, own) in CORRELATIONS.items():
        assert correlations[key]["value"] == pytest.approx(own, abs=6e-4), key
        assert correlations[key]["value"] == pytest.approx(golden, abs=0.031 if key == ("previous word", "directed") else 0.0085), key
    scores = {(row["tree"], row["arcs"], row["direction"]): row["value"] for row in attached.tables()["attachment"]}
    for place, (golden, own) in ATTACHMENTS.items():
        assert scores[place] == pytest.approx(own, abs=6e-5), place
        assert scores[place] == pytest.approx(golden, abs=0.007 if place[1] == "all" else 0.012), place
    plainly = [plain_correlation([word.head or 0 for word in document.words]) for document in texts]
    assert correlations["next word", "undirected"]["value"] == pytest.approx(np.mean(plainly), abs=1e-6)
    assert correlations["next word", "undirected"]["n"] == 751


def plain_correlation(heads: list[int]) -> float:
    """Of minus the distance in the text with minus that in the tree, which is walked from every word to its
    neighbours.
    """
    size = len(heads)
    near: list[list[int]] = [[] for _ in heads]
    for word, head in enumerate(heads):
        if head:
            near[word].append(head - 1)
            near[head - 1].append(word)
    apart, steps = [], []
    for start in range(size):
        found, edge = {start: 0}, [start]
        while edge:
            edge = [other for word in edge for other in near[word] if found.setdefault(other, found[word] + 1) == found[word] + 1]
        apart += [abs(start - other) for other in range(size) if other != start]
        steps += [found[other] for other in range(size) if other != start]
    return float(np.corrcoef(apart, steps)[0, 1])
