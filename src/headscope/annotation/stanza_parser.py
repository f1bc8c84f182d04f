"""Stanza models that are already on this machine. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stanza
from stanza.resources.common import DEFAULT_MODEL_DIR

from headscope.annotation.trees import UNIVERSAL, ParsedTree, Token, Written
from headscope.core.paths import kind_of
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from stanza.models.common.doc import Document, Sentence

_PROCESSORS = ("tokenize", "mwt", "pos", "lemma", "depparse")


class StanzaParser:
    """A pipeline of Stanza, whose trees are UD's."""

    scheme = UNIVERSAL

    def __init__(self, pipeline: Any, name: str) -> None:
        self._pipeline = pipeline
        self.name = f"Stanza {stanza.__version__}; {name}"

    def parse(self, texts: Sequence[str]) -> Iterator[list[ParsedTree]]:
        """The sentences of each text."""
        try:
            documents = self._pipeline.bulk_process(list(texts)) if texts else []
        except Exception as error:
            raise HeadscopeError(f"{self.name} fails on a text ({type(error).__name__}: {error})", "Use another --pipeline") from error
        for document in documents:
            yield trees(document)


def load(pipeline: Any, language: str) -> StanzaParser:
    """The models of a language; `pipeline` is their folder, the name of a package, or a loaded pipeline."""
    if pipeline is not None and not isinstance(pipeline, str | Path):
        return StanzaParser(pipeline, str(getattr(pipeline, "lang", language)))
    folder = Path(pipeline) if pipeline is not None and kind_of(pipeline) == "folder" else None
    place = folder or Path(DEFAULT_MODEL_DIR)
    package = str(pipeline) if pipeline is not None and folder is None else "default"
    try:
        loaded = stanza.Pipeline(
            language,
            dir=str(place),
            package=package,
            processors=",".join(name for name in _PROCESSORS if name != "mwt" or (place / language / "mwt").is_dir()),
            download_method=None,
            verbose=False,
        )
    except Exception as error:
        here = ", ".join(sorted(path.name for path in place.iterdir() if path.is_dir())) if place.is_dir() else ""
        remedy = f"Get them with python -c \"import stanza; stanza.download('{language}')\", or name their folder with --pipeline"
        raise HeadscopeError(
            f"Stanza has no models of {language!r} ({str(error).strip().partition(chr(10))[0]})",
            f"{remedy}; there in {place}: {here or 'none'}",
        ) from error
    return StanzaParser(loaded, f"{language} {package}")


def trees(document: Document) -> list[ParsedTree]:
    """The sentences of a document of Stanza."""
    tokens = [token for sentence in document.sentences for token in sentence.tokens]
    spaces = dict(zip(map(id, tokens), _spaces(tokens), strict=True))
    return [_tree(sentence, spaces) for sentence in document.sentences if sentence.words]


def _spaces(tokens: Sequence[Any]) -> list[bool]:
    """Whether a space follows each token, by the tokens' places in the text. The end of a text counts as a space."""
    gaps = [
        following.start_char > token.end_char if token.end_char is not None and following.start_char is not None else True
        for token, following in pairwise(tokens)
    ]
    return [*gaps, True][: len(tokens)]


def _tree(sentence: Sentence, spaces: dict[int, bool]) -> ParsedTree:
    words: list[Token] = []
    written: list[Written] = []
    for token in sentence.tokens:
        space = spaces[id(token)]
        if len(token.words) > 1:
            written.append(Written(len(words) + 1, len(words) + len(token.words), token.text, space))
        words += [
            Token(
                form=word.text,
                lemma=word.lemma or "",
                upos=word.upos or "",
                xpos=word.xpos or "",
                feats=word.feats or "",
                head=word.head or 0,
                relation=word.deprel or "",
                space_after=space,
            )
            for word in token.words
        ]
    return ParsedTree.of(words, written)
