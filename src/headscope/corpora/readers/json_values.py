"""Lines of JSON and their values; invalid ones are Flaws."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from itertools import accumulate

from headscope.core.document import Sentence, Word
from headscope.corpora.files import Line
from headscope.corpora.source import Flaw, quoted, sound


def parsed(line: Line, layout: str) -> dict[str, object]:
    """The object on a line; `layout` describes the expected contents, for the remedy."""
    try:
        entry = json.loads(sound(line))
    except (ValueError, RecursionError) as error:
        problem = f"this is not JSON ({error}): {quoted(line.text)}"
        raise Flaw(line.number, "not JSON", problem, "Write one JSON object on each line") from None
    if not isinstance(entry, dict):
        raise Flaw(line.number, "not a JSON object", f"{type(entry).__name__} {quoted(entry)} where an object is needed", layout)
    return entry


def whole(value: object) -> str | None:
    """The value if it is a whole number, else None."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def string(value: object, key: str, line: int) -> str:
    """A non-empty string that can be written as UTF-8 (JSON's escapes can encode half a character)."""
    if value is None:
        raise Flaw(line, "missing value", f"`{key}` is missing (null)", "Fill it in")
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


def plain(value: object) -> object:
    """A value in the types of JSON: dates as text, numpy numbers as Python numbers; None for values that JSON does not
    have.
    """
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool | int):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return plain(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    of_numpy = getattr(value, "tolist", None)
    return plain(of_numpy()) if callable(of_numpy) and type(value).__module__.startswith("numpy") else None


def token_sentences(tokens: object, key: str, text: str | None, line: int) -> tuple[Sentence, ...]:
    """The sentences of the words under `key`, a list or a list of lists; `text` shows where spaces are."""
    parts: list[object] = tokens if isinstance(tokens, list) and all(isinstance(part, list) for part in tokens) else [tokens]
    filled = [part for part in parts if isinstance(part, list) and part]
    if not parts or len(filled) < len(parts):
        raise wrong(key, tokens, "a list of words, or of lists of words", line)
    forms = [[string(form, key, line) for form in part] for part in filled]
    spaces = iter(_spaces([form for part in forms for form in part], text))
    return tuple(Sentence(tuple(Word(form, space_after=next(spaces)) for form in part)) for part in forms)


def _spaces(forms: list[str], text: str | None) -> list[bool]:
    """Whether a space follows each word, as in the text, if the text consists of exactly these words."""
    if text is None or "".join("".join(forms).split()) != "".join(text.split()):
        return [True] * len(forms)
    passed, parted = 0, set()  # the number of characters before each space
    for sign in text:
        if sign.isspace():
            parted.add(passed)
        passed += not sign.isspace()
    ends = list(accumulate(len("".join(form.split())) for form in forms))
    return [end in parted for end in ends[:-1]] + [True]
