"""What went through a run, and what did not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import CUT, CUT_MENTIONS, TRUNCATED, Encoded, Encoder


class Sizes(NamedTuple):
    """What is counted about one input. `word_tokens` and `unknown` count what the encoder and, if there is one, the
    decoder reads.
    """

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
        return cls(
            len(text),
            len(text.words),
            sum(number > 1 for word, number in pieces.items() if word >= 0),
            len(text.annotation.mentions),
            sum(word >= 0 for side in sides for word in side.word_of),
            sum(side.unknown for side in sides),
        )


@dataclass
class Counts:
    """Numbers of documents and texts and what is in them, and a tally of what was left out."""

    documents: int = 0
    texts: int = 0
    tokens: int = 0
    words: int = 0
    split_words: int = 0
    mentions: int = 0
    word_tokens: int = 0
    unknown: int = 0
    dropped: Tally = field(default_factory=Tally)
    _last: str | None = None

    def add(self, text: Encoded) -> None:
        """Count one input. The texts of a document come one after the other."""
        self.count(text.document, Sizes.of(text))

    def count(self, document: str, sizes: Sizes) -> None:
        """Count one input by its sizes."""
        self.documents += document != self._last
        self._last = document
        self.texts += 1
        for name, size in zip(sizes._fields, sizes, strict=True):
            setattr(self, name, getattr(self, name) + size)

    def numbers(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in ("documents", "texts", "tokens", "words", "split_words")}

    def described(self) -> dict[str, Any]:
        """All that a manifest says of one reading of a corpus."""
        more: dict[str, Any] = {"mentions": self.mentions} if self.mentions else {}
        return {**self.numbers(), **more, "unknown_tokens": self.unknown_tokens(), **({"cut": cut} if (cut := self.cut()) else {})}

    @property
    def unknown_share(self) -> float:
        """The share of the words' tokens that stand for text that the tokenizer does not know."""
        return self.unknown / max(1, self.word_tokens)

    def unknown_tokens(self) -> dict[str, float]:
        """Unknown tokens as a manifest has them: how many, of how many tokens of words, and their share."""
        return {"n": self.unknown, "of": self.word_tokens, "share": round(self.unknown_share, 6)}

    def cut(self) -> dict[str, int]:
        """What truncation lost, as a manifest has it: texts that were cut, and words and mentions that were lost;
        empty if none were.
        """
        reasons = {"texts": TRUNCATED, "words": CUT, "mentions": CUT_MENTIONS}
        found = {name: self.dropped.counts.get(reason, 0) for name, reason in reasons.items()}
        return found if found["texts"] else {}


def count(corpus: Corpus, encoder: Encoder) -> Counts:
    """What a run over a corpus would read and leave out, without running a model."""
    counts = Counts()
    for text in encoder.texts(corpus, counts.dropped):
        counts.add(text)
    counts.dropped.update(corpus.skipped)
    return counts
