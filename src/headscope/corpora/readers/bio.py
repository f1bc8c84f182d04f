"""Named entities as tags: a word in the first column of each line, its tag in the last, a blank line between sentences.

This is the format of WNUT-17, CoNLL-2003 and many others. With three or more columns, those between are read as in
CoNLL-2003.
"""

from __future__ import annotations

from collections.abc import Iterator

from headscope.core.document import Document, Edge, Sentence, Word
from headscope.corpora.files import Line
from headscope.corpora.readers.brackets import Schema
from headscope.corpora.readers.chunks import is_tag, tagged_chunks
from headscope.corpora.readers.draft import Draft
from headscope.corpora.source import Flaw, Source, quoted, sound

_START = "-DOCSTART-"
_BETWEEN = {1: ("xpos",), 2: ("xpos", "chunk"), 3: ("lemma", "xpos", "chunk")}  # by the number of columns between word and tag
_NONE = Schema()  # of coreference brackets, which these files do not have


def read_bio(source: Source) -> Iterator[Document]:
    """The documents between -DOCSTART- lines; without such lines, each sentence is a document."""
    draft: Draft | None = None
    declared = False
    count = 0
    for lines in _sentences(source):
        begins = _columns(lines[0].text)[0] == _START
        if begins or not declared:
            if draft and draft.started and (document := draft.finish()):
                yield document
            count += 1
            draft = Draft(source, f"{source.name}#{count}")
            declared = declared or begins
        if not begins:
            assert draft is not None
            if not declared:
                source.note(f"sentences read as separate documents: the file has no {_START} lines", lines[0].number, read=True)
            _add(source, draft, lines)
    if draft and draft.started and (document := draft.finish()):
        yield document


def looks_tagged(line: str) -> bool:
    """Whether a line holds a word and its tag."""
    columns = _columns(line)
    return len(columns) > 1 and is_tag(columns[-1])


def _sentences(source: Source) -> Iterator[list[Line]]:
    """The lines between blank ones; -DOCSTART- is a separate block. A line that begins with `# ` and does not end in a
    tag is a comment.
    """
    found: list[Line] = []
    for line in source.lines():
        blank = not line.text.strip()
        start = not blank and _columns(line.text)[0] == _START
        if (blank or start) and found:
            yield found
            found = []
        if start:
            yield [line]
        elif not blank and (looks_tagged(line.text) or not line.text.startswith("# ")):
            found.append(line)
    if found:
        yield found


def _add(source: Source, draft: Draft, lines: list[Line]) -> None:
    try:
        rows = [_row(line) for line in lines]
    except Flaw as flaw:
        source.report(flaw)
        draft.lose((), _NONE)
        return
    names = _BETWEEN.get(len(rows[0]) - 2, ()) if len({len(row) for row in rows}) == 1 else ()
    words = []
    for row in rows:
        given = {name: value for name, value in zip(names, row[1:-1], strict=False) if value not in ("-", "_", "-X-", "")}
        words.append(Word(row[0], lemma=given.get("lemma"), xpos=given.get("xpos")))
    edges = [Edge("entities", (label,), (start, end)) for label, start, end in tagged_chunks([row[-1] for row in rows])]
    if "chunk" in names and all(is_tag(row[-2]) for row in rows):
        edges += (Edge("chunks", (label,), (start, end)) for label, start, end in tagged_chunks([row[-2] for row in rows]))
    draft.add(Sentence(tuple(words)), (), _NONE, edges)


def _row(line: Line) -> list[str]:
    columns = _columns(sound(line))
    if len(columns) < 2:
        problem = f"one column where a word and its tag are needed in {quoted(line.text)}"
        raise Flaw(line.number, "no tag", problem, "Put a tab between the word and its tag, O if it is outside of all entities")
    if not is_tag(columns[-1]):
        problem = f"tag {quoted(columns[-1])} in the last column of {quoted(line.text)}"
        raise Flaw(line.number, "no such tag", problem, "Write O, B-person, I-person and the like, or name another --corpus-format")
    if not columns[0].strip():
        raise Flaw(line.number, "empty form", f"the word is empty in {quoted(line.text)}", "Write the word into the first column")
    return columns


def _columns(text: str) -> list[str]:
    # Not str.split() for either: words can hold a no-break space.
    return text.rstrip().split("\t") if "\t" in text.strip() else [column for column in text.strip().split(" ") if column]
