"""Which format a file has where its name could mean several: what its first lines look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from headscope.corpora.files import lines
from headscope.corpora.readers.bio import looks_tagged
from headscope.corpora.readers.semeval import looks_like_item
from headscope.errors import HeadscopeError

_LINES = 20  # enough to get past a heading


def sniffed(path: Path, format: str) -> str:
    """The format meant by a file whose name stands for `format`; that one if there is nothing against it, or nothing
    to be read.
    """
    rules = _RULES.get(format, {})
    if not rules:
        return format
    try:
        texts = [line.text for line in islice(lines(path, pieces=format == "text"), _LINES) if line.text.strip()]
    except HeadscopeError:  # which reading will report
        return format
    return next((other for other, looks in rules.items() if texts and looks(texts)), format)


def _parts(texts: Sequence[str]) -> bool:
    return texts[0].startswith("#begin document")


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
    found = entry.get("targets") if isinstance(entry, dict) else None
    return found if isinstance(found, list) else None


def _rated(texts: Sequence[str]) -> bool:
    return any(isinstance(target, dict) and "ratings" in target for target in _targets(texts) or [])


_RULES: dict[str, dict[str, Callable[[Sequence[str]], bool]]] = {
    "conllx": {"conll2012": _parts, "bio": _tagged},
    "jsonl": {"spr": _rated, "spans": lambda texts: _targets(texts) is not None},
    "text": {"semeval": lambda texts: looks_like_item(texts[0]), "bio": _all_tagged},
}
