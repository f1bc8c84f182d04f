"""Folders of texts with a file of keyphrases for each: `.key`, `.uncontr` or `.contr` (KPCrowd, Inspec), or brat's
`.ann` (SemEval-2017).

Texts and keys are matched by their names. They are in the same folder, or in the folders `docsutf8` and `keys`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from headscope.core.document import Document
from headscope.core.paths import kind_of, printable
from headscope.corpora.files import base_name, content_hash, opened
from headscope.corpora.readers.text import read_text
from headscope.corpora.source import Flaw, Source, quoted, sound
from headscope.errors import CorpusError

TEXTS = (".txt", ".abstr")
KEYS = {"keyphrases": (".key", ".uncontr", ".contr"), "brat": (".ann",)}  # by format; if a text has several, the first is read
_WHERE = {"texts": (".", "docsutf8"), "keys": (".", "keys")}
_UNIT = "lines"


@dataclass(frozen=True)
class Listing:
    """The files of a folder by their common names: texts, and the existing files of each kind of keys."""

    texts: dict[str, Path]
    keys: dict[str, dict[str, Path]]

    @property
    def files(self) -> list[Path]:
        """All files, in the order of their names."""
        return [*self.texts.values(), *(path for kind in self.keys.values() for path in kind.values())]


def listing(folder: Path, format: str) -> Listing:
    """The files of a folder that belong to a format."""
    try:
        texts = {stem: path for suffix in reversed(TEXTS) for stem, path in _files(folder, "texts", suffix).items()}
        keys = {suffix: _files(folder, "keys", suffix) for suffix in KEYS[format]}
    except OSError as error:
        raise CorpusError(folder, None, f"the folder cannot be read ({error.strerror or error})", "Check its permissions") from None
    return Listing(dict(sorted(texts.items())), keys)


def folder_format(folder: Path) -> str | None:
    """The format of a folder, from its files; None unless it has both texts and keys."""
    for format in KEYS:
        found = listing(folder, format)
        if found.texts and any(found.keys.values()):
            return format
    return None


def folder_hash(folder: Path, format: str) -> str:
    """SHA-256 of the names and contents of all files that belong to a folder, compressed or not."""
    digest = hashlib.sha256()
    for path in listing(folder, format).files:
        digest.update(f"{base_name(path)}\0{content_hash([path])}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def stems(folder: Path, format: str) -> dict[str, list[Path]]:
    """The files of a folder, by the ids of their documents."""
    found = listing(folder, format)
    by_id: dict[str, list[Path]] = {}
    for kind in (found.texts, *found.keys.values()):
        for stem, path in kind.items():
            by_id.setdefault(printable(stem), []).append(path)
    return by_id


def read_folder(source: Source, format: str) -> Iterator[Document]:
    """A document for each text, named after its file, in the order of names."""
    if kind_of(source.path) != "folder":
        raise CorpusError(
            source.path, None, "this is a file where a folder is needed", "Name the folder that holds the texts and their keys"
        )
    found = listing(source.path, format)
    if not found.texts:
        remedy = f"Put texts ({' or '.join(TEXTS)}) beside their keys ({', '.join(KEYS[format])})"
        raise CorpusError(source.path, None, "there is no text in the folder", remedy)
    for path in sorted({path for kind in found.keys.values() for stem, path in kind.items() if stem not in found.texts}):
        source.tally.add("files of keys without a text skipped", printable(path.name))
    for stem, path in found.texts.items():
        try:
            documents = list(read_text(replace(source, path=path), longest=math.inf))  # the keys are those of the whole text
        except CorpusError:
            if not source.skip:
                raise
            source.tally.add("texts skipped: empty, or they cannot be read", printable(path.name))
            continue
        phrases = _phrases(source, found, stem, path)
        for document in documents:
            yield replace(document, id=printable(stem), keyphrases=phrases)


def _files(folder: Path, what: str, suffix: str) -> dict[str, Path]:
    """The files with this ending, compressed or not, by their names without the ending."""
    places = [folder / where for where in _WHERE[what] if kind_of(folder / where) == "folder"]
    files = sorted((path for place in places for path in place.iterdir() if kind_of(path) == "file"), reverse=True)
    named = ((base_name(path), path) for path in files)
    found = {name[: -len(suffix)]: path for name, path in named if name.lower().endswith(suffix) and len(name) > len(suffix)}
    return dict(sorted(found.items()))


def _phrases(source: Source, found: Listing, stem: str, text: Path) -> tuple[str, ...]:
    """The keyphrases of a text, each once; missing or empty files are counted."""
    there = [(suffix, kind[stem]) for suffix, kind in found.keys.items() if stem in kind]
    if not there:
        source.tally.add("texts without a file of keys (read without keyphrases)", printable(text.name), read=True)
        return ()
    for suffix, path in there[1:]:
        source.tally.add(f"second files of keys of a text skipped ({suffix})", printable(path.name))
    suffix, path = there[0]
    own = replace(source, path=path)
    phrases = list(dict.fromkeys(brat_phrases(own, text) if suffix == ".ann" else _keys(own, suffix)))
    if not phrases:
        source.tally.add("texts whose file of keys is empty (read without keyphrases)", printable(path.name), read=True)
    return tuple(phrases)


def _keys(source: Source, suffix: str) -> Iterable[str]:
    """The phrases of a file: one per line or, in Inspec's format, separated by semicolons, in which case phrases can
    span lines.
    """
    texts = []
    for line in source.lines(empty=True):
        try:
            texts.append(sound(line))
        except Flaw as flaw:
            source.report(flaw, _UNIT)
    parts = texts if suffix == ".key" else "\n".join(texts).split(";")
    return [phrase for part in parts if (phrase := " ".join(part.split()))]


_SPANS = re.compile(r"\S+ ([0-9]{1,9} [0-9]{1,9}(?:;[0-9]{1,9} [0-9]{1,9})*)")
_LAYOUT = "Write T1, a tab, the type and where the phrase starts and ends (Process 5 14), a tab, and the phrase"


def brat_phrases(source: Source, text: Path) -> Iterator[str]:
    """The phrases that T lines mark; relations, notes and other lines are ignored. Each phrase must occur in the
    text.
    """
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
                problem = f"the text {text.name} does not contain {quoted(phrase)}"
                raise Flaw(line.number, "not in the text", problem, "Write the phrase as in the text")
        except Flaw as flaw:
            source.report(flaw, "phrases")
            continue
        if phrase.casefold() not in spaced:
            source.note("phrases with other words in between skipped", line.number)
            continue
        if not there:
            source.note("phrases at another place than their numbers give (read nevertheless)", line.number, read=True)
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
    """The text as different programs count its characters: with or without a byte order mark, and with a line end as
    two characters or one.
    """
    bare = text.removeprefix("\ufeff")
    return text, bare, text.replace("\r\n", "\n"), bare.replace("\r\n", "\n")


def _spaced(text: str) -> str:
    return " ".join(text.split())
