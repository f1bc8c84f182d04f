"""The embedded corpus is valid, large and varied enough, and its README has the right numbers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from headscope.core.document import Document
from headscope.corpora import check, compare, read, stats
from headscope.corpora.agreement import read_annotation
from headscope.corpora.inputs import resolve

ROOT = Path(__file__).resolve().parents[2]
SAMPLER = resolve(("sampler",)).paths[0].parent
GENRES = {"news", "encyclopedia", "recipe", "instructions", "fiction", "letter", "interview", "science", "review"}
FLOOR = 25
RELATIONS = [
    *("det", "amod", "nsubj", "nsubj:pass", "obj", "iobj", "obl", "nmod", "nmod:poss", "case", "aux", "aux:pass", "cop", "mark"),
    *("advmod", "compound", "compound:prt", "conj", "cc", "ccomp", "xcomp", "advcl", "acl", "acl:relcl", "appos", "nummod", "expl"),
]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(read("sampler"))


@pytest.fixture(scope="module")
def readme() -> str:
    return (SAMPLER / "README.md").read_text(encoding="utf-8")


def meta(name: str) -> list[str]:
    """The value of a comment in each file of the corpus."""
    return [re.search(rf"^# {name} = (.*)$", file.read_text(encoding="utf-8"), re.M)[1] for file in sorted(SAMPLER.glob("*.conllu"))]  # type: ignore[index]


def test_the_sampler_has_no_findings_or_notes() -> None:
    assert [str(finding) for finding in check(["sampler"])] == []


def test_there_are_enough_documents_genres_sentences_and_words(documents: list[Document]) -> None:
    assert len(documents) >= 16
    assert all(len(list(document.paragraphs())) >= 2 for document in documents)
    assert set(meta("meta::genre")) == GENRES
    sentences = [sentence for document in documents for sentence in document.sentences]
    lengths = [sum(word.upos != "PUNCT" for word in sentence.words) for sentence in sentences]
    assert len(sentences) >= 240
    assert sum(lengths) >= 3500
    assert (min(lengths), max(lengths)) == (3, 40)


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_studied_in_papers_is_frequent_enough(documents: list[Document], relation: str) -> None:
    found = Counter(word.relation for document in documents for word in document.words)
    assert found[relation] >= FLOOR


def test_there_are_enough_possessive_pronouns_and_nouns(documents: list[Document]) -> None:
    found = Counter(word.upos == "PRON" for document in documents for word in document.words if word.relation == "nmod:poss")
    assert min(found[True], found[False]) >= FLOOR


def test_coreference_is_frequent_and_varied() -> None:
    found = stats(read("sampler")).coreference
    assert found.coreferent >= 400
    assert min(found.kinds[kind] for kind in ("pronoun", "name", "nominal")) >= 60, found.kinds
    assert found.sentences_back.share([0]) < 0.5
    assert found.sentences_back.share([0, 1]) < 0.85


def test_every_document_has_keyphrases_that_occur_in_it(documents: list[Document]) -> None:
    for document in documents:
        text = " ".join(sentence.text for sentence in document.sentences)
        assert 3 <= len(document.keyphrases) <= 8, document.id
        assert all(phrase in text for phrase in document.keyphrases), document.id


def test_a_sentence_id_is_the_document_id_and_a_number(documents: list[Document]) -> None:
    for document in documents:
        assert [sentence.id for sentence in document.sentences] == [f"{document.id}-{n + 1}" for n in range(len(document.sentences))]


def test_the_readme_has_the_right_counts(documents: list[Document], readme: str) -> None:
    """Columns: file, genre, paragraphs, sentences, words, tokens, mentions, mentions in chains, chains."""
    files = sorted(SAMPLER.glob("*.conllu"))
    totals = Counter[int]()
    for file, genre, document in zip(files, meta("meta::genre"), documents, strict=True):
        sizes = Counter(mention.entity for mention in document.mentions)
        row = (
            len(list(document.paragraphs())),
            len(document.sentences),
            sum(word.upos != "PUNCT" for word in document.words),
            len(document.words),
            len(document.mentions),
            sum(size for size in sizes.values() if size > 1),
            sum(size > 1 for size in sizes.values()),
        )
        assert f"| `{file.name}` | {genre} | {' | '.join(map(str, row))} |" in readme
        totals.update(dict(enumerate(row)))
    assert f"| all | | {' | '.join(f'{totals[column]:,}' for column in range(7))} |" in readme


ANNOTATION = ROOT / "docs" / "sampler"


def test_the_readme_has_the_right_agreement(readme: str) -> None:
    """The agreement of the two annotations, which are stored outside the package."""
    agreement = compare(read_annotation(str(ANNOTATION / "first")), read_annotation(str(ANNOTATION / "second")))
    for name in ("upos", "xpos", "lemma", "uas", "las", "mentions", "type", "muc", "b_cubed", "ceaf", "conll", "conll_chains"):
        score = agreement[name]
        assert f"| `{name}` | {score.value:.3f} | {score.low:.3f} to {score.high:.3f} |" in readme, (name, score)


def test_the_final_annotation_agrees_closely_with_both_annotations() -> None:
    final = read("sampler")
    for side in ("first", "second"):
        agreement = compare(final, read_annotation(str(ANNOTATION / side)))
        assert agreement["las"].value > 0.95
        assert agreement["conll"].value > 0.9


def test_the_page_that_compares_treebanks_has_the_right_counts(documents: list[Document]) -> None:
    page = (ROOT / "docs" / "sampler.md").read_text(encoding="utf-8")
    counts = Counter(word.relation for document in documents for word in document.words)
    words = sum(counts.values())
    for relation, n in counts.items():
        assert f"| {relation} | {n:,} ({1000 * n / words:.1f}) |" in page
    assert f"| mentions | {sum(len(document.mentions) for document in documents):,} |" in page
