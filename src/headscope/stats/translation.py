"""BLEU and chrF of many systems at once, from sacrebleu's statistics of each sentence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from jaxtyping import Float64

References = Sequence[str] | Sequence[Sequence[str]]


class _Translation(Score):
    """A score that compares sentences with references. Each sentence has one reference, or a sequence of several."""

    def __init__(self, references: References) -> None:
        if not len(references):
            raise MeasureError(f"there is no reference to measure {self.name} against", "Give a reference for each sentence")
        each = [(reference,) if isinstance(reference, str) else tuple(reference) for reference in references]
        most = max(map(len, each))
        # sacrebleu expects one stream per reference, with None where a sentence has fewer references.
        self._streams = [[texts[place] if place < len(texts) else None for texts in each] for place in range(most)]
        self._known: dict[tuple[int, str], list[int]] = {}  # a cache, since most heads change few sentences

    @cached_property
    def _metric(self) -> Any:
        try:
            import sacrebleu
        except ImportError as error:
            raise MeasureError(f"{self.name} needs sacrebleu", "pip install 'headscope[translation]'") from error
        return self._make(sacrebleu)

    @abstractmethod
    def _make(self, sacrebleu: Any) -> Any: ...

    @property
    def signature(self) -> str:
        """The name and sacrebleu's signature: `BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`."""
        return f"{self._title}|{self._metric.get_signature()}"

    @property
    @abstractmethod
    def _title(self) -> str: ...

    def statistics(self, sentences: Sequence[str]) -> Float64[np.ndarray, "example k"]:
        """The statistics of one system's sentences, which are in the order of the references."""
        if len(sentences) != len(self._streams[0]):
            raise MeasureError(
                f"there are {len(sentences)} sentences and {len(self._streams[0])} references", "Give one sentence per reference"
            )
        metric, rows = self._metric, []
        for number, sentence in enumerate(sentences):
            key = number, sentence
            if key not in self._known:
                # These statistics are not public in sacrebleu; a test compares the resulting scores with its own.
                self._known[key] = metric._compute_segment_statistics(metric._preprocess_segment(sentence), metric._ref_cache[number])
            rows.append(self._known[key])
        return np.array(rows, dtype=np.float64).reshape(-1, len(self.columns))


class Bleu(_Translation):
    """BLEU of a corpus, from 0 to 100, with sacrebleu's smoothing (`exp`).

    `tokenize` is sacrebleu's: `13a` for plain text, `none` for text that is already tokenised.
    """

    name = "bleu"
    ORDER = 4

    def __init__(self, references: References, tokenize: str = "13a", lowercase: bool = False) -> None:
        super().__init__(references)
        self.tokenize, self.lowercase = tokenize, lowercase

    @property
    def _title(self) -> str:
        return "BLEU"

    def _make(self, sacrebleu: Any) -> Any:
        if self.tokenize not in sacrebleu.metrics.BLEU.TOKENIZERS:
            known = ", ".join(sacrebleu.metrics.BLEU.TOKENIZERS)
            raise MeasureError(f"sacrebleu has no tokenizer {self.tokenize!r}", f"Use one of {known}")
        return sacrebleu.metrics.BLEU(tokenize=self.tokenize, lowercase=self.lowercase, references=self._streams, force=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """Lengths of the sentence and of the nearest reference, and the numbers of matching and of
        all n-grams, by n.
        """
        return "length", "reference", *(f"{what} {n}" for what in ("matching", "all") for n in range(1, self.ORDER + 1))

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """BLEU from sums. If no n-gram of a length matches, the precision is that of 1/2 match, then of 1/4, then of
        1/8.
        """
        length, reference = sums[..., 0], sums[..., 1]
        matching, every = sums[..., 2 : 2 + self.ORDER], sums[..., 2 + self.ORDER :]
        halved = 0.5 ** np.cumsum((matching == 0) & (every > 0), -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(np.where(matching > 0, matching, halved) / every)
            brevity = np.minimum(0.0, 1 - reference / length)
            scores = 100 * np.exp(brevity + logs.mean(-1))
        some = (matching > 0).any(-1) & (every > 0).all(-1)
        return np.where(some, scores, np.where(reference > 0, 0.0, np.nan))[()]


class Chrf(_Translation):
    """chrF of a corpus, from 0 to 100; with `words=2` it is chrF++."""

    name = "chrf"
    ORDER, BETA = 6, 2

    def __init__(self, references: References, words: int = 0, lowercase: bool = False) -> None:
        super().__init__(references)
        self.words, self.lowercase = words, lowercase

    @property
    def _title(self) -> str:
        return f"chrF{self.BETA}{'+' * self.words}"

    def _make(self, sacrebleu: Any) -> Any:
        return sacrebleu.metrics.CHRF(char_order=self.ORDER, word_order=self.words, lowercase=self.lowercase, references=self._streams)

    @property
    def columns(self) -> tuple[str, ...]:
        """For each length in characters, then in words: n-grams of the sentence, of the reference, and in both."""
        orders = [*(f"c{n}" for n in range(1, self.ORDER + 1)), *(f"w{n}" for n in range(1, self.words + 1))]
        return tuple(f"{what} {order}" for order in orders for what in ("all", "reference", "matching"))

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The F-score of mean precision and mean recall, over the lengths for which both sides have n-grams."""
        hypothesis, reference, matching = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)
        both = (hypothesis > 0) & (reference > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = (np.where(both, matching / side, 0).sum(-1) / both.sum(-1) for side in (hypothesis, reference))
            scores = 100 * (1 + self.BETA**2) * precision * recall / (self.BETA**2 * precision + recall)
        some = (reference > 0).any(-1)
        return np.where(matching.any(-1), scores, np.where(some, 0.0, np.nan))[()]
