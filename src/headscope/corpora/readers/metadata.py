"""The metadata of a document: values in a file other than its text and annotation."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from headscope.core.document import Scalar
from headscope.corpora.readers.blocks import Comment
from headscope.corpora.source import Flaw, quoted

PREFIX = "meta::"  # the prefix of such comments in GUM
_SENTENCE = ("newpar", "newpar id", "sent_id", "text", "speaker")  # comments with which a sentence begins
_ANNOTATION = ("label", "keyphrases", "annotation")  # comments of a document that are read as annotation


def of_comments(comments: Sequence[Comment]) -> dict[str, Scalar]:
    """The metadata of a CoNLL-U document in the comments of its first sentence: `# meta::key = value` at any place, and
    `# key = value` between `# newdoc` and the comments of the sentence.
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
    """The values of a JSON object or of a table's row other than text, id, label and annotation. Missing values (null,
    NaN), lists and objects are skipped.
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
