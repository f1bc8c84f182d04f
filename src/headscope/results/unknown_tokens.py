"""Texts that a model cannot read: a run warns of a share of unknown tokens, and refuses measures of words above a
larger one.

Whether a run is refused depends on the texts and their order alone: it is decided text by text as they are read,
before they are cut into shards.
"""

from __future__ import annotations

from collections.abc import Collection

from headscope.errors import RunError
from headscope.results.counts import Counts

WARN, REFUSE = 0.02, 0.30  # shares of the tokens of words
ENOUGH = 10_000  # tokens of words after which a share above REFUSE ends a run that is not finished


def warning(counts: Counts, model: str) -> list[str]:
    """A sentence about the tokens that a model does not know, if they are many."""
    if counts.unknown_share <= WARN:
        return []
    return [f"{_shares(counts, model)}. Numbers about words that it cannot read mean nothing: check the language and script of the texts."]


def require_known(counts: Counts, model: str, measures: Collection[str], ended: bool) -> None:
    """Refuse measures of words of texts that a model cannot read: when all of them are counted, or before if enough
    are.
    """
    if counts.unknown_share <= REFUSE or not (ended or counts.word_tokens >= ENOUGH) or not measures:
        return
    named = ", ".join(sorted(measures))
    raise RunError(
        f"{_shares(counts, model, '' if ended else 'first ')}: too many to measure words ({named})",
        f"Use a model that reads this language, or leave out {named}; --allow-unknown (in Python allow_unknown=True) measures all the same",
    )


def _shares(counts: Counts, model: str, which: str = "") -> str:
    share = f"{counts.unknown:,} of the {which}{counts.word_tokens:,} tokens ({counts.unknown_share:.1%})"
    return f"{share} are unknown to the tokenizer of {model}"
