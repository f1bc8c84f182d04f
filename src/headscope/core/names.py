"""Names as they can be written anywhere."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text without lone surrogates, which no file can hold: bytes of a file name that are no text become question
    marks.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


_NO_NAMES = ("model", "checkpoint", "final")  # of folders


def title(path: str) -> str:
    """What a file, a folder or a model is called: the end of its path, and where that is no name, what comes before
    it as well.
    """
    parts = [part for part in printable(path).split("/") if part not in ("", ".")]
    return "/".join(parts[-2 if parts[-1:] and parts[-1] in _NO_NAMES else -1 :])
