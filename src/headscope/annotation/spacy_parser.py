"""spaCy pipelines that are installed or in a folder. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spacy
from spacy.util import get_installed_models

from headscope.annotation.trees import UNIVERSAL, ParsedTree, Token, scheme
from headscope.core.paths import kind_of
from headscope.corpora.readers.spacy_docs import heads_of, space_after
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

_WEB = ("en", "zh")  # languages whose pipelines are called xx_core_web_sm, where others are xx_core_news_sm


class SpacyParser:
    """A pipeline of spaCy."""

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        self.scheme = scheme(nlp.pipe_labels.get("parser", ()))
        meta = nlp.meta
        pipeline_name = f"{meta['lang']}_{meta['name']} {meta['version']}"
        self.name = "; ".join([f"spaCy {version('spacy')}", pipeline_name, *([self.scheme] if self.scheme not in ("", UNIVERSAL) else [])])

    def parse(self, texts: Sequence[str]) -> Iterator[list[ParsedTree]]:
        """The sentences of each text."""
        try:
            for document in self._nlp.pipe(texts):
                yield self._trees(document)
        except HeadscopeError:
            raise
        except Exception as error:  # of components by any author
            raise HeadscopeError(f"{self.name} fails on a text ({type(error).__name__}: {error})", "Use another --pipeline") from error

    def _trees(self, document: Doc) -> list[ParsedTree]:
        if not document.text.strip():
            return []
        if not document.has_annotation("DEP"):
            raise HeadscopeError(
                f"the pipeline {self.name} gives no trees: its components are {', '.join(self._nlp.pipe_names) or 'none'}",
                "Use one with a parser",
            )
        return [ParsedTree.of(tokens) for span in document.sents if (tokens := _tokens(span))]


def load(pipeline: Any, language: str) -> SpacyParser:
    """A pipeline by its name, from a folder, or already loaded; by default the small one of a language."""
    name = pipeline if pipeline is not None else f"{language}_core_{'web' if language in _WEB else 'news'}_sm"
    if not isinstance(name, str | Path):
        return SpacyParser(name)
    folder = Path(name)
    if len(folder.parts) > 1 and kind_of(folder) != "folder":
        raise HeadscopeError(f"there is no folder {name}", "Check the spelling and the working directory")
    try:
        return SpacyParser(spacy.load(folder if kind_of(folder) == "folder" else str(name)))
    except Exception as error:  # any fault of the folder, or of the components that its settings name
        if kind_of(folder) == "folder":
            remedy = "Name the folder that holds its config.cfg and meta.json"
            raise HeadscopeError(f"{name} cannot be loaded as a pipeline of spaCy ({_first_line(error)})", remedy) from error
        if isinstance(error, OSError) and "E050" in str(error):
            here = ", ".join(sorted(get_installed_models())) or "none"
            remedy = f"Install it with python -m spacy download {name}, or name another with --pipeline; installed: {here}"
            raise HeadscopeError(f"spaCy has no pipeline {str(name)!r}", remedy) from None
        raise HeadscopeError(f"the pipeline {name} cannot be loaded ({_first_line(error)})", "Install what it needs") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _tokens(span: Span) -> list[Token]:
    """The words of a sentence. White space is not a word in CoNLL-U."""
    words = [token for token in span if not token.text.isspace()]
    return [
        Token(
            form=token.text,
            lemma=token.lemma_,
            upos=token.pos_,
            xpos=token.tag_,
            feats="|".join(sorted(str(token.morph).split("|"), key=str.casefold)),  # spaCy puts NumType before Number
            head=head,
            relation=token.dep_,
            space_after=space_after(token),
        )
        for token, head in zip(words, heads_of(words), strict=True)
    ]
