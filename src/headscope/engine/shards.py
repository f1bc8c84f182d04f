"""The work of a run: the corpus is read in each way that measures need, encoded, and cut into shards."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from headscope.core.paths import printable
from headscope.core.profile import timed
from headscope.core.slices import MOST, in_order
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.permuted import Trees
from headscope.corpora.tags import OUTSIDE, Tagging, tags_in
from headscope.encoding.batches import Item, shards
from headscope.encoding.choices import Overlong, Unit
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.generating import GeneratedText
from headscope.engine.packed_texts import PackedTexts, packed_shards
from headscope.engine.plan import CorpusReading
from headscope.engine.prefetch import Prefetcher
from headscope.engine.sample import Sample
from headscope.engine.slicing import too_many
from headscope.engine.spec import RunSpec
from headscope.engine.worker import ShardJob
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.models.predictions import class_number
from headscope.results.counts import Counts, require_known, warning


class Progress(Protocol):
    """A callback for the progress of a run: the share of the corpus that is read, and the texts and tokens that are
    done.
    """

    def __call__(self, share: float | None, texts: int, tokens: int) -> None:
        """`share` is None when it cannot be known."""


def require_labels(spec: RunSpec, corpus: Corpus, model: Model) -> None:
    """Refuse gradients of a classifier for a corpus without labels, or with some that the model does not know,
    before the pass.
    """
    if model.tagging is not None and spec.differentiates:
        tags = {tag for document in islice(corpus, spec.limit) for tag in tags_in(document, model.tagging)} - {None}
        if not tags or tags == {OUTSIDE}:
            raise RunError(
                f"{model.name} tags words by {model.tagging}, and {', '.join(spec.corpus)} has none",
                "Use a corpus with these tags, or remove saliency from --measures",
            )
    if model.objective != "classes" or not spec.differentiates:
        return
    labels = {document.label for document in islice(corpus, spec.limit)} - {None}
    if not labels:
        raise RunError(
            f"{model.name} is a classifier, whose loss needs labels, and {', '.join(spec.corpus)} has none",
            "Use a corpus with a label for each text (JSON lines or a table), or remove saliency from --measures",
        )
    for label in sorted(label for label in labels if label is not None):
        class_number(label, model.classes)


def encoder_for(
    spec: RunSpec,
    tokenizer: Tokenizer,
    decoder_start: int | None = None,
    unit: Unit | None = None,
    overlong: Overlong | None = None,
    trees: Trees | None = None,
    labelled: bool = False,
    tags: Tagging | None = None,
) -> Encoder:
    """The encoder that turns documents into the inputs of a resolved specification, or into those of another unit."""
    cut = spec.prompt_tokens
    return Encoder(
        tokenizer,
        unit=unit or spec.unit or "sentence",
        max_length=spec.max_length if cut is None else cut + tokenizer.single.size,
        overlong=overlong or spec.overlong or "drop",
        segment_ids=spec.segment_ids or "pair",
        seed=spec.seed,
        decoder_start=decoder_start,
        trees=trees,
        labelled=labelled,
        tags=tags,
        by=spec.by,
    )


class RunWork:
    """The shards that are still to do, made on demand: the corpus is read no further ahead than the engine needs.

    `sampled` are the ways of reading the corpus, each with the sample that collects its texts; `done` tells whether the
    shard of a number is finished; `readers` is the number of processes that prefetch, if the corpus allows it.
    """

    def __init__(
        self,
        corpus: Corpus,
        model: Model,
        spec: RunSpec,
        sampled: Sequence[tuple[CorpusReading, Sample]],
        done: Callable[[int], bool],
        progress: Progress | None = None,
        readers: int = 0,
    ) -> None:
        self.ways = [way for way, _ in sampled]
        self.counts = [Counts() for _ in sampled]
        self._samples = [sample for _, sample in sampled]
        self._corpus = corpus
        self._model = model
        self._spec = spec
        self._done = done
        self._progress = progress
        self._ahead = Prefetcher(corpus, readers) if Prefetcher.can(corpus, readers) and spec.limit is None else None
        self._name = printable(Path(spec.model).name)
        self._turn = 0
        self._read: dict[int, tuple[float | None, int, int]] = {}  # what was read up to the end of each unfinished shard
        self._reported = 0  # tokens
        self._shards = self._pending()

    def _cut(self, way: CorpusReading, counts: Counts, sample: Sample) -> Iterator[Sequence[Encoded]]:
        """The texts of one reading, one shard at a time; texts from other processes stay packed."""
        tokens = self._spec.shard_tokens or 1
        if self._ahead is None or (way.differentiates and self._model.objective in ("classes", "tags")):
            yield from shards(self._known(self._texts(way, counts, sample), way, counts), tokens)
            return
        trees = Trees(self._corpus, self._spec.seed) if way.control else None
        encoder = encoder_for(self._spec, self._model.tokenizer, self._model.decoder_start, way.unit, way.overlong, trees)
        documents = timed(self._ahead.documents(encoder, counts.dropped), "waiting for readers")
        yield from packed_shards(self._known(self._counted(documents, way, counts, sample), way, counts), tokens)

    def _known(self, items: Iterator[Item], way: CorpusReading, counts: Counts) -> Iterator[Item]:
        """Texts or documents, counted as they are read. Measures of words are refused if the model cannot read them."""
        for item in items:
            self._require_known(way, counts)
            if len(counts.slices) > MOST:
                raise too_many(self._corpus, self._spec.by or "")
            yield item
        self._require_known(way, counts, ended=True)

    def _require_known(self, way: CorpusReading, counts: Counts, ended: bool = False) -> None:
        require_known(counts, self._name, frozenset() if self._spec.allow_unknown else way.of_words, ended)

    def _counted(self, documents: Iterable[PackedTexts], way: CorpusReading, counts: Counts, sample: Sample) -> Iterator[PackedTexts]:
        for texts in documents:
            if counts.may_exceed(total := texts.total):  # a run that is refused is refused at the same text
                for sizes in texts.sizes():
                    counts.count(texts.document, sizes, texts.slice)
                    self._require_known(way, counts)
            elif len(texts):
                counts.count(texts.document, total, texts.slice, len(texts))
            sample.add_all(texts)
            yield texts

    def _texts(self, way: CorpusReading, counts: Counts, sample: Sample) -> Iterator[Encoded]:
        trees = Trees(self._corpus, self._spec.seed) if way.control else None
        labelled = way.differentiates and self._model.objective == "classes"
        tags = self._model.tagging if way.differentiates else None
        start = self._model.decoder_start
        encoder = encoder_for(self._spec, self._model.tokenizer, start, way.unit, way.overlong, trees, labelled, tags)
        documents = timed(self._corpus, "reading")
        for text in islice(timed(encoder.texts(documents, counts.dropped), "encoding"), self._spec.limit):
            counts.add(text)
            if (labelled or tags is not None) and not self._model.predicts(text):
                counts.dropped.add("texts without a label, which have no gradients", text.id)
            sample.add(text)
            yield text

    def _pending(self) -> Generator[ShardJob]:
        number = 0
        for turn, (way, counts, sample) in enumerate(zip(self.ways, self.counts, self._samples, strict=True)):
            self._turn = turn
            for shard in self._cut(way, counts, sample):
                self._read[number] = self._reached()
                if not self._done(number):
                    yield ShardJob(number, shard, way.measures)
                else:
                    self.report_progress(number)
                number += 1

    def recount(self, texts: Iterable[GeneratedText]) -> None:
        """Count texts as they were measured, including generated tokens, in place of the prompts that were read."""
        counts = self.counts[0] = Counts(dropped=self.counts[0].dropped)
        for text in texts:
            counts.count(text.document, text.sizes, text.slice)

    def slices(self) -> dict[str, Any] | None:
        """The summary of the slices of a run for a manifest; None if it has none."""
        if self._spec.by is None:
            return None
        values = in_order({name for counts in self.counts for name in counts.slices})
        first = {name: next(counts.slices[name] for counts in self.counts if name in counts.slices) for name in values}
        return {"by": self._spec.by, "values": {name: vars(counted) for name, counted in first.items()}}

    @property
    def least_known(self) -> Counts:
        """The counts of the reading with the largest share of unknown tokens."""
        return max(self.counts, key=lambda counts: counts.unknown_share)

    def warnings(self) -> list[str]:
        """Warnings about the texts for readers of the results."""
        return warning(self.least_known, self._name)

    def dropped(self) -> Tally:
        """The counts of what was skipped, and of what was read nevertheless, by reason; separately for each way of
        reading the corpus.
        """
        total = Tally()
        for way, counts in zip(self.ways, self.counts, strict=True):
            own = counts.dropped
            for reason, n in own.counts.items():
                named = reason if len(self.ways) == 1 else f"{reason}, by {way.unit}"
                total.add(named, own.first[reason], n, read=reason in own.read)
        total.update(self._corpus.skipped)
        return total

    def __iter__(self) -> Iterator[ShardJob]:
        return self

    def __next__(self) -> ShardJob:
        return next(self._shards)

    def close(self) -> None:
        """Close the files that are being read, and end the processes that read ahead."""
        self._shards.close()

    def report_progress(self, shard: int) -> None:
        """Report progress when a shard is finished: what was read up to its end, or to the end of a later one that
        finished before it.
        """
        share, texts, tokens = self._read.pop(shard)
        if self._progress is not None and tokens >= self._reported:
            self._reported = tokens
            self._progress(share, texts, tokens)

    def _reached(self) -> tuple[float | None, int, int]:
        """The share of the corpus that is read, its texts and its tokens."""
        limit = self._spec.limit
        shares = [
            self._ahead.share if self._ahead is not None else self._corpus.share,
            self.counts[self._turn].texts / limit if limit is not None else None,
        ]
        share = max((share for share in shares if share is not None), default=None)
        whole = None if share is None else (self._turn + share) / len(self.ways)
        return whole, sum(counts.texts for counts in self.counts), sum(counts.tokens for counts in self.counts)
