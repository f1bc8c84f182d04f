"""What a parser must do, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from headscope.annotation.trees import ParsedTree
from headscope.corpora.labels import RELATIONS
from headscope.errors import HeadscopeError

PARSERS = ("spacy", "stanza")
UNIVERSAL = "UD labels"
# Labels by which schemes that are not UD's are known: ClearNLP's of the English pipelines of spaCy, TIGER's of the
# German ones.
_SCHEMES = {"ClearNLP labels": {"dobj", "pobj", "nsubjpass"}, "TIGER labels": {"sb", "oa", "mo"}}


class Parser(Protocol):
    """Something that finds sentences, words and trees."""

    name: str  # with versions, as files and results name it
    scheme: str  # of the labels of its trees; "" if it does not tell

    def parse(self, texts: Sequence[str]) -> Iterator[list[ParsedTree]]:
        """The sentences of each text, in order."""


def scheme(labels: Collection[str]) -> str:
    """What scheme the labels of a parser are of; "" if there are none to tell by."""
    plain = {label.partition(":")[0] for label in labels} - {"ROOT", "root", "dep", ""}
    known = next((name for name, marks in _SCHEMES.items() if marks <= plain), None)
    return known or ("" if not plain else UNIVERSAL if plain <= set(RELATIONS) else "labels of its own")


def load_parser(parser: str | None = None, pipeline: Any = None, language: str = "en") -> Parser:
    """A parser by its name, by default the first that is installed. `pipeline` is a name, a folder, or one that is
    loaded already.
    """
    if parser is not None and parser not in PARSERS:
        raise HeadscopeError(f"there is no parser {parser!r}", f"Take {' or '.join(PARSERS)}")
    if parser is None and not isinstance(pipeline, str) and pipeline is not None:
        parser = type(pipeline).__module__.partition(".")[0]
        parser = parser if parser in PARSERS else "spacy"
    installed = [name for name in PARSERS if find_spec(name) is not None]
    chosen = parser or (installed[0] if installed else None)
    if chosen not in installed:
        missing = f"{chosen} is not installed" if chosen else "no parser is installed"
        raise HeadscopeError(missing, "Use pip install 'headscope[annotate]' for spaCy, or pip install stanza")
    load: Callable[[Any, str], Parser] = import_module(f"headscope.annotation.{chosen}_parser").load
    return load(pipeline, language)
