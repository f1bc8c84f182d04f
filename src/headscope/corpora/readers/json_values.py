"""Lines of JSON and the values in them, with a Flaw for whatever is not as it should be."""

from __future__ import annotations

import json

from headscope.corpora.files import Line
from headscope.corpora.source import Flaw, quoted, sound


def parsed(line: Line, layout: str) -> dict[str, object]:
    """The object on a line; `layout` says what should be in it."""
    try:
        entry = json.loads(sound(line))
    except (ValueError, RecursionError) as error:
        problem = f"this is not JSON ({error}): {quoted(line.text)}"
        raise Flaw(line.number, "not JSON", problem, "Write one JSON object on each line") from None
    if not isinstance(entry, dict):
        raise Flaw(line.number, "not a JSON object", f"{type(entry).__name__} {quoted(entry)} where an object is needed", layout)
    return entry


def whole(value: object) -> str | None:
    """A whole number as it is written; None if the value is anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def string(value: object, key: str, line: int) -> str:
    """A string with something in it that can be written as UTF-8 (JSON's escapes can spell half a character)."""
    if not isinstance(value, str):
        raise wrong(key, value, "a string", line)
    if not value.strip():
        raise Flaw(line, "empty string", f"`{key}` is empty: {quoted(value)}", "Fill it in")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Flaw(line, "not Unicode", f"`{key}` has half a surrogate pair in {quoted(value)}", "Write the character itself") from None
    return value


def wrong(key: str, value: object, needed: str, line: int) -> Flaw:
    """The flaw that `key` has a value of another kind than needed."""
    return Flaw(line, "wrong type", f"`{key}` is {type(value).__name__} {quoted(value)} where {needed} is needed", f"Make `{key}` {needed}")
