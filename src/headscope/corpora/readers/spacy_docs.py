"""spaCy's `Doc`s, in memory or in a `DocBin` file, with tags and trees if they are annotated.

A `Doc` does not record who annotated it. Its annotation is assumed to be automatic.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora.files import RATIO, UNPACKED, opened
from headscope.corpora.readers.json_values import plain
from headscope.corpora.readers.jsonl import described
from headscope.corpora.readers.tokenise import sentence_places
from headscope.corpora.source import Flaw, Source
from headscope.corpora.tree import single_root
from headscope.errors import CorpusError, HeadscopeError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as SpacyToken

ROOT, UNSPECIFIED = "root", "dep"  # `dep` is the unspecified relation of UD and of the ClearNLP scheme
_PARSER = "spaCy"
_BLANK = re.compile(r"\n[^\S\n]*\n")


def read_docbin(source: Source) -> Iterator[Document]:
    """A document for each `Doc` of a file that `DocBin.to_disk` wrote."""
    source.unit = "Doc"
    with opened(source.path, source.meter) as stream:
        data = stream.read()
    for number, doc in enumerate(_docs(source, data), 1):
        try:
            yield document_of(doc, number, source.name)
        except Flaw as flaw:
            source.report(flaw, "Docs")


def _docs(source: Source, data: bytes) -> Iterator[Doc]:
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise HeadscopeError(f"{source.path} is a DocBin, and spacy is not installed", "Use pip install 'headscope[annotate]'") from None
    try:
        unpacking = zlib.decompressobj()
        unpacking.decompress(data, max(UNPACKED, RATIO * len(data)))
        if unpacking.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {RATIO} times its size")
        yield from DocBin().from_bytes(data).get_docs(Vocab())
    except Exception as error:  # any fault in the bytes
        cause = str(error).strip().partition("\n")[0]
        remedy = "Write it again with DocBin.to_disk"
        raise CorpusError(source.path, None, f"this cannot be read as a DocBin ({cause})", remedy) from None


def document_of(doc: Doc, number: int, name: str) -> Document:
    """A `Doc` as a document: its id, label and metadata are those of its `user_data` and extensions."""
    parsed, tagged = doc.has_annotation("DEP"), doc.has_annotation("POS") or doc.has_annotation("TAG")
    tokens = [token for token in doc if not token.text.isspace()]
    if not tokens:
        raise Flaw(number, "no words", "a Doc without words", "Give it words, or remove it")
    place = {token.i: position for position, token in enumerate(tokens)}
    text, sentences, paragraph, passed = doc.text, [], 0, tokens[0].idx
    for words in _sentences(doc, tokens):
        paragraph += len(_BLANK.findall(text[passed : words[0].idx]))
        passed = words[0].idx
        sentences.append(Sentence(tuple(_words(words, parsed)), paragraph=paragraph))
    entities = [[place[token.i] for token in entity if token.i in place] for entity in doc.ents]
    edges = [
        Edge("entities", (span.label_,), (at[0], at[-1] + 1)) for span, at in zip(doc.ents, entities, strict=True) if at and span.label_
    ]
    return Document(
        sentences=tuple(sentences),
        edges=tuple(edges),
        automatic=_PARSER if parsed or tagged else None,
        **described(_entry(doc.user_data), (), number, name),
    )


def _entry(user_data: Mapping[Any, Any]) -> dict[str, object]:
    """User data by name; spaCy keeps an extension `doc._.name` under ("._.", name, None, None)."""
    entry = {}
    for key, value in user_data.items():
        extension = isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[2] is None
        name = key[1] if extension else key
        if isinstance(name, str):
            entry[name] = plain(value)
    return entry


def _sentences(doc: Doc, tokens: Sequence[SpacyToken]) -> Iterator[list[SpacyToken]]:
    """The words of each sentence: as annotated, or else split after `.`, `!` or `?` before a capital."""
    if doc.has_annotation("SENT_START"):
        spans = ([token for token in span if not token.text.isspace()] for span in doc.sents)
        yield from (span for span in spans if span)
    else:
        forms = [token.text for token in tokens]
        yield from (list(tokens[begin:end]) for begin, end in sentence_places(forms))


def _words(tokens: Sequence[SpacyToken], parsed: bool) -> Iterator[Word]:
    heads = single_root(heads_of(tokens)) if parsed else None
    for number, token in enumerate(tokens, 1):
        head = heads.heads[number - 1] if heads is not None else None
        relation = None
        if heads is not None:
            relation = ROOT if head == 0 else UNSPECIFIED if number in heads.moved else token.dep_ or None
        yield Word(token.text, token.lemma_ or None, token.pos_ or None, token.tag_ or None, head, relation, space_after(token))


def heads_of(tokens: Sequence[SpacyToken]) -> list[int]:
    """The heads of the words of a sentence, from 1; 0 for a root. Dependents of white space are attached to its
    head.
    """
    place = {token.i: number for number, token in enumerate(tokens, 1)}
    heads = [place.get(_governor(token).i, 0) for token in tokens]
    return [head if head != number else 0 for number, head in enumerate(heads, 1)]


def _governor(token: SpacyToken) -> SpacyToken:
    """The nearest word above a word; itself at the root."""
    above = token.head
    while above.text.isspace() and above.head.i != above.i:
        above = above.head
    return token if above.text.isspace() else above


def space_after(token: SpacyToken) -> bool:
    """Whether white space follows; the end of a text counts as the end of a paragraph."""
    following = token.i + 1
    return bool(token.whitespace_) or following == len(token.doc) or token.doc[following].text.isspace()
