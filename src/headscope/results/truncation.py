"""What a measure did not see because texts were longer than the model reads."""

from __future__ import annotations

from typing import Any

from headscope.results.results import Results


def cut_sentence(results: Results, measure: str) -> str | None:
    """How many of the texts of a measure were cut, and how many words and mentions were read of how many; None if
    none was cut.
    """
    way: dict[str, Any] = next((way for way in results.manifest.get("readings", ()) if measure in way["measures"]), {})
    if not (cut := way.get("cut")):
        return None
    texts = f"All {way['texts']:,}" if cut["texts"] == way["texts"] else f"{cut['texts']:,} of {way['texts']:,}"
    read = [_of(way["words"], cut["words"], "words")]
    if mentions := way.get("mentions", 0) + cut["mentions"]:
        read.append(_of(way.get("mentions", 0), mentions - way.get("mentions", 0), "mentions"))
    length = results.manifest["settings"]["max_length"]
    return f"{texts} {way['unit']}s were cut at {length:,} tokens: only {' and '.join(read)} were read."


def _of(read: int, lost: int, what: str) -> str:
    return f"{read:,} of {read + lost:,} {what}"
