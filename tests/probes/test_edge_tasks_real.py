"""Targets of real corpora, compared with plain readings of their files, and targets of random malformed documents."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.document import Document, Edge, Mention, Sentence, Word
from headscope.corpora import read
from headscope.studies.edge_probe.tasks import TASKS, Choices, inside, targets, tasks_in


def rows(path: Path) -> list[list[list[str]]]:
    """The columns of each line of each sentence, without comments."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    found = ([line.split("\t") for line in block.split("\n") if not line.startswith("#")] for block in blocks)
    return [sentence for sentence in found if sentence]


def test_pos_and_deps_of_ewt_equal_the_columns_of_the_file(data: Path) -> None:
    path = data / "ud/en_ewt-ud-dev.conllu.xz"
    documents = list(read(path))
    words = [row for sentence in rows(path) for row in sentence if row[0].isdigit()]
    assert tasks_in(documents) == {"pos": 25_147, "deps": 25_147}
    for choices, column in ((Choices(), 3), (Choices(tags="xpos"), 4)):
        tags = [edge.labels[0] for document in documents for edge in targets(document, "pos", choices)]
        assert tags == [row[column] for row in words]
    edges = [edge for document in documents for edge in targets(document, "deps")]
    assert [edge.labels[0] for edge in edges] == [row[7] for row in words]
    distances = [edge.second[0] - edge.first[0] for edge in edges if edge.second]
    assert distances == [int(row[6]) - int(row[0]) if row[6] != "0" else 0 for row in words]


def test_constituents_of_ewt_equal_the_brackets_of_the_file(data: Path) -> None:
    path = data / "probing/ewt_srl-dev.gold_conll.xz"
    documents = list(read(path))
    found = Counter(edge.labels[0] for document in documents for edge in targets(document, "constituents"))
    opened = [label for sentence in rows(path) for row in sentence for label in re.findall(r"\(([^()*]+)", row[5])]
    assert found == Counter(re.split("[-=|]", label)[0] for label in opened)
    assert found.total() == 23_483
    assert tasks_in(documents) == {"pos": 24_887, "constituents": 23_483, "srl": 9_583}


def test_coref_pairs_of_ontogum_equal_a_plain_reading_of_the_file(data: Path) -> None:
    path = data / "coref/ontogum-dev.v4_gold_conll.xz"
    labels = Counter(edge.labels[0] for document in read(path) for edge in targets(document, "coref"))
    # A plain reading of the opening and closing brackets of each sentence. No mention of this file crosses the end of a
    # sentence.
    sentences: list[tuple[str, dict[tuple[int, int], set[str]]]] = []
    sizes: Counter[tuple[str, str]] = Counter()
    for sentence in rows(path):
        opened: list[tuple[str, int]] = []
        spans: dict[tuple[int, int], set[str]] = {}
        for place, row in enumerate(sentence):
            for bracket in row[-1].split("|") if row[-1] != "-" else []:
                entity = bracket.strip("()")
                if bracket.startswith("("):
                    opened.append((entity, place))
                if bracket.endswith(")"):
                    start = max(at for name, at in opened if name == entity)
                    opened.remove((entity, start))
                    spans.setdefault((start, place), set()).add(entity)
                    sizes[sentence[0][0], entity] += 1
        sentences.append((sentence[0][0], spans))
        assert not opened
    expected: Counter[str] = Counter()
    for document, spans in sentences:
        chained = [named for entities in spans.values() if (named := {one for one in entities if sizes[document, one] > 1})]
        expected.update(str(int(bool(one & other))) for one, other in combinations(chained, 2))
    assert labels == expected
    assert labels.total() == 6_891


@pytest.fixture(scope="module")
def sampler() -> list[Document]:
    return list(read("sampler"))


def test_tasks_of_the_sampler_have_the_counts_of_its_readme(sampler: list[Document]) -> None:
    # The counts of the sampler's README: words with punctuation, and mentions with types.
    assert {task: n for task, n in tasks_in(sampler).items() if task != "coref"} == {"pos": 6_026, "deps": 6_026, "entities": 1_716}


def test_targets_of_a_document_are_those_of_its_sentences(sampler: list[Document]) -> None:
    """A document has the same number of targets if it is read sentence by sentence."""
    for document in sampler[:4]:
        for task in ("pos", "deps", "coref"):
            whole = targets(document, task)
            start, parts = 0, 0
            for sentence in document.sentences:
                parts += len(inside(whole, range(start, start + len(sentence))))
                start += len(sentence)
            assert parts == len(whole)


words = st.builds(
    Word,
    st.sampled_from(["a", "b", "("]),
    upos=st.sampled_from([None, "X"]),
    xpos=st.sampled_from([None, "Y"]),
    head=st.sampled_from([None, -1, 0, 1, 2, 9]),
    relation=st.sampled_from([None, "dep", "nsubj:pass", ":"]),
)
parses = st.none() | st.text("()AB -*", max_size=20) | st.sampled_from(["(S (A a) (NP (B b)))", "(S (NP (A a)))", "((A a))"])
sentences = st.builds(Sentence, st.lists(words, min_size=1, max_size=3).map(tuple), parse=parses)
places = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
mentions = st.builds(
    lambda entity, place, type: Mention(entity, place[0], place[1], type), st.sampled_from("123"), places, st.sampled_from([None, "t"])
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(sentences, min_size=4, max_size=5),
    st.lists(mentions, max_size=5),
    st.sampled_from([0, 1, None]),
    st.booleans(),
)
def test_targets_of_malformed_documents_are_sorted_and_in_range(
    parts: list[Sentence], found: list[Mention], apart: int | None, singletons: bool
) -> None:
    document = Document("d", tuple(parts), tuple(found), edges=(Edge("srl", ("x",), (0, 1)),))
    choices = Choices(subtypes=False, apart=apart, singletons=singletons)
    size = len(document.words)
    for task in TASKS:
        edges = targets(document, task, choices)
        assert edges == sorted(edges, key=lambda edge: (edge.first, edge.second or ()))
        for edge in edges:
            assert edge.task == task
            assert all(0 <= start < end <= size for start, end in (edge.first, edge.second or (0, 1)))
        assert inside(edges, range(size)) == edges
