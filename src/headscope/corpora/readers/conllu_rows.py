"""The ten columns of CoNLL-U and CoNLL-X: from the rows of a sentence to its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headscope.core.document import Word
from headscope.corpora.files import Line
from headscope.corpora.readers.conllu_columns import COLUMNS, entity_of, parse_columns
from headscope.corpora.readers.draft import Anchor
from headscope.corpora.source import Flaw, natural, quoted, sound
from headscope.corpora.tree import tree_faults

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_LITERAL = ("PUNCT", "SYM")


class Row(NamedTuple):
    """The columns of one line."""

    line: int
    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: str
    relation: str
    deps: str
    misc: str

    @property
    def range(self) -> tuple[int, int] | None:
        """First and last word of a multi-word token `n-m`."""
        match = _RANGE.fullmatch(self.id) if "-" in self.id else None
        return (int(match[1]), int(match[2])) if match else None

    @property
    def node(self) -> int | None:
        """The word that an empty node `n.m` follows."""
        match = _EMPTY_NODE.fullmatch(self.id) if "." in self.id else None
        return int(match[1]) if match else None

    @property
    def space_after(self) -> bool:
        """Whether a space follows in the text."""
        return "SpaceAfter=No" not in self.misc or "SpaceAfter=No" not in self.misc.split("|")

    @property
    def entity(self) -> str | None:
        """The coreference brackets."""
        return entity_of(self.misc)


@dataclass
class Parsed:
    """The words of a sentence, with their lines and the lines of what was skipped."""

    words: list[Word] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    underscores: list[int] = field(default_factory=list)


def parse_row(line: Line) -> Row:
    """The columns of a line."""
    columns = sound(line).split("\t")
    if len(columns) != COLUMNS:
        problem = f"{len(columns)} columns where {COLUMNS} are needed in {quoted(line.text)}"
        remedy = "Separate ten columns by tabs, or name the format of the file with --corpus-format"
        raise Flaw(line.number, "wrong number of columns", problem, remedy)
    return Row(line.number, *columns)


def parse_sentence(rows: Sequence[Line], universal: bool) -> Parsed:
    """The words of a sentence whose ids and tree are valid, or a Flaw. `universal`: the fourth column holds UPOS
    tags.
    """
    if rows and (found := parse_columns(rows, universal)) is not None:
        return Parsed(*found)
    return parse_rows(rows, universal)


def parse_rows(rows: Iterable[Line], universal: bool) -> Parsed:
    """As `parse_sentence`, row by row: works for all sentences and reports what is wrong."""
    parsed = Parsed()
    last, space = 0, True  # of the multi-word token that is being read
    for row in map(parse_row, rows):
        count = len(parsed.words)
        if span := row.range:
            if span[0] != count + 1 or span[1] < span[0] or count < last:
                raise _bad_id(row, f"after word {count}")
            last, space = span[1], row.space_after
            parsed.ranges.append(row.line)
        elif row.node is not None:
            if row.node != count:
                raise _bad_id(row, f"after word {count}")
            parsed.nodes.append(row.line)
            if row.entity is not None:
                parsed.anchors.append(Anchor(count, count, row.entity, row.line))
        else:
            if natural(row.id) != count + 1:
                raise _bad_id(row, f"where word {count + 1} is expected")
            after = False if count + 1 < last else space if count + 1 == last else row.space_after
            parsed.words.append(_word(row, universal, after))
            parsed.lines.append(row.line)
            if row.form == "_" and row.upos not in _LITERAL:
                parsed.underscores.append(row.line)
            if row.entity is not None:
                parsed.anchors.append(Anchor(count, count + 1, row.entity, row.line))
    if last > len(parsed.words):
        problem = f"a multi-word token up to word {last} in a sentence of {len(parsed.words)} words"
        raise Flaw(parsed.ranges[-1], "bad id", problem, "Correct the range")
    for fault in tree_faults([word.head for word in parsed.words]):
        raise Flaw(parsed.lines[fault.word - 1], fault.kind, fault.problem, "Correct the head")
    return parsed


def stray_anchors(rows: Iterable[Line]) -> Iterator[Anchor]:
    """The coreference brackets of a sentence that cannot be parsed, as far as they can be read."""
    for line in rows:
        try:
            row = parse_row(line)
        except Flaw:
            continue
        if row.entity is not None:
            yield Anchor(0, 0, row.entity, row.line)


def _word(row: Row, universal: bool, space_after: bool) -> Word:
    if not row.form.strip():
        raise Flaw(row.line, "empty form", f"word {row.id} has an empty form {quoted(row.form)}", "Write the word into the second column")
    head = natural(row.head)
    if head is None and row.head != "_":
        remedy = "Give the number of a word, 0 for the root or _"
        raise Flaw(row.line, "head is not a number", f"head {quoted(row.head)} is not the number of a word", remedy)
    upos, xpos = _given(row.upos), _given(row.xpos)
    underscore = row.form == "_" and row.upos in _LITERAL
    return Word(
        form=row.form,
        lemma="_" if underscore and row.lemma == "_" else _given(row.lemma),
        upos=upos if universal else None,
        # CoNLL-X has a coarse and a fine tag of the treebank's tag set in place of UPOS and XPOS.
        xpos=xpos if universal else xpos or upos,
        head=head,
        relation=_given(row.relation),
        space_after=space_after,
    )


def _given(value: str) -> str | None:
    return None if value in ("_", "") else value


def _bad_id(row: Row, place: str) -> Flaw:
    remedy = "Number the words 1, 2, 3 ... and put a blank line between sentences"
    return Flaw(row.line, "bad id", f"id {quoted(row.id)} {place}", remedy)
