"""CoNLL-U and CoNLL-X, ten columns: https://universaldependencies.org/format.html.

Multi-word tokens and empty nodes are skipped and counted. Sentences with several roots are read and counted: real
treebanks have them, and no measure predicts the root. Coreference is read from `Entity=` as GUM writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from headscope.core.document import Document, Sentence
from headscope.corpora.automatic import Marks
from headscope.corpora.readers.blocks import LineBlock, blocks
from headscope.corpora.readers.brackets import Schema
from headscope.corpora.readers.conllu_rows import Parsed, parse_sentence, stray_anchors
from headscope.corpora.readers.draft import Draft
from headscope.corpora.readers.metadata import of_comments
from headscope.corpora.source import Flaw, Source
from headscope.corpora.tree import roots

_ALONE = "sentences read as separate documents: the file has no # newdoc"
_BY_ID = "documents formed from the ids of their sentences: the file has no # newdoc"


def read_conllu(source: Source, universal: bool = True) -> Iterator[Document]:
    """The documents of a CoNLL-U file; without `universal`, of a CoNLL-X file, whose tags are the treebank's own."""
    reader = _Reader(source, universal)
    for block, group in grouped(blocks(source.lines())):
        if document := reader.boundary(block, group):
            yield document
        if block.rows:
            reader.sentence(block)
    if document := reader.finish():
        yield document


class _Reader:
    """The state that carries over from one sentence to the next."""

    def __init__(self, source: Source, universal: bool) -> None:
        self._source = source
        self._universal = universal
        self._schema = Schema()
        self._marks = Marks()
        self._draft: Draft | None = None
        self._group: Group | None = None  # of the sentence that was read last
        self._formed: tuple[str, int] | None = None  # how a document without # newdoc was formed, and where it begins
        self._count = 0

    def boundary(self, block: LineBlock, group: Group | None) -> Document | None:
        """Process the comments of a block, and return the document that ends before it. `group` is the document that
        its id names.
        """
        finished = None
        goes_on = group is not None and group is self._group
        self._group = group
        if self._marks.take(block) and (self._marks.declared or not goes_on):
            finished = self.finish()
            self._formed = None if self._marks.declared else (_ALONE if group is None else _BY_ID, block.line)
            undeclared = block.comment("sent_id") if group is None else group.name
            self._begin(block.comment("newdoc id") if self._marks.declared else undeclared, block)
        if declaration := block.comment("global.Entity"):
            self._schema = Schema.parse(declaration)
        if self._draft:
            self._draft.automatic = self._marks.parser
            if not self._draft.started:
                self._draft.metadata |= of_comments(block.comments)
            if self._draft.started and any(comment.key in ("newpar", "newpar id") for comment in block.comments):
                self._draft.paragraph += 1
            if phrases := block.comment("keyphrases"):
                self._draft.keyphrases += tuple(phrase.strip() for phrase in phrases.split(";") if phrase.strip())
        return finished

    def sentence(self, block: LineBlock) -> None:
        """Add the words of a block to the document."""
        assert self._draft is not None
        try:
            if not (parsed := parse_sentence(block.rows, self._universal)).words:
                raise Flaw(block.rows[0].number, "no words", "a sentence without words", "Give it words, or remove it")
        except Flaw as flaw:
            self._source.report(flaw)
            self._draft.lose(stray_anchors(block.rows), self._schema)
            return
        self._note(parsed)
        words = tuple(parsed.words)
        sentence = Sentence(words, block.comment("sent_id"), self._draft.paragraph, block.comment("speaker"))
        self._draft.add(sentence, parsed.anchors, self._schema)

    def finish(self) -> Document | None:
        """The document read so far, if there is anything in it."""
        draft, self._draft = self._draft, None
        if draft is None or not draft.started:
            return None
        document = draft.finish()
        if document is not None and self._formed is not None:  # counted when it is complete: the next one may never be read
            self._source.note(*self._formed, read=True)
        return document

    def _begin(self, id: str | None, block: LineBlock) -> None:
        self._count += 1
        label = block.comment("label") if self._marks.declared else None
        self._draft = Draft(self._source, id or f"{self._source.name}#{self._count}", label)

    def _note(self, parsed: Parsed) -> None:
        for line in parsed.ranges:
            self._source.note("multi-word tokens (their words are read)", line, read=True)
        for line in parsed.nodes:
            self._source.note("empty nodes", line)
        if roots([word.head for word in parsed.words]) > 1:
            self._source.note("sentences with more than one root (read nevertheless)", parsed.lines[0], read=True)
        for line in parsed.underscores:
            self._source.note("words written _ (read as underscores)", line, read=True)


AHEAD = 500  # sentences that are examined to decide whether the ids of a file name documents
_ID = re.compile(r"(.+)[-.]s?([0-9]{1,9})")
_SPLIT = re.compile(r"(?:.*[^a-z])?(?:train|dev|devel|development|test|valid|validation|sent|sentence|s)", re.IGNORECASE | re.DOTALL)


@dataclass(eq=False)
class Group:
    """Consecutive sentences whose ids name the same document. Two groups are never equal."""

    name: str
    last: int = -1  # number of a sentence

    def takes(self, name: str, number: int) -> bool:
        """Whether a sentence continues the document: within a document, sentence numbers increase."""
        if name != self.name or number <= self.last:
            return False
        self.last = number
        return True


def grouped(blocks: Iterable[LineBlock]) -> Iterator[tuple[LineBlock, Group | None]]:
    """The blocks of a file, each with the document that its id names; None for all if the first ids do not agree on
    what they name.
    """
    blocks = iter(blocks)
    first = list(islice(blocks, AHEAD))
    if not _consistent(first):
        yield from ((block, None) for block in chain(first, blocks))
        return
    yield from _groups(chain(first, blocks))


def _consistent(blocks: list[LineBlock]) -> bool:
    """Whether ids name documents: all have the right form, none names a part of a treebank, and most neighbours share a
    name that does not recur later.
    """
    if any(comment.key in ("newdoc", "newdoc id") for block in blocks for comment in block.comments):
        return False
    groups = [group for block, group in _groups(blocks) if block.rows]
    names = [group.name for group in dict.fromkeys(groups) if group is not None]
    if None in groups or any(_SPLIT.fullmatch(name) for name in names):
        return False
    return len(set(names)) == len(names) > 1 and 2 * len(names) <= len(groups)


def _groups(blocks: Iterable[LineBlock]) -> Iterator[tuple[LineBlock, Group | None]]:
    group: Group | None = None
    for block in blocks:
        if block.rows:
            match = _ID.fullmatch(block.comment("sent_id") or "")
            if match is None:
                group = None
            elif group is None or not group.takes(match[1], int(match[2])):
                group = Group(match[1], int(match[2]))
        yield block, group
