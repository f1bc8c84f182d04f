"""What the validator has to say about one sentence of a CoNLL-U file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.corpora.blocks import Block
from headscope.corpora.conllu_rows import Row, parse_row
from headscope.corpora.labels import UPOS, is_relation
from headscope.corpora.source import Flaw, natural, quoted
from headscope.corpora.tree import roots, tree_faults

Problem = tuple[int, str]


def parse_rows(block: Block) -> tuple[list[Row], list[Problem]]:
    """The rows that have ten columns, and what is wrong with the others."""
    rows, problems = [], []
    for line in block.rows:
        try:
            rows.append(parse_row(line))
        except Flaw as flaw:
            problems.append((flaw.line, flaw.problem))
    return rows, problems


def sentence_problems(block: Block, rows: Sequence[Row]) -> Iterator[Problem]:
    """Everything wrong within a sentence, its coreference brackets aside."""
    words = [row for row in rows if not row.range and row.node is None]
    yield from _comments(block)
    yield from _ids(rows)
    for row in words:
        yield from _labels(row)
    yield from _tree(block, words)
    text = block.comment("text")
    if text is not None and len(rows) == len(block.rows) and (difference := _difference(text, surface(rows))):
        yield block.line, difference


def surface(rows: Sequence[Row]) -> str:
    """The sentence as it is written: multi-word tokens in place of their words, spaces as SpaceAfter tells."""
    text, last = "", 0
    for row in rows:
        if row.range:
            last = row.range[1]
        elif row.node is not None or (natural(row.id) or 0) <= last:
            continue
        text += row.form + " " * row.space_after
    return text.strip()


def _difference(text: str, written: str) -> str | None:
    """Where two texts part ways; how wide a space is does not matter."""
    text, written = " ".join(text.split()), " ".join(written.split())
    if text == written:
        return None
    place = next((i for i, (a, b) in enumerate(zip(text, written, strict=False)) if a != b), min(len(text), len(written)))
    window = slice(max(0, place - 10), place + 20)
    return f"# text has {quoted(text[window])} where the words give {quoted(written[window])}"


def _comments(block: Block) -> Iterator[Problem]:
    for key in ("sent_id", "text"):
        if block.comment(key) is None:
            yield block.line, f"no # {key}"
    for comment in block.comments:
        if comment.line > block.rows[0].number:
            yield comment.line, f"comment {quoted(comment.text)} inside a sentence"


def _ids(rows: Sequence[Row]) -> Iterator[Problem]:
    expected, last = 1, 0
    for row in rows:
        if span := row.range:
            if span[0] != expected or span[1] < span[0] or expected <= last:
                yield row.line, f"range {row.id} before word {expected}"
            last = span[1]
        elif row.node is not None:
            if row.node != expected - 1:
                yield row.line, f"empty node {row.id} after word {expected - 1}"
        else:
            if natural(row.id) != expected:
                yield row.line, f"id {quoted(row.id)} where word {expected} is expected"
            expected += 1
    if last >= expected:
        yield rows[-1].line, f"a range up to word {last} in a sentence of {expected - 1} words"


def _labels(row: Row) -> Iterator[Problem]:
    if not row.form.strip():
        yield row.line, f"word {row.id} has an empty form"
    if row.upos not in UPOS:
        yield row.line, f"{quoted(row.upos)} is no UPOS tag"
    if not is_relation(row.relation):
        yield row.line, f"{quoted(row.relation)} is no universal relation"
    if natural(row.head) is None:
        yield row.line, f"head {quoted(row.head)} is not the number of a word"
    elif (row.head == "0") != (row.relation.partition(":")[0] == "root"):
        yield row.line, f"relation {quoted(row.relation)} with head {row.head}"


def _tree(block: Block, words: Sequence[Row]) -> Iterator[Problem]:
    heads = [natural(row.head) for row in words]
    for fault in tree_faults(heads):
        yield words[fault.word - 1].line, fault.problem
    if words and (found := roots(heads)) != 1:
        yield words[0].line, f"{found} roots"
    if not words:
        yield block.line, "a sentence without words"
