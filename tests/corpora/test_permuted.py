"""Trees of other sentences as a control: as long, not the sentence's own, and the same whatever the order of documents."""

from __future__ import annotations

import headscope as hs
from headscope.core.annotation import NONE, ROOT, Annotated
from headscope.core.document import Document, Sentence, Word
from headscope.corpora.permuted import POOL, Trees


def chain(name: str, *heads: int) -> Sentence:
    return Sentence(tuple(Word(f"{name}{i}", head=head, relation="root" if head == 0 else "dep") for i, head in enumerate(heads)))


DOCUMENTS = [
    Document("a", (chain("x", 0, 1, 2), chain("y", 2, 0))),
    Document("b", (chain("z", 2, 3, 0), Sentence((Word("bare"), Word("words"))), chain("w", 0))),
]


def test_partners_are_other_sentences_of_the_same_length() -> None:
    trees = Trees(DOCUMENTS)
    (first, second), (third, fourth, alone) = (trees.partners(document) for document in DOCUMENTS)
    assert first == DOCUMENTS[1].sentences[0].words
    assert third == DOCUMENTS[0].sentences[0].words
    assert second is None  # the only other sentence of two words has no tree
    assert fourth == DOCUMENTS[0].sentences[1].words
    assert alone is None


def test_order_changes_nothing_and_little_is_kept() -> None:
    documents = list(hs.read("sampler"))
    trees, backwards = Trees(documents), Trees(reversed(documents))
    for document in documents:
        assert trees.partners(document) == backwards.partners(document)
    many = [Document(str(number), (chain(f"s{number}.", 0, 1),)) for number in range(10 * POOL)]
    partners = [Trees(many).partners(document)[0] for document in many[:40]]
    assert len({partner[0].form for partner in partners if partner}) <= POOL
    assert all(partner and not partner[0].form.startswith(f"s{number}.") for number, partner in enumerate(partners))


def test_a_text_takes_its_part_of_the_other_tree() -> None:
    annotation = Annotated(DOCUMENTS[0], Trees(DOCUMENTS).partners(DOCUMENTS[0])).select([1, 2, 3, 4])
    assert [word and word.form for word in annotation.others] == ["z1", "z2", None, None]
    assert annotation.other_heads == (1, ROOT, NONE, NONE)
    assert Annotated(DOCUMENTS[0]).select([0]).others == ()
