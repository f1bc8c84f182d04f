"""Names as they can be written anywhere."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text without lone surrogates, which no file can hold: bytes of a file name that are no text become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
