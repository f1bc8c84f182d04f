"""The formats by name, and guessing the format of a file from its name and, if needed, its first lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path

from headscope.core.document import Document
from headscope.core.paths import kind_of
from headscope.core.suggest import choose_from
from headscope.corpora.files import base_name, lines, require_file
from headscope.corpora.readers import arrow, jsonl, tables
from headscope.corpora.readers.arrow import read_arrow
from headscope.corpora.readers.bio import looks_tagged, read_bio
from headscope.corpora.readers.conll2012 import read_conll2012
from headscope.corpora.readers.conllu import read_conllu
from headscope.corpora.readers.folders import KEYS, folder_format, read_folder
from headscope.corpora.readers.gap import read_gap
from headscope.corpora.readers.jsonl import read_jsonl
from headscope.corpora.readers.passages import holds_passages, read_passages
from headscope.corpora.readers.semeval import looks_like_item, read_semeval
from headscope.corpora.readers.spacy_docs import read_docbin
from headscope.corpora.readers.spans import read_spans
from headscope.corpora.readers.tables import read_table
from headscope.corpora.readers.text import read_lines, read_text
from headscope.corpora.readers.winobias import read_winobias
from headscope.corpora.source import Source
from headscope.errors import CorpusError, HeadscopeError

READERS: dict[str, Callable[[Source], Iterator[Document]]] = {
    "conllu": read_conllu,
    "conllx": partial(read_conllu, universal=False),
    "conll2012": read_conll2012,
    "text": read_text,
    "lines": read_lines,
    "jsonl": read_jsonl,
    "csv": partial(read_table, separator=","),
    "tsv": partial(read_table, separator="\t"),
    "parquet": partial(read_arrow, parquet=True),
    "arrow": read_arrow,
    "docbin": read_docbin,
    "gap": read_gap,
    "winobias": read_winobias,
    "bio": read_bio,
    "semeval": read_semeval,
    "spr": partial(read_spans, task="spr"),
    "spans": read_spans,
    "passages": read_passages,
    **{format: partial(read_folder, format=format) for format in KEYS},
}
PLAIN = ("text", "lines")  # formats without any annotation
PAIRED: dict[str, Callable[[Path, Mapping[str, str]], bool]] = {  # of tables, whose columns can be named
    "jsonl": jsonl.holds_pairs,
    "csv": partial(tables.holds_pairs, separator=","),
    "tsv": partial(tables.holds_pairs, separator="\t"),
    "parquet": partial(arrow.holds_pairs, parquet=True),
    "arrow": arrow.holds_pairs,
}
_NAMES = {
    "*.conllu": "conllu",
    "*.conll": "conllx",
    "*.conllx": "conllx",
    "*_conll": "conll2012",
    "*.txt": "text",
    "*.jsonl": "jsonl",
    "*.json": "jsonl",
    "*.bio": "bio",
    "*.iob": "bio",
    "*.iob2": "bio",
    "gap*.tsv": "gap",
    "*.csv": "csv",
    "*.tsv": "tsv",
    "*.parquet": "parquet",
    "*.arrow": "arrow",
    "*.feather": "arrow",
    "*.spacy": "docbin",
}
_LINES = 20  # lines that are examined: enough to skip a heading


def by_name(path: Path) -> str | None:
    """The format that a file's name indicates."""
    name = base_name(path).lower()
    return next((format for pattern, format in _NAMES.items() if fnmatchcase(name, pattern)), None)


def guess_format(path: Path) -> str:
    """The format that a file's name indicates, unless its first lines show another; for a folder, from its files."""
    if kind_of(path) == "folder" and (folder := folder_format(path)) is not None:
        return folder
    if (format := by_name(path)) is not None:
        return sniffed(path, format)
    known = ", ".join(f"{pattern} ({format})" for pattern, format in _NAMES.items())
    remedy = f"Name one with --corpus-format: {', '.join(READERS)}"
    raise CorpusError(path, None, f"the name does not show the format; known names are {known}", remedy)


def common_format(paths: tuple[Path, ...], format: str | None) -> str:
    """The given format, or the common format of all files."""
    if format is not None:
        if format not in READERS:
            raise HeadscopeError(f"there is no format {format!r}", choose_from(format, READERS, "Use one of"))
        for path in paths if format not in KEYS else ():
            require_file(path)
        return format
    guesses = {guess_format(path): path for path in reversed(paths)}
    if len(guesses) > 1:
        listed = ", ".join(f"{path.name} is {format}" for format, path in guesses.items())
        raise HeadscopeError(
            f"the files are of different formats: {listed}", "Read them one at a time, or name one format with --corpus-format"
        )
    return next(iter(guesses))


def sniffed(path: Path, format: str) -> str:
    """The format of a file whose name indicates `format`: that one, unless its first lines contradict it."""
    rules = _RULES.get(format, {})
    if not rules:
        return format
    try:
        texts = [line.text for line in islice(lines(path, pieces=format == "text"), _LINES) if line.text.strip()]
    except HeadscopeError:  # reading the file will report the error
        return format
    return next((other for other, looks in rules.items() if texts and looks(texts)), format)


def _tagged(texts: Sequence[str]) -> bool:
    rows = [text for text in texts if not text.startswith(("# ", "-DOCSTART-"))]
    return bool(rows) and len(rows[0].split()) < 10 and looks_tagged(rows[0])


def _all_tagged(texts: Sequence[str]) -> bool:
    """CoNLL-2003 is often called train.txt; one line of plain text may well end in O."""
    rows = [text for text in texts if not text.startswith("# ")]
    return texts[0].startswith("-DOCSTART-") or (len(rows) > 2 and all(map(looks_tagged, rows)))


def _targets(texts: Sequence[str]) -> list[object] | None:
    try:
        entry = json.loads(texts[0])
    except (ValueError, RecursionError):
        return None
    targets = entry.get("targets") if isinstance(entry, dict) else None
    return targets if isinstance(targets, list) else None


def _rated(texts: Sequence[str]) -> bool:
    return any(isinstance(target, dict) and "ratings" in target for target in _targets(texts) or [])


_RULES: dict[str, dict[str, Callable[[Sequence[str]], bool]]] = {
    "conllx": {"conll2012": lambda texts: texts[0].startswith("#begin document"), "bio": _tagged},
    "jsonl": {"spr": _rated, "spans": lambda texts: _targets(texts) is not None, "passages": holds_passages},
    "text": {"semeval": lambda texts: looks_like_item(texts[0]), "bio": _all_tagged},
}
