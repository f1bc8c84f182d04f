"""Sentences as parsers give them, put into the shape that CoNLL-U asks for: one root, no cycle, `root` and nothing
else at the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headscope.core.names import printable
from headscope.corpora.tree import tree_faults

ROOT, UNSPECIFIED = "root", "dep"  # `dep` is said by UD, and by the scheme of ClearNLP, of what has no better name


@dataclass(frozen=True, slots=True)
class Token:
    """A syntactic word, with its head from 1, or 0 for the root. What a parser does not say is empty."""

    form: str
    lemma: str = ""
    upos: str = ""
    xpos: str = ""
    feats: str = ""
    head: int = 0
    relation: str = ""
    space_after: bool = True


class Written(NamedTuple):
    """What stands in the text for the words `first` to `last`, counted from 1: a multi-word token, as `del` for `de`
    and `el`.
    """

    first: int
    last: int
    form: str
    space_after: bool


@dataclass(frozen=True)
class ParsedTree:
    """One sentence. `moved` are the words, counted from 1, that the parser left without a place in a single tree."""

    tokens: tuple[Token, ...]
    written: tuple[Written, ...] = ()
    moved: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokens: Sequence[Token], written: Sequence[Written] = ()) -> ParsedTree:
        """The sentence as a tree with one root: further roots, and one word of each cycle, hang on the first root as
        `dep`.
        """
        heads = [token.head if token.head != place else 0 for place, token in enumerate(tokens, 1)]
        heads = [head if 0 <= head <= len(heads) else 0 for head in heads]
        for fault in list(tree_faults(heads)):
            heads[fault.word - 1] = 0
        top = heads.index(0) + 1
        moved = tuple(place for place, head in enumerate(heads, 1) if head == 0 and place != top)
        placed = []
        for place, (token, head) in enumerate(zip(tokens, heads, strict=True), 1):
            relation = ROOT if place == top else UNSPECIFIED if place in moved else token.relation
            placed.append(replace(token, head=top if place in moved else head, relation=relation))
        return cls(tuple(placed), tuple(written), moved)

    @property
    def text(self) -> str:
        """The sentence as it is written."""
        return "".join(form + " " * space for form, space in self._surface()).rstrip()

    def rows(self) -> Iterator[str]:
        """The lines of CoNLL-U, ten columns each."""
        for place, token in enumerate(self.tokens, 1):
            one = self._over(place)
            if one is not None and place == one.first:
                yield _row(f"{one.first}-{one.last}", one.form, *["_"] * 7, _misc(one.space_after))
            misc = _misc(token.space_after) if one is None else "_"
            columns = (token.lemma, token.upos, token.xpos, token.feats, str(token.head), token.relation)
            yield _row(str(place), token.form, *(value or "_" for value in columns), "_", misc)

    def _surface(self) -> Iterator[tuple[str, bool]]:
        for place, token in enumerate(self.tokens, 1):
            one = self._over(place)
            if one is None or place == one.first:
                yield (token if one is None else one).form, (token if one is None else one).space_after

    def _over(self, place: int) -> Written | None:
        """The multi-word token that a word is part of."""
        return next((one for one in self.written if one.first <= place <= one.last), None)


def _row(*columns: str) -> str:
    """A line; white space inside a column, which no text here has but a component of a pipeline might make, becomes
    a space.
    """
    return printable("\t".join(" ".join(column.split()) or "_" for column in columns))


def _misc(space_after: bool) -> str:
    return "_" if space_after else "SpaceAfter=No"
