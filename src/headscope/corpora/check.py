"""The validator behind `headscope corpus check`: all problems of a CoNLL-U or CoNLL-2012 file in one pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from headscope.corpora.checks import RULES, RuleViolation
from headscope.corpora.checks.graph import Enhanced, head_problems, root_problems
from headscope.corpora.checks.layout import FILE, FORMAT, PARTS, id_problems, raw_problems, readable_rows, row_problems, watched
from headscope.corpora.checks.mentions import Mentions
from headscope.corpora.checks.metadata import KeyphraseCheck, Metadata
from headscope.corpora.checks.sentence import CheckedNode, CheckedSentence, tree
from headscope.corpora.checks.syntax import shape_problems, word_problems
from headscope.corpora.checks.values import value_problems
from headscope.corpora.files import lines
from headscope.corpora.formats import guess_format
from headscope.corpora.inputs import resolve
from headscope.corpora.readers.blocks import Comment, LineBlock, blocks
from headscope.corpora.readers.conll2012 import read_conll2012
from headscope.corpora.source import Flaw, Source
from headscope.corpora.spool import spool_of
from headscope.errors import CorpusError, HeadscopeError

LEVELS = (1, 2, 3)
_PATIENCE = 100  # unreadable rows after which a file is considered to have another format


@dataclass(frozen=True)
class Finding:
    """A violated rule and its place; `line` and `sentence_id` are None if unknown."""

    path: Path
    line: int | None
    sentence_id: str | None
    rule: str
    problem: str
    remedy: str

    @property
    def level(self) -> int:
        """The level of the rule, 1 to 3."""
        return RULES[self.rule].level

    @property
    def note(self) -> bool:
        """Whether it is only a note: the file may be correct."""
        return RULES[self.rule].note

    def __str__(self) -> str:
        spool = spool_of(self.path)
        whole = str(self.path) if spool is None else spool.whole
        place = f"line {self.line} of {whole}" if self.line else whole
        name = f" ({_short(self.sentence_id)})" if self.sentence_id else ""
        return f"{place}{name}: {self.rule}{', a note' if self.note else ''}: {_short(self.problem)}. {self.remedy}"


def _short(text: str, most: int = 500) -> str:
    """The text shortened, since a quotation from a file may be as long as the file."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def check(paths: Iterable[str | Path], level: int = 3, ignore: Collection[str] = ()) -> list[Finding]:
    """The rule violations in CoNLL-U and CoNLL-2012 files up to a level, in the order of files and lines."""
    if level not in LEVELS:
        raise HeadscopeError(f"there is no level {level}", f"Use one of {', '.join(map(str, LEVELS))}")
    for name in ignore:
        if name not in RULES:
            close = " or ".join(get_close_matches(name, RULES))
            raise HeadscopeError(f"there is no rule {name!r}", f"Did you mean {close}?" if close else "docs/checking.md lists the rules")
    sentence_ids: dict[str, str] = {}
    findings: list[Finding] = []
    for path in resolve(tuple(paths), "conllu").paths:
        findings += _read_through(path) if _is_conll2012(path) else _Checker(path, level, sentence_ids).run()
    return [finding for finding in findings if finding.level <= level and finding.rule not in ignore]


def _is_conll2012(path: Path) -> bool:
    try:
        return guess_format(path) == "conll2012"
    except CorpusError:  # its name does not show a format
        return False


@dataclass
class _Collecting(Source):
    """A source that collects the flaws of its file."""

    flaws: list[Flaw] = field(default_factory=list)

    def report(self, flaw: Flaw, unit: str = "sentences") -> None:
        self.flaws.append(flaw)


def _read_through(path: Path) -> list[Finding]:
    with closing(_Collecting(path)) as source:
        try:
            for _ in read_conll2012(source):
                pass
        except CorpusError as error:
            return [_unreadable(path, error)]
    flaws = sorted(source.flaws, key=lambda flaw: flaw.line)
    return [Finding(path, flaw.line, None, PARTS.name, flaw.problem, flaw.remedy) for flaw in flaws]


def _unreadable(path: Path, error: CorpusError) -> Finding:
    return Finding(path, None, None, FILE.name, error.problem.removeprefix(f"{path}: "), error.remedy)


class _Checker:
    """The check of one file, with the state that carries over between sentences."""

    def __init__(self, path: Path, level: int, sentence_ids: dict[str, str]) -> None:
        self._path = path
        self._level = level
        self._problems: list[RuleViolation] = []
        self._starts: list[int] = []
        self._ids: list[str | None] = []
        self._readable = self._unreadable = 0
        self._comments: list[Comment] = []  # separated from their sentence by a blank line
        self._metadata = Metadata(path.name, sentence_ids)
        self._keyphrases = KeyphraseCheck()
        self._enhanced = Enhanced()
        self._mentions = Mentions()

    def run(self) -> list[Finding]:
        """The findings of the file by line."""
        try:
            self._problems += raw_problems(self._path)
            for block in blocks(watched(lines(self._path), self._problems.append)):
                self._block(block)
                if self._unreadable > _PATIENCE and not self._readable:
                    break
        except CorpusError as error:
            return [_unreadable(self._path, error)]
        if self._unreadable and not self._readable:
            return [Finding(self._path, None, None, FORMAT.name, "no row has ten columns, so this is not a CoNLL-U file", FORMAT.remedy)]
        if self._level > 1:
            for part in (self._keyphrases, self._enhanced, self._mentions):
                self._problems += part.finish()
        return [self._finding(problem) for problem in sorted(self._problems, key=lambda problem: problem.line)]

    def _finding(self, problem: RuleViolation) -> Finding:
        place = bisect_right(self._starts, problem.line) - 1
        sentence = self._ids[place] if place >= 0 else None
        return Finding(self._path, problem.line, sentence, problem.rule.name, problem.text, problem.rule.remedy)

    def _block(self, block: LineBlock) -> None:
        rows = readable_rows(block, self._problems.append)
        self._readable += len(rows)
        self._unreadable += len(block.rows) - len(rows)
        block.comments = self._comments + block.comments
        self._comments = [] if block.rows else block.comments
        if block.rows:
            self._starts.append(block.line)
            self._ids.append(block.comment("sent_id"))
            self._problems += self._sentence(CheckedSentence(block, rows, len(rows) == len(block.rows)))

    def _sentence(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        for row in sentence.rows:
            yield from row_problems(row)
        if sentence.whole:
            disorder = list(id_problems(sentence.rows))
            yield from disorder
            sentence.whole = not disorder
        if self._level > 1:
            yield from self._annotation(sentence)

    def _annotation(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        yield from self._metadata.sentence(sentence)
        yield from self._keyphrases.sentence(sentence)
        for row in sentence.rows:
            yield from value_problems(row)
        nodes: list[CheckedNode] = []
        if sentence.whole:
            faults = list(head_problems(sentence.words))
            yield from faults
            yield from root_problems(sentence.words)
            yield from self._enhanced.sentence(sentence)
            # Level 3 needs a valid tree.
            nodes = tree(sentence.words) if not faults else []
        yield from self._mentions.sentence(sentence, nodes)
        if self._level > 2:
            yield from shape_problems(nodes)
            for node in nodes:
                yield from word_problems(node, nodes)
