"""Keywords of any text: words are weighted by all heads together, with weights that a study has learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import SAMPLER, Corpus, read
from headscope.corpora.readers.text import text_paragraphs
from headscope.corpora.readers.tokenise import sentence, word_spans
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.results.columns import StateColumns
from headscope.results.counts import Counts
from headscope.results.results import Results
from headscope.results.specification import validated
from headscope.stats.classification import KeyphraseF1
from headscope.stats.logistic import LogisticFit
from headscope.studies.keywords.features import Words, read_words, texts_with_keyphrases
from headscope.studies.keywords.learning import SYSTEMS, TOGETHER, Standard, counts, folds_of, tuned, tuning
from headscope.studies.keywords.phrases import Phrase, phrases
from headscope.studies.keywords.spec import KeywordSpec, Source

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64


@dataclass(frozen=True)
class TrainedFinder:
    """What a finder learnt from, and its F1 of words on documents that it had not seen."""

    model: str
    fingerprint: str
    corpus: str
    texts: int
    f1: float
    tried: str
    low: float = float("nan")
    high: float = float("nan")

    @property
    def sentence(self) -> str:
        """A sentence with all of this."""
        interval = f" [{self.low:.2f}, {self.high:.2f}]" if np.isfinite(self.low) else ""
        return (
            f"Words are weighted by all heads of {self.model}, with weights learnt from the keyphrases of {self.texts:,} documents "
            f"({self.corpus}); F1 of words of keyphrases is {self.f1:.2f}{interval} on held-out documents ({self.tried})"
        )


@dataclass(frozen=True)
class KeywordResult:
    """A text with the probability of each word to be part of a keyphrase, and its phrases, the best first."""

    document: Document
    weights: Float64[np.ndarray, "word"]
    phrases: tuple[Phrase, ...]
    cut: float
    trained: TrainedFinder
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finder:
    """A model and a regression on its heads that finds keywords. `length` is how many tokens it reads at a time."""

    model: Model
    scale: Standard
    fit: LogisticFit
    cut: float  # least log odds of a word that is marked
    length: int
    source: Source
    trained: TrainedFinder

    @classmethod
    def open(cls, folder: str | Path, model: Model | None = None, device: str | None = None) -> Finder:
        """The finder that a finished study of keywords learnt from all its documents; the model must be the same."""
        return cls.of(Results.open(Path(folder)), model, device)

    @classmethod
    def of(cls, results: Results, model: Model | None = None, device: str | None = None) -> Finder:
        """The finder that loaded results of a study contain."""
        folder = results.path or "this"
        if results.study != "keywords":
            raise RunError(f"{folder} is not a study of keywords", "Make one with headscope probe keywords --out FOLDER")
        settings, identity = results.manifest["settings"], results.manifest["identity"]
        model = model or load(settings["model"], device, settings["dtype"])
        if model.fingerprint != identity["model"]:
            raise RunError(
                f"{folder} was learnt from the heads of {settings['model']} ({identity['model']}), not {model.name} ({model.fingerprint})",
                f"Use --model {settings['model']}, or learn from this model with headscope probe keywords",
            )
        row = next(iter(results["keywords_scores"].where(system=TOGETHER, level="words")))
        kept = StateColumns(results.state("whole"))
        lengths = kept.numbers("lengths")
        if not len(lengths):
            raise RunError(
                f"{folder} was written by an older version and does not record how long its texts were", "Run it again with --overwrite"
            )
        corpus = ", ".join(Path(name).name for name in settings["corpus"])
        held = ", ".join(Path(name).name for name in settings["dev"] or ())
        tried = f"{row['documents']:,} of {held}" if held else f"each in turn, in {settings['folds']} folds"
        trained = TrainedFinder(
            Path(settings["model"]).name, model.fingerprint, corpus, len(lengths), row["f1"], tried, row["low"], row["high"]
        )
        return cls._of(model, kept, settings["max_length"], settings["source"], trained)

    @classmethod
    def _of(cls, model: Model, kept: StateColumns, longest: int, source: Source, trained: TrainedFinder) -> Finder:
        """The finder from the state of a study. Texts are read in windows no longer than those that were learnt from,
        because attention is thinner in longer ones.
        """
        scale = Standard(kept.numbers("mean"), kept.numbers("spread"))
        fit = LogisticFit(kept.numbers("coefficients"), float(kept.numbers("intercept")[0]))
        length = min(longest, model.max_length or longest, int(kept.numbers("lengths").max()))
        return cls(model, scale, fit, float(kept.numbers("cuts")[1]), max(length, model.tokenizer.pair.size + 2), source, trained)

    def _windows(self, name: str, words: Sequence[Word], sizes: Int64[np.ndarray, "word"], room: int) -> tuple[list[Window], list[Encoded]]:
        """The windows of a text, and the model's input for each.

        Some tokenizers need more tokens for a word at the start of a text. Then the windows are made smaller until no
        word is lost.
        """
        encoder = Encoder(self.model.tokenizer, "sentence", self.length, "truncate", decoder_start=self.model.decoder_start)
        spare = 0
        while True:
            parts = windows(np.minimum(sizes, room - spare).tolist(), room - spare)
            texts = []
            for number, (start, end) in enumerate(parts):
                texts.append(encoder.encode(f"{name}/{number}", [Sentence(tuple(words[start:end]))], Tally()))
            if all(len(text.words) == end - start for text, (start, end) in zip(texts, parts, strict=True)) or spare > room // 4:
                return parts, texts
            spare = 2 * spare + 1

    def find(self, text: str | Document, progress: Progress | None = None) -> KeywordResult:
        """The keywords and phrases of a text. A text longer than `length` is read in windows that overlap by half."""
        document = plain(text)
        words = document.words
        if not words:
            raise RunError(f"there is no word in {document.id}", "Give a text with words")
        tally = Tally()
        sizes = np.bincount(self.model.tokenizer.tokens(words, tally)[1], minlength=len(words))
        room = self.length - self.model.tokenizer.single.size
        fits = np.flatnonzero(sizes <= room)
        if len(fits) < len(words):
            tally.add(f"words skipped that are longer than the {room} tokens that fit", document.id, len(words) - len(fits))
        if not len(fits):
            raise RunError(f"every word is longer than the {room} tokens that fit", "Put spaces between words")
        parts, texts = self._windows(document.id, [words[place] for place in fits], sizes[fits], room)
        read_in = read_words(self.model, texts, self.source, progress=progress)
        logits = self.fit.logits(self.scale.of(read_in.received.reshape(len(read_in.received), -1)))
        weights = np.zeros(len(words))
        best = np.full(len(words), -1.0)
        begin = 0
        for (start, end), window in zip(parts, texts, strict=True):
            seen = np.array(window.annotation.positions, dtype=np.int64)  # fewer than expected if a word is lost after all
            places, central = fits[start + seen], centrality((start, end), len(fits))[seen]
            better = central > best[places]
            weights[places[better]] = _chance(logits[begin : begin + len(seen)][better])
            best[places] = np.maximum(best[places], central)
            begin += len(seen)
        notes = [f"{n:,} {reason}" for reason, n in sorted(tally.counts.items())]
        if len(parts) > 1:
            notes.append(
                f"the text was read in {len(parts)} windows of up to {self.length} tokens that overlap by half; each word is weighted in "
                "the window in which it is furthest from an edge"
            )
        cut = float(_chance(np.array(self.cut)))
        return KeywordResult(document, weights, tuple(phrases(document, weights, cut)), cut, self.trained, tuple(notes))


def learn(model: Model, corpus: Corpus | None = None, name: str = SAMPLER, folds: int = 5, progress: Progress | None = None) -> Finder:
    """A finder from all heads of a model, learnt from a corpus with keyphrases, and cross-validated on it."""
    spec = validated(KeywordSpec, {"folds": folds, "corpus": name})
    texts = texts_with_keyphrases(Corpus.of(map(plain, corpus or read(SAMPLER))), model, spec, None, Counts())
    words = read_words(model, texts, spec.source, progress=progress)
    system = SYSTEMS[TOGETHER]
    counted = []
    for learnt_from, held in folds_of(words, spec.folds, spec.seed):
        cut, _ = tuned(system, learnt_from, spec.penalty, tuning(learnt_from))
        counted.append(counts(system(learnt_from, spec.penalty).score(held), held, "token", cut))
    f1 = float(KeyphraseF1("token").of(np.concatenate(counted)))
    tried = f"each in turn, in {len(counted)} folds"
    trained = TrainedFinder(Path(model.name).name, model.fingerprint, name, len(words.texts), f1, tried)
    return Finder._of(model, kept_for_finder(words, spec.penalty), spec.max_length, spec.source, trained)


def kept_for_finder(words: Words, penalty: float) -> StateColumns:
    """What a study keeps for finders: the regression learnt from all documents, and the lengths of its texts."""
    system = SYSTEMS[TOGETHER]
    learnt = system(words, penalty)
    assert learnt.scale is not None
    assert learnt.fit is not None
    kept = StateColumns()
    kept.add("mean", learnt.scale.mean)
    kept.add("spread", learnt.scale.spread)
    kept.add("coefficients", learnt.fit.coefficients)
    kept.add("intercept", [learnt.fit.intercept])
    kept.add("cuts", tuned(system, words, penalty, tuning(words)))
    kept.add("lengths", [len(text) for text in words.texts])
    return kept


def plain(text: str | Document) -> Document:
    """A text with words and punctuation separated, whatever the words of its corpus are: `mining),` becomes three."""
    document = text if isinstance(text, Document) else Document("text", tuple(text_paragraphs(text.replace("\r\n", "\n"))))
    sentences = []
    for written in document.sentences:
        if spans := word_spans(written.text):
            sentences.append(replace(written, words=sentence(written.text, spans).words, parse=None))
    return Document(document.id, tuple(sentences), keyphrases=document.keyphrases)


def _chance(logits: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    chances: Float64[np.ndarray, "*shape"] = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
    return chances


Window = tuple[int, int]  # words [start, end)


def windows(sizes: Sequence[int], room: int) -> list[Window]:
    """Windows of at most `room` tokens over words of these sizes, each of which begins in the middle of the one
    before; the last is as full as the others.
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    listed: list[Window] = []
    start, words = 0, len(sizes)
    while True:
        end = int(np.searchsorted(ends, ends[start] + room, "right")) - 1
        if end >= words:
            first = int(np.searchsorted(ends, ends[words] - room, "left"))
            # Windows inside the last one, which reaches back, would add nothing.
            return [*(window for window in listed if window[0] < first), (first, words)]
        if listed and end == listed[-1][1]:  # before a long word: no further than the window before
            start += 1
            continue
        listed.append((start, end))
        start = min(max(int(np.searchsorted(ends, ends[start] + room / 2, "left")), start + 1), end)


def centrality(window: Window, words: int) -> Float64[np.ndarray, "word"]:
    """How many words are between each word of a window and its nearer edge; ends of the text are not edges."""
    start, end = window
    places = np.arange(start, end)
    left = places - start if start > 0 else np.full(end - start, np.inf)
    right = end - 1 - places if end < words else np.full(end - start, np.inf)
    nearer: Float64[np.ndarray, "word"] = np.minimum(left, right)
    return nearer
