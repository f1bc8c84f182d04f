"""Stand-off annotation as brat writes it: `T1 <tab> Process 5 14 <tab> oxidation`, numbers counting characters of a text beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headscope.corpora.files import opened
from headscope.corpora.source import Flaw, Source, quoted, sound

_SPANS = re.compile(r"\S+ ([0-9]{1,9} [0-9]{1,9}(?:;[0-9]{1,9} [0-9]{1,9})*)")
_LAYOUT = "Write T1, a tab, the type and where the phrase starts and ends (Process 5 14), a tab, and the phrase"


def brat_phrases(source: Source, text: Path) -> Iterator[str]:
    """The phrases that lines with T mark; relations, notes and other lines say nothing of phrases. Each must stand in the text."""
    with opened(text) as stream:
        written = stream.read().decode("utf-8", "replace")
    spaced = _spaced(written.removeprefix("\ufeff")).casefold()
    for line in source.lines(empty=True):
        try:
            if not sound(line).startswith("T"):
                continue
            phrase, spans = _marked(line.text, line.number)
            there = any(_spaced(" ".join(one[start:end] for start, end in spans)) == phrase for one in _counted(written))
            if phrase.casefold() not in spaced and not (there and len(spans) > 1):
                problem = f"the text {text.name} does not hold {quoted(phrase)}"
                raise Flaw(line.number, "not in the text", problem, "Write the phrase as it stands there")
        except Flaw as flaw:
            source.report(flaw, "phrases")
            continue
        if phrase.casefold() not in spaced:
            source.note("phrases with other words in between passed over", line.number)
            continue
        if not there:
            source.note("phrases that stand elsewhere than their numbers say (read all the same)", line.number, read=True)
        yield phrase


def _marked(text: str, line: int) -> tuple[str, list[tuple[int, int]]]:
    """The phrase of a line, and its places: several where it is interrupted."""
    fields = text.split("\t")
    places = _SPANS.fullmatch(fields[1]) if len(fields) > 2 else None
    if places is None or not fields[2].strip():
        raise Flaw(line, "no phrase", f"{quoted(text)} marks no phrase", _LAYOUT)
    spans = [(int(start), int(end)) for start, end in (part.split() for part in places.group(1).split(";"))]
    if bad := [span for span in spans if span[0] >= span[1]]:
        raise Flaw(line, "no phrase", f"a phrase from {bad[0][0]} to {bad[0][1]}: {quoted(text)}", "Let it end after it starts")
    return _spaced(fields[2]), spans


def _counted(text: str) -> tuple[str, ...]:
    """The text with characters counted as programs differ: with or without a mark at its beginning, the end of a line as two or as one."""
    bare = text.removeprefix("\ufeff")
    return text, bare, text.replace("\r\n", "\n"), bare.replace("\r\n", "\n")


def _spaced(text: str) -> str:
    return " ".join(text.split())
