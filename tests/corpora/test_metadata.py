"""Metadata of documents, from each reader to the encoded texts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

from headscope.core.document import Document, Scalar
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoder
from headscope.engine.prefetch import Prefetcher
from headscope.models.model import Model

Write = Callable[[str, str], Path]


def test_json_lines_keep_scalar_values_of_other_keys(write: Write) -> None:
    rows = [
        {"text": "Snow.", "id": "a", "label": "x", "keyphrases": [], "genre": "news", "year": 2020, "rate": 0.5, "long": False},
        {"text": "Snow.", "title": "b", "genre": None, "rate": float("nan"), "tags": ["t"], "more": {"k": 1}, "author": ""},
        {"text": "Snow.", "id": "c", "title": "Winter", "gold_label": "y", "sentence": "no text, since there is one"},
    ]
    documents = list(read(write("x.jsonl", "\n".join(map(json.dumps, rows)))))
    assert [document.id for document in documents] == ["a", "b", "c"]
    assert documents[0].metadata == {"genre": "news", "year": 2020, "rate": 0.5, "long": False}
    assert isinstance(documents[0].metadata["long"], bool)
    assert documents[1].metadata == {"author": ""}
    assert documents[2].metadata == {"title": "Winter", "sentence": "no text, since there is one"}


def test_tables_keep_other_columns_as_metadata(write: Write) -> None:
    table = write("x.csv", "id,text,genre,label,year\n1,Snow.,news,x,2020\n2,Rain., ,y,2021\n")
    assert [dict(document.metadata) for document in read(table)] == [{"genre": "news", "year": "2020"}, {"year": "2021"}]


def test_conllu_comments_become_metadata_of_the_document(columns: Write) -> None:
    """The metadata are the comments between `# newdoc` and `# sent_id`, and `meta::` comments of that sentence."""
    path = columns(
        "x.conllu",
        """
        # newdoc id = one
        # global.Entity = GRP-etype
        # genre = news
        # label = x
        # keyphrases = snow
        # annotation = automatic; a parser
        # meta::year = 2020
        # note
        # sent_id = one-1
        # s_type = frag
        # meta::late = yes
        # text = Snow
        1 Snow snow NOUN NN _ 0 root _ _

        # sent_id = one-2
        # meta::genre = that of a sentence
        1 Rain rain NOUN NN _ 0 root _ _

        # newdoc id = two
        1 Rain rain NOUN NN _ 0 root _ _
        """,
    )
    first, second = read(path)
    assert first.metadata == {"genre": "news", "year": "2020", "late": "yes"}
    assert (first.label, first.keyphrases, first.automatic) == ("x", ("snow",), "a parser")
    assert first.part(1, 2).metadata == first.metadata
    assert second.metadata == {}


def test_the_sampler_has_genres() -> None:
    genres = {document.metadata["genre"] for document in read("sampler")}
    assert {"news", "fiction", "encyclopedia"} <= genres


def test_the_hash_depends_on_metadata_but_not_on_their_order() -> None:
    sentences = next(iter(read("sampler"))).sentences
    different: list[dict[str, Scalar]] = [{}, {"genre": "news", "year": 1}, {"year": 1, "genre": "news"}, {"genre": "news", "year": 2}]
    plain, one, two, other = (Corpus.of([Document("a", sentences, metadata=metadata)]).hash() for metadata in different)
    assert one == two
    assert len({plain, one, other}) == 3


def test_encoded_texts_keep_the_metadata(small_model: Model, write: Write) -> None:
    """Pickling, by which shards go to workers, keeps the metadata, and so do the processes that read ahead."""
    rows = ['{"text": "Snow fell. Rain came.", "genre": "news"}', '{"text": "Snow.", "year": 1}']
    paths = [write(f"{number}.jsonl", row) for number, row in enumerate(rows)]
    encoder, expected = Encoder(small_model.tokenizer), [{"genre": "news"}, {"genre": "news"}, {"year": 1}]
    texts = pickle.loads(pickle.dumps(list(encoder.texts(read(*paths), Tally()))))
    assert [text.metadata for text in texts] == expected
    ahead = [text.metadata for texts in Prefetcher(read(*paths), 2).documents(encoder, Tally()) for text in texts.whole()]
    assert ahead == expected
