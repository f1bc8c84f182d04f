"""Turn documents into model inputs: which stretch of text becomes one input, and how texts that are too long are
handled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.core.annotation import Annotated, Annotation
from headscope.core.batch import CLS, SPECIAL, WORD
from headscope.core.document import PASSAGE, Document, Scalar, Sentence, Word
from headscope.core.slices import NO_VALUE, slice_of
from headscope.core.tally import Tally
from headscope.corpora.permuted import Trees
from headscope.corpora.tags import OUTSIDE, Tagging, phrase_tags, tags_in
from headscope.encoding.choices import Overlong, SegmentIds, Unit
from headscope.encoding.drawn import with_tokens
from headscope.encoding.segments import Part, SegmentChunk, clark_chunks, paragraph_pairs, shorten
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import EncodingError

TRUNCATED, CUT, CUT_MENTIONS = "overlong texts truncated", "words cut off at the end", "mentions cut off at the end"


class TokenArrays(NamedTuple):
    """The tokens of a text as arrays. A group is a word or a special token."""

    roles: NDArray[np.int8]  # of each token
    groups: NDArray[np.int32]  # the number of each token's group
    group_roles: NDArray[np.int8]
    firsts: NDArray[np.int64]  # the first token of each group

    @classmethod
    def of(cls, roles: Sequence[int], word_of: Sequence[int]) -> TokenArrays:
        """The arrays of tokens of these roles and words. Groups follow the order of the text."""
        role, word = np.array(roles, dtype=np.int8), np.array(word_of, dtype=np.int32)
        begins = np.ones(len(word), dtype=bool)
        begins[1:] = (word[1:] < 0) | (word[1:] != word[:-1])
        firsts = np.flatnonzero(begins)
        group_roles = np.where(word[firsts] < 0, role[firsts], np.int8(WORD))
        return cls(role, np.cumsum(begins, dtype=np.int32) - 1, group_roles, firsts)


@dataclass(frozen=True, eq=False)
class Encoded:
    """One model input. Arrays run over tokens; `word_of` is -1 on special tokens and else an index into the
    annotation's words.

    `target` is what the decoder of an encoder-decoder reads. `label` is the document's, if the text is the whole
    document; `tags` are those of its words, if they were requested. `unknown` counts the tokens for text that the
    tokenizer does not know. `generated_from` is the position of the first token that a model generated; None if it
    generated none.
    """

    id: str
    annotation: Annotation
    ids: NDArray[np.int64]
    segments: NDArray[np.int64]
    roles: tuple[int, ...]
    word_of: tuple[int, ...]
    pieces: tuple[str, ...]
    target: Encoded | None = None
    label: str | None = None
    tags: tuple[str | None, ...] = ()
    unknown: int = 0
    generated_from: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def document(self) -> str:
        """The id of the document that the text is part of."""
        return self.annotation.document

    @property
    def slice(self) -> str:
        """The slice that the document belongs to."""
        return self.annotation.slice

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the text."""
        return self.annotation.words

    @property
    def metadata(self) -> Mapping[str, Scalar]:
        """The metadata of the document that the text is part of."""
        return self.annotation.metadata

    @cached_property
    def arrays(self) -> TokenArrays:
        """The tokens as arrays."""
        return TokenArrays.of(self.roles, self.word_of)

    def with_arrays(self) -> Encoded:
        """The text itself, after its arrays are computed: for encoding processes, so that batches need not wait for
        them.
        """
        for side in (self, self.target):
            _ = side and side.arrays
        return self

    def tagged(self) -> tuple[NDArray[np.int64], list[str]]:
        """The first tokens of words that have a tag, and the tags."""
        word_of = np.array(self.word_of, dtype=np.int64)
        begins = (word_of >= 0) & (np.diff(word_of, prepend=-1) != 0)
        places = [int(place) for place in np.flatnonzero(begins) if self.tags and self.tags[word_of[place]] is not None]
        tags = [self.tags[word_of[place]] for place in places]
        return np.array(places, dtype=np.int64), [tag for tag in tags if tag is not None]

    @property
    def cost(self) -> int:
        """Tokens of the longer side, by which batches are balanced."""
        return max(len(self), len(self.target) if self.target is not None else 0)


@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns documents into inputs. `decoder_start` is set for an encoder-decoder: its decoder then reads a target, too.

    The target is the second part of a `pair` or a `segment`, and else the text itself. `trees` are trees of other
    sentences that serve as a control. With `labelled`, a labelled document that is cut into several texts is an error,
    since its label belongs to none of them. `tags` names the tags that texts carry for their words. `by` is the column
    of documents whose value is the slice of their texts.
    """

    tokenizer: Tokenizer
    unit: Unit = "sentence"
    max_length: int = 128
    overlong: Overlong = "drop"
    segment_ids: SegmentIds = "pair"
    seed: int = 0
    decoder_start: int | None = None
    trees: Trees | None = None
    labelled: bool = False
    tags: Tagging | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.max_length < self.tokenizer.pair.size + 2:
            raise EncodingError(f"max_length {self.max_length} leaves no room for words, only for special tokens", "Use 16 or more")

    def texts(self, documents: Iterable[Document], tally: Tally) -> Iterator[Encoded]:
        """The inputs of all documents, in order; what is skipped is counted in `tally`."""
        for document in documents:
            document = with_tokens(document, self.tokenizer, self.max_length)
            keywords = [tag != OUTSIDE for tag in phrase_tags(document)] if document.keyphrases else ()
            partners = self.trees.partners(document) if self.trees is not None else ()
            annotated = Annotated(document, partners, keywords, slice_of(document, self.by) if self.by is not None else NO_VALUE)
            label, chunks = self._label(document, self._chunks(document, tally))
            tags = tags_in(document, self.tags) if self.tags is not None else ()
            for number, chunk in enumerate(chunks, 1):
                text = self._encode(chunk, f"{document.id}/{number}", annotated)
                own = tuple(tags[position] for position in text.annotation.positions) if tags else ()
                yield (text if label is None and not own else replace(text, label=label, tags=own)).with_arrays()

    def encode(self, name: str, parts: Sequence[Sentence], tally: Tally) -> Encoded:
        """One text, or two that are read as a pair, as one input. Words that do not fit are cut off at the end of a
        part and counted.
        """
        document = Document(name, tuple(parts))
        chunks: list[SegmentChunk] = []
        for sentence in parts:
            ids, word_of = self.tokenizer.tokens(sentence.words, tally)
            start = sum(len(chunk.words) for chunk in chunks)
            chunks.append(SegmentChunk(sentence.words, tuple(ids), tuple(start + word for word in word_of)))
        apart = self.decoder_start is not None or len(chunks) == 1
        room = self.max_length - (self.tokenizer.single if apart else self.tokenizer.pair).size
        rooms = [room] * len(chunks)
        if not apart:  # each part gets at least half of the room if it needs it
            first, second = (len(chunk.ids) for chunk in chunks)
            rooms = [max(room // 2, room - second), max(room - room // 2, room - first)]
        kept = [next(shorten(chunk, space), None) for chunk, space in zip(chunks, rooms, strict=True)]
        if None in kept:
            raise EncodingError(
                f"a word is longer than the {room} tokens that fit", "Put spaces between words, or raise the maximum length"
            )
        fitted = [chunk for chunk in kept if chunk is not None]
        if lost := sum(len(chunk.words) for chunk in chunks) - sum(len(set(chunk.word_of)) for chunk in fitted):
            tally.add(CUT, name, lost)
        both = replace(fitted[0], words=document.words, second_ids=fitted[-1].ids, second_words=fitted[-1].word_of)
        whole = both if len(parts) == 2 else replace(both, second_ids=(), second_words=())
        return self._encode(whole, name, Annotated(document, ()))

    def _label(self, document: Document, chunks: Iterable[SegmentChunk]) -> tuple[str | None, Iterable[SegmentChunk]]:
        """The label of a document's texts, and their chunks. A label belongs to a whole text, so parts of a text have
        none.
        """
        if document.label is None:
            return None, chunks
        chunks = list(chunks)
        if [len(chunk.words) for chunk in chunks] == [len(document.words)]:
            return document.label, chunks
        if chunks and self.labelled:
            raise EncodingError(
                f"{document.id} is labelled {document.label!r} as a whole, but read in parts (unit {self.unit}, overlong {self.overlong})",
                "Use --unit document, or --unit pair for pairs of texts, and do not split texts into windows",
            )
        return None, chunks

    def _chunks(self, document: Document, tally: Tally) -> Iterator[SegmentChunk]:
        if self.unit == "segment":
            yield from clark_chunks(document, self.tokenizer, self.max_length - self.tokenizer.pair.size, self.seed, tally)
        elif self.unit == "pair" and self.decoder_start is None:
            yield from paragraph_pairs(document, self.tokenizer, self.max_length - self.tokenizer.pair.size, self.seed, tally)
        elif self.unit == "pair":
            # Source and target are separate inputs, so neither is cut in favour of the other: `overlong` applies to
            # each.
            for chunk in paragraph_pairs(document, self.tokenizer, sys.maxsize, self.seed, tally):
                yield from self._fit_apart(chunk, document, tally)
        else:
            room = self.max_length - self.tokenizer.single.size
            start = 0
            for words, ids, word_of in self.tokenizer.tokens_of_each(self._stretches(document), tally):
                if words:
                    yield from self._fit(SegmentChunk(words, ids, word_of, start=start), room, document, tally)
                start += len(words)

    def _stretches(self, document: Document) -> Iterator[tuple[Word, ...]]:
        if self.unit == "sentence":
            yield from (sentence.words for sentence in document.sentences)
        elif self.unit == "paragraph":
            yield from (tuple(word for sentence in group for word in sentence.words) for group in document.paragraphs())
        else:
            yield document.words

    def _fit_apart(self, chunk: SegmentChunk, document: Document, tally: Tally) -> Iterator[SegmentChunk]:
        """The two parts, each fitted into a separate input; a window without a counterpart in the other part is
        skipped.
        """
        room = self.max_length - self.tokenizer.single.size
        source, target = (SegmentChunk(chunk.words, *side, start=chunk.start) for side in chunk.sides())
        sources = list(self._fit(source, room, document, tally))
        targets = list(self._fit(target, room, document, tally)) if sources else []
        if targets and len(sources) != len(targets):
            tally.add("windows skipped: no partner", document.id, abs(len(sources) - len(targets)))
        for first, second in zip(sources, targets, strict=False):
            yield replace(first, second_ids=second.ids, second_words=second.word_of)

    def _fit(self, chunk: SegmentChunk, room: int, document: Document, tally: Tally) -> Iterator[SegmentChunk]:
        """The chunk or, if it does not fit, the chunks that `overlong` gives."""
        if len(chunk.ids) <= room:
            yield chunk
            return
        where = document.id
        if self.overlong == "error":
            raise EncodingError(
                f"a {self.unit} of {where} has {len(chunk.ids)} tokens where {room} fit",
                "Raise --max-length, or choose --overlong drop, truncate or window",
            )
        # A window would hold a question without its passage.
        marked = self.overlong == "window" and any(edge.task == PASSAGE for edge in document.edges)
        parts = list(shorten(chunk, room)) if self.overlong != "drop" and not marked else []
        if not parts:
            tally.add("overlong texts dropped", where)
            return
        reached = chunk.word_of
        if self.overlong == "truncate":
            parts = parts[:1]
            reached = tuple(word for word in chunk.word_of if word <= parts[0].word_of[-1])
            _count_cut(chunk, parts[0].word_of[-1] + 1, document, tally)
        else:
            tally.add("overlong texts split into windows", where, read=True)
        if lost := len(set(reached)) - sum(len(set(part.word_of)) for part in parts):
            tally.add("words skipped: longer than a window", where, lost)
        yield from parts

    def _encode(self, chunk: SegmentChunk, name: str, document: Annotated) -> Encoded:
        first, second = chunk.sides()
        if self.decoder_start is not None:
            source = self._assemble(chunk, name, document, (first,))
            target = self._assemble(chunk, name, document, (second if second[0] else first,))
            # The decoder reads its text shifted by one: a start token first, the last token never.
            read = [word for word in sorted(set(target.word_of[:-1])) if word >= 0]
            words = document.select([target.annotation.positions[word] for word in read])
            start = replace(
                target,
                annotation=words,
                ids=np.concatenate([[self.decoder_start], target.ids[:-1]]),
                segments=np.zeros_like(target.segments),
                # BART's own <s> then comes second, so its role is not that of an opening token: only one token opens a
                # text.
                roles=(CLS, *(SPECIAL if role == CLS else role for role in target.roles[:-1])),
                word_of=(-1, *target.word_of[:-1]),
                pieces=(self.tokenizer.readable(self.decoder_start), *target.pieces[:-1]),
                unknown=target.unknown - (target.word_of[-1] >= 0 and target.ids[-1] in self.tokenizer.unknown),
            )
            return replace(source, target=start)
        return self._assemble(chunk, name, document, (first, second) if chunk.second_ids else (first,))

    def _assemble(self, chunk: SegmentChunk, name: str, document: Annotated, sides: tuple[Part, ...]) -> Encoded:
        template, parts = self.tokenizer.single, self.tokenizer.single_roles
        if len(sides) == 2:
            template, parts = self.tokenizer.pair, self.tokenizer.pair_roles
        before, between, after = parts
        ids, word_of = sides[0]
        roles = (WORD,) * len(ids)
        turn = 0
        if len(sides) == 2:
            turn = len(template.before) + len(ids) + len(template.between)
            ids += template.between + sides[1][0]
            word_of += (-1,) * len(template.between) + sides[1][1]
            roles += between + (WORD,) * len(sides[1][0])
        ids = template.before + ids + template.after
        segments = np.zeros(len(ids), dtype=np.int64)
        if turn and self.segment_ids == "pair":
            segments[turn:] = 1
        kept = _without_gaps(sides) or sorted({position for position in word_of if position >= 0})
        if kept[0] or not isinstance(kept, range):
            renumber = {position: new for new, position in enumerate(kept)}
            word_of = tuple([renumber.get(position, -1) for position in word_of])
        return Encoded(
            name,
            document.select(range(chunk.start + kept[0], chunk.start + kept[-1] + 1))
            if isinstance(kept, range)
            else document.select([chunk.start + position for position in kept]),
            np.array(ids, dtype=np.int64),
            segments,
            before + roles + after,
            (-1,) * len(before) + word_of + (-1,) * len(after),
            self.tokenizer.pieces(ids),
            unknown=sum(side_ids.count(token) for side_ids, _ in sides for token in self.tokenizer.unknown),
        )


def _without_gaps(sides: Sequence[Part]) -> range | None:
    """The words of a text's parts, if they are contiguous."""
    first, end = sides[0][1][0], sides[-1][1][-1] + 1
    return range(first, end) if len(set(chain.from_iterable(words for _, words in sides))) == end - first else None


def _count_cut(chunk: SegmentChunk, end: int, document: Document, tally: Tally) -> None:
    """Count what is lost if a chunk keeps only its words before number `end`: words, and mentions that are no longer
    complete.
    """
    tally.add(TRUNCATED, document.id)
    tally.add(CUT, document.id, len({word for word in chunk.word_of if word >= end}))
    mentions = {(mention.start, mention.end, mention.entity) for mention in document.mentions if mention.start < mention.end}
    kept, stop = chunk.start + end, chunk.start + len(chunk.words)
    if lost := sum(start >= chunk.start and kept < last <= stop for start, last, _ in mentions):
        tally.add(CUT_MENTIONS, document.id, lost)
