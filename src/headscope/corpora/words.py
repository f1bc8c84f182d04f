"""The places of words in plain text, in any script: letters and digits form words, all other characters stand alone."""

from __future__ import annotations

import unicodedata

_INSIDE = frozenset("'’.-")  # joins letters on both sides: don't, A.B, so-called
_JOINER = "\u200d"  # joins two characters into one, as in emoji of families

_UNSPACED = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))  # kana, Chinese


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every word. Kana and Chinese characters, which are written without spaces, are a word each."""
    spans: list[tuple[int, int]] = []
    open_word = False  # whether the last span is a word that more letters can continue
    for at, sign in enumerate(text):
        if sign.isspace():
            open_word = False
        elif spans and spans[-1][1] == at and (_continues(sign) or text[at - 1] == _JOINER or (open_word and _belongs(text, at))):
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
            open_word = _letter(sign) and not _unspaced(sign)
    return spans


def _belongs(text: str, at: int) -> bool:
    sign = text[at]
    if _letter(sign):
        return not _unspaced(sign)
    before, after = text[at - 1], text[at + 1 : at + 2]
    joins = sign in _INSIDE or (sign == "," and before.isdecimal() and after.isdecimal())
    return joins and _letter(before) and bool(after) and _letter(after) and not _unspaced(after)


def _letter(sign: str) -> bool:
    return sign.isalnum() or sign == "_" or unicodedata.category(sign).startswith("M")


def _continues(sign: str) -> bool:
    """Whether a character belongs to the one before it: accents, vowel signs, joiners and skin tones."""
    return sign == _JOINER or unicodedata.category(sign) in ("Mn", "Mc", "Me") or "\U0001f3fb" <= sign <= "\U0001f3ff"


def _unspaced(sign: str) -> bool:
    return any(first <= sign <= last for first, last in _UNSPACED)
