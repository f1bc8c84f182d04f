"""The validator behind `headscope corpus check`: every problem of a CoNLL-U file in one go."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.blocks import Block, Comment, blocks
from headscope.corpora.brackets import UNIT, Chains, Schema, parse_marks
from headscope.corpora.check_sentence import parse_rows, sentence_problems, surface
from headscope.corpora.conllu_rows import Row
from headscope.corpora.formats import resolve
from headscope.corpora.source import Flaw, Source, quoted
from headscope.errors import CorpusError


@dataclass(frozen=True)
class Finding:
    """A problem and its place; `line` and `sentence_id` are None where there is none to name."""

    path: Path
    line: int | None
    sentence_id: str | None
    problem: str

    def __str__(self) -> str:
        place = f"line {self.line} of {self.path}" if self.line else str(self.path)
        return f"{place}{f' ({self.sentence_id})' if self.sentence_id else ''}: {self.problem}"


def check(paths: Iterable[str | Path]) -> list[Finding]:
    """All problems of CoNLL-U files, in the order of the files and their lines; empty if they are valid."""
    sentences: dict[str, str] = {}
    return [finding for path in resolve(tuple(paths)) for finding in _Checker(path, sentences).run()]


class _Checker(Source):
    """One file being checked. As a Source it receives the faults that the reading of brackets reports."""

    def __init__(self, path: Path, sentence_ids: dict[str, str]) -> None:
        super().__init__(path, skip=True)
        self._seen = sentence_ids
        self._findings: list[Finding] = []
        self._starts: list[int] = []
        self._ids: list[str | None] = []
        self._schema = Schema()
        self._documents = 0
        self._begin()

    def run(self) -> list[Finding]:
        """The problems of the file by line."""
        try:
            for block in blocks(self.lines()):
                self._block(block)
        except CorpusError as error:
            self._findings.append(Finding(self.path, None, None, error.problem.removeprefix(f"{self.path}: ")))
            return self._findings
        self._end()
        return sorted(self._findings, key=lambda finding: finding.line or 0)

    def report(self, flaw: Flaw, unit: str = UNIT) -> None:  # the unit matters only for counting
        """Note a fault instead of raising it."""
        self._find(flaw.line, flaw.problem)

    def _find(self, line: int, problem: str) -> None:
        place = bisect_right(self._starts, line) - 1
        self._findings.append(Finding(self.path, line, self._ids[place] if place >= 0 else None, problem))

    def _block(self, block: Block) -> None:
        if any(comment.key in ("newdoc", "newdoc id") for comment in block.comments):
            self._end()
            self._begin()
            self._documents += 1
        elif block.rows and not self._documents and not self._starts:
            self._find(block.line, "no # newdoc before the first sentence")
        if declaration := block.comment("global.Entity"):
            self._schema = Schema.parse(declaration)
        self._keyphrases += [comment for comment in block.comments if comment.key == "keyphrases"]
        if not block.rows:
            return
        self._starts.append(block.line)
        self._ids.append(block.comment("sent_id"))
        self._unique(block)
        rows, problems = parse_rows(block)
        for line, problem in [*problems, *sentence_problems(block, rows)]:
            self._find(line, problem)
        self._brackets(rows)
        self._text.append(surface(rows))

    def _begin(self) -> None:
        self._chains = Chains(self)
        self._words = 0
        self._text: list[str] = []
        self._keyphrases: list[Comment] = []

    def _end(self) -> None:
        self._chains.finish()
        text = " ".join(self._text).casefold()
        for comment in self._keyphrases:
            for phrase in filter(None, map(str.strip, comment.value.split(";"))):
                if phrase.casefold() not in text:
                    self._find(comment.line, f"keyphrase {quoted(phrase)} does not occur in the document")

    def _unique(self, block: Block) -> None:
        if (id := block.comment("sent_id")) is None:
            return
        if id in self._seen:
            self._find(block.line, f"sent_id {quoted(id)} was used before, at {self._seen[id]}")
        else:
            self._seen[id] = self.where(block.line)

    def _brackets(self, rows: Sequence[Row]) -> None:
        for row in rows:
            before, self._words = self._words, self._words + (row.node is None and not row.range)
            if row.entity is None:
                continue
            try:
                marks = parse_marks(row.entity, self._schema, row.line)
            except Flaw as flaw:
                self.report(flaw)
                continue
            for mark in marks:
                self._chains.apply(mark, before, self._words, row.line)
