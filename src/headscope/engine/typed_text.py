"""A typed text, or an annotated document, as a model input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora.words import word_spans
from headscope.encoding.continuation import continued, prompt_of
from headscope.encoding.texts import CUT, Encoded, Encoder
from headscope.errors import EncodingError, RunError
from headscope.models.generation import STOPS, Decoding, generate
from headscope.models.model import Model

LONGEST = 512  # tokens of a text, even if the model can read more


@dataclass(frozen=True)
class TypedText:
    """A text as a model input, and a note on what was omitted ("" if nothing was)."""

    encoded: Encoded
    note: str


def typed(model: Model, text: str | Document, second: str | None = None, max_length: int | None = None) -> TypedText:
    """Plain text, or an annotated document, as a model input.

    `second` is the other text of a pair, or what the decoder of an encoder-decoder reads.
    """
    room = min(filter(None, (max_length or LONGEST, model.max_length)))
    if isinstance(text, Document):
        return _annotated(model, text, second, room)
    spans = [word_spans(part) for part in (text, *([second] if second is not None else []))]
    if not all(spans):
        raise EncodingError("there is no text to look at", "Give at least one word")
    tally = Tally()
    # A word has at least one token, so at most this many words can fit. The slow tokenizer need not see the others.
    if over := sum(max(0, len(found) - room) for found in spans):
        tally.add(CUT, "text", over)
    parts = [words_of(part, found[:room]) for part, found in zip((text, second or ""), spans, strict=False)]
    encoder = Encoder(model.tokenizer, "sentence", room, "truncate", decoder_start=model.decoder_start)
    encoded = encoder.encode("text", [Sentence(words) for words in parts], tally)
    return TypedText(encoded, _note(model, encoded, tally))


def write_on(model: Model, text: TypedText, decoding: Decoding) -> TypedText:
    """The text with the model's continuation; the note tells how it was generated and why it stopped."""
    prompt, name = prompt_of(text.encoded), Path(model.name).name
    (made,) = generate(model, [prompt.ids.tolist()], decoding)
    if not made.ids:
        if made.stopped == "context":
            raise EncodingError(f"the prompt fills the {len(prompt):,} tokens that {name} can read", "Give a shorter prompt")
        raise EncodingError(f"{name} generates nothing after this prompt: it ends the text", "Give another prompt, or use --temperature 1")
    count = f"{len(made.ids):,} token{'s' * (len(made.ids) != 1)}"
    note = f"{name} wrote the last {count}, {decoding.described()}; it stopped because {STOPS[made.stopped]}"
    return TypedText(continued(prompt, made.ids, model.tokenizer), "; ".join(filter(None, (text.note, note))))


def _annotated(model: Model, document: Document, second: str | None, room: int) -> TypedText:
    if second is not None:
        raise RunError("an annotated text cannot have a second text", "Omit the second text")
    tally = Tally()
    encoder = Encoder(model.tokenizer, "document", room, "truncate", decoder_start=model.decoder_start)
    encoded = next(encoder.texts([document], tally), None)
    if encoded is None:
        raise EncodingError(f"{document.id} has no word that fits into {room} tokens", "Allow more with --max-length")
    return TypedText(encoded, _note(model, encoded, tally))


def _note(model: Model, encoded: Encoded, tally: Tally) -> str:
    """The note on what was omitted from a text."""
    return "; ".join([*_unknown(model, encoded), *(f"{n:,} {reason}" for reason, n in sorted(tally.counts.items()))])


def _unknown(model: Model, encoded: Encoded) -> list[str]:
    """The note on words that contain an unknown token."""
    words = {
        (side is encoded, word)
        for side in (encoded, encoded.target)
        if side is not None
        for word, token in zip(side.word_of, side.ids, strict=True)
        if word >= 0 and token in model.tokenizer.unknown
    }
    return [f"{len(words):,} word{'s' * (len(words) != 1)} the tokenizer does not know"] if words else []


def words_of(text: str, spans: Sequence[tuple[int, int]]) -> tuple[Word, ...]:
    """The words of plain text, each with whether a space follows."""
    return tuple(Word(text[start:end], space_after=text[end : end + 1].isspace()) for start, end in spans)
