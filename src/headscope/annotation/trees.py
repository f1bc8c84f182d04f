"""The interface of parsers, and their sentences in the form that CoNLL-U requires: one root, no cycle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from headscope.core.paths import printable
from headscope.corpora.readers.spacy_docs import ROOT, UNSPECIFIED
from headscope.corpora.tags import RELATIONS
from headscope.corpora.tree import single_root
from headscope.errors import HeadscopeError

PARSERS = ("spacy", "stanza")
UNIVERSAL = "UD labels"
# Labels by which schemes that are not UD's are known: ClearNLP's of the English pipelines of spaCy, TIGER's of the
# German ones.
_SCHEMES = {"ClearNLP labels": {"dobj", "pobj", "nsubjpass"}, "TIGER labels": {"sb", "oa", "mo"}}


@dataclass(frozen=True, slots=True)
class Token:
    """A syntactic word, with its head counted from 1, or 0 for the root. Fields that a parser does not give are
    empty.
    """

    form: str
    lemma: str = ""
    upos: str = ""
    xpos: str = ""
    feats: str = ""
    head: int = 0
    relation: str = ""
    space_after: bool = True


class Written(NamedTuple):
    """A multi-word token, such as `del` for `de` and `el`, for the words `first` to `last`, counted from 1."""

    first: int
    last: int
    form: str
    space_after: bool


@dataclass(frozen=True)
class ParsedTree:
    """One sentence as a tree. `moved` are the words, counted from 1, that were attached to the root to form a single
    tree.
    """

    tokens: tuple[Token, ...]
    written: tuple[Written, ...] = ()
    moved: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokens: Sequence[Token], written: Sequence[Written] = ()) -> ParsedTree:
        """The sentence as a tree with one root: other roots, and a word of each cycle, are attached to it as `dep`."""
        heads, moved = single_root([token.head for token in tokens])
        placed = []
        for place, (token, head) in enumerate(zip(tokens, heads, strict=True), 1):
            relation = ROOT if head == 0 else UNSPECIFIED if place in moved else token.relation
            placed.append(replace(token, head=head, relation=relation))
        return cls(tuple(placed), tuple(written), moved)

    @property
    def text(self) -> str:
        """The text of the sentence."""
        return "".join(form + " " * space for form, space in self._surface()).rstrip()

    def rows(self) -> Iterator[str]:
        """The lines of CoNLL-U, ten columns each."""
        for place, token in enumerate(self.tokens, 1):
            token_over = self._over(place)
            if token_over is not None and place == token_over.first:
                yield _row(f"{token_over.first}-{token_over.last}", token_over.form, *["_"] * 7, _misc(token_over.space_after))
            misc = _misc(token.space_after) if token_over is None else "_"
            columns = (token.lemma, token.upos, token.xpos, token.feats, str(token.head), token.relation)
            yield _row(str(place), token.form, *(value or "_" for value in columns), "_", misc)

    def _surface(self) -> Iterator[tuple[str, bool]]:
        for place, token in enumerate(self.tokens, 1):
            over = self._over(place)
            if over is None or place == over.first:
                yield (token if over is None else over).form, (token if over is None else over).space_after

    def _over(self, place: int) -> Written | None:
        return next((token for token in self.written if token.first <= place <= token.last), None)


def _row(*columns: str) -> str:
    """One line. White space inside a column, which some pipelines produce, becomes a space."""
    return printable("\t".join(" ".join(column.split()) or "_" for column in columns))


def _misc(space_after: bool) -> str:
    return "_" if space_after else "SpaceAfter=No"


class Parser(Protocol):
    """A parser: finds sentences, words and trees."""

    name: str  # with versions, as files and results name it
    scheme: str  # of the labels of its trees; "" if unknown

    def parse(self, texts: Sequence[str]) -> Iterator[list[ParsedTree]]:
        """The sentences of each text, in order."""


def scheme(labels: Collection[str]) -> str:
    """The annotation scheme of a parser's labels; "" if it has no labels."""
    plain = {label.partition(":")[0] for label in labels} - {"ROOT", "root", "dep", ""}
    known = next((name for name, marks in _SCHEMES.items() if marks <= plain), None)
    return known or ("" if not plain else UNIVERSAL if plain <= set(RELATIONS) else "other labels")


def load_parser(parser: str | None = None, pipeline: Any = None, language: str = "en") -> Parser:
    """A parser by its name, by default the first installed. `pipeline` is a name, a folder, or a loaded one."""
    if parser is not None and parser not in PARSERS:
        raise HeadscopeError(f"there is no parser {parser!r}", f"Use {' or '.join(PARSERS)}")
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
