"""Counts of what a run read and skipped, and of tokens that the model does not know.

Above one share of unknown tokens a run warns; above a larger share it refuses measures of words. This depends only on
the texts and their order: it is decided text by text while they are read, before they are cut into shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headscope.core.slices import NO_VALUE
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import CUT, CUT_MENTIONS, TRUNCATED, Encoded, Encoder
from headscope.errors import RunError

WARN, REFUSE = 0.02, 0.30  # shares of the tokens of words
ENOUGH = 10_000  # tokens of words after which a share above REFUSE ends a run that is not finished


class Sizes(NamedTuple):
    """What is counted about one input. `word_tokens` and `unknown` include what a decoder reads."""

    tokens: int
    words: int
    split_words: int
    mentions: int
    word_tokens: int
    unknown: int

    @classmethod
    def of(cls, text: Encoded) -> Sizes:
        """The sizes of a text; words are split if they have several tokens."""
        sides = [side for side in (text, text.target) if side is not None]
        pieces = Counter(text.word_of)
        del pieces[-1]
        return cls(
            len(text),
            len(text.words),
            len(pieces) - list(pieces.values()).count(1),
            len(text.annotation.mentions),
            sum(len(side) - side.word_of.count(-1) for side in sides),
            sum(side.unknown for side in sides),
        )


@dataclass
class SliceCounts:
    """Numbers of documents, texts and tokens of one slice."""

    documents: int = 0
    texts: int = 0
    tokens: int = 0


@dataclass
class Counts:
    """Numbers of documents and texts and of what they contain, and a tally of what was omitted."""

    documents: int = 0
    texts: int = 0
    tokens: int = 0
    words: int = 0
    split_words: int = 0
    mentions: int = 0
    word_tokens: int = 0
    unknown: int = 0
    dropped: Tally = field(default_factory=Tally)
    slices: dict[str, SliceCounts] = field(default_factory=dict)
    _last: str | None = None

    def add(self, text: Encoded) -> None:
        """Count one input. The texts of a document come one after the other."""
        self.count(text.document, Sizes.of(text), text.slice)

    def count(self, document: str, sizes: Sizes, slice: str = NO_VALUE, texts: int = 1) -> None:
        """Count one input by its sizes, also for its slice; or several of one document by their summed sizes."""
        new = document != self._last
        self.documents += new
        self._last = document
        self.texts += texts
        if (of_slice := self.slices.get(slice)) is None:
            of_slice = self.slices[slice] = SliceCounts()
        of_slice.documents += new
        of_slice.texts += texts
        of_slice.tokens += sizes.tokens
        self.tokens += sizes.tokens
        self.words += sizes.words
        self.split_words += sizes.split_words
        self.mentions += sizes.mentions
        self.word_tokens += sizes.word_tokens
        self.unknown += sizes.unknown

    def may_exceed(self, sizes: Sizes) -> bool:
        """Whether the share of unknown tokens may exceed REFUSE after some of the texts with these summed sizes."""
        return self.unknown + sizes.unknown > REFUSE * self.word_tokens

    def numbers(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in ("documents", "texts", "tokens", "words", "split_words")}

    def described(self) -> dict[str, Any]:
        """The counts of one reading of a corpus for a manifest."""
        more: dict[str, Any] = {"mentions": self.mentions} if self.mentions else {}
        return {**self.numbers(), **more, "unknown_tokens": self.unknown_tokens(), **({"cut": cut} if (cut := self.cut()) else {})}

    @property
    def unknown_share(self) -> float:
        """The share of the words' tokens that stand for text that the tokenizer does not know."""
        return self.unknown / max(1, self.word_tokens)

    def unknown_tokens(self) -> dict[str, float]:
        """Unknown tokens for a manifest: their number, the number of all tokens of words, and the share."""
        return {"n": self.unknown, "of": self.word_tokens, "share": round(self.unknown_share, 6)}

    def cut(self) -> dict[str, int]:
        """What truncation removed, for a manifest: numbers of cut texts, lost words and mentions; empty if none."""
        reasons = {"texts": TRUNCATED, "words": CUT, "mentions": CUT_MENTIONS}
        lost = {name: self.dropped.counts.get(reason, 0) for name, reason in reasons.items()}
        return lost if lost["texts"] else {}


def count(corpus: Corpus, encoder: Encoder) -> Counts:
    """The counts of what a run over a corpus would read and skip, without running a model."""
    counts = Counts()
    for text in encoder.texts(corpus, counts.dropped):
        counts.add(text)
    counts.dropped.update(corpus.skipped)
    return counts


def warning(counts: Counts, model: str) -> list[str]:
    """A warning about tokens that a model does not know, if they are many; else an empty list."""
    if counts.unknown_share <= WARN:
        return []
    return [
        f"{_shares(counts, model)}. Numbers about words that it cannot read are meaningless: check the language and script of the texts."
    ]


def require_known(counts: Counts, model: str, measures: Collection[str], ended: bool) -> None:
    """Refuse measures of words if the model cannot read the texts, as soon as enough tokens are counted."""
    if counts.unknown_share <= REFUSE or not (ended or counts.word_tokens >= ENOUGH) or not measures:
        return
    named = ", ".join(sorted(measures))
    raise RunError(
        f"{_shares(counts, model, '' if ended else 'first ')}: too many to measure words ({named})",
        f"Use a model that reads this language, or omit {named}; --allow-unknown (in Python allow_unknown=True) measures anyway",
    )


def _shares(counts: Counts, model: str, which: str = "") -> str:
    share = f"{counts.unknown:,} of the {which}{counts.word_tokens:,} tokens ({counts.unknown_share:.1%})"
    return f"{share} are unknown to the tokenizer of {model}"
