"""The metadata of a document: what a file says of it beside its text and annotation."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from headscope.core.document import Scalar
from headscope.corpora.readers.blocks import Comment
from headscope.corpora.source import Flaw, quoted

PREFIX = "meta::"  # as GUM marks such comments
_SENTENCE = ("newpar", "newpar id", "sent_id", "text", "speaker")  # with which the comments of the first sentence begin
_ANNOTATION = ("label", "keyphrases", "annotation")  # comments of a document that are read as such


def of_comments(comments: Sequence[Comment]) -> dict[str, Scalar]:
    """The metadata of a CoNLL-U document in the comments of its first sentence: `# meta::key = value` wherever it
    stands, and `# key = value` between `# newdoc` and what belongs to the sentence.
    """
    metadata: dict[str, Scalar] = {}
    of_document = False
    for comment in comments:
        key = comment.key
        if key in ("newdoc", "newdoc id"):
            of_document = True
        elif key in _SENTENCE:
            of_document = False
        elif comment.value and key.startswith(PREFIX) and key != PREFIX:
            metadata[key.removeprefix(PREFIX)] = comment.value
        elif comment.value and of_document and key and key not in _ANNOTATION and not key.startswith("global."):
            metadata[key] = comment.value
    return metadata


def of_entry(entry: Mapping[str, object], used: Collection[str], line: int) -> dict[str, Scalar]:
    """The values of a JSON object or of a table's row that are no text, id, label or annotation. What is missing
    (null, NaN) and what is no single value (a list, an object) is skipped.
    """
    metadata: dict[str, Scalar] = {}
    for key, value in entry.items():
        if key in used or not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            continue
        try:
            f"{key}{value if isinstance(value, str) else ''}".encode()
        except UnicodeEncodeError:
            raise Flaw(line, "not Unicode", f"`{key}` has half a surrogate pair in {quoted(value)}", "Write the character itself") from None
        metadata[key] = value
    return metadata
