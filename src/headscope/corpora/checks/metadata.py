"""Level 2, comments: ids of sentences and documents, the text and how it agrees with the words, keyphrases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.checks.sentence import NEW_DOCUMENT, NEW_PARAGRAPH, CheckedSentence
from headscope.corpora.readers.blocks import Comment
from headscope.corpora.source import quoted

_NO_ID = rule("sent-id-missing", 2, "a sentence has a # sent_id", "Add # sent_id = and an id")
_ID_FORMAT = rule("sent-id-format", 2, "a sentence has one sent_id, without white space and slashes", "Write one id without them")
_ID_UNIQUE = rule("sent-id-unique", 2, "no sent_id is used twice, in any of the files", "Change one of the ids")
_NO_TEXT = rule("text-missing", 2, "a sentence has a # text", "Add # text = and the sentence as it is written")
_TEXTS = rule("text-repeated", 2, "a sentence has one # text", "Keep one of the comments")
_TEXT = rule("text-words", 2, "the words of a sentence give its # text", "Correct the text, the form or the row of the multi-word token")
_SPACE = rule("space-after", 2, "SpaceAfter=No is set where # text has no space", "Add SpaceAfter=No to the token, or remove it")
_SPACE_PLACE = rule(
    "space-after-place",
    2,
    "SpaceAfter belongs to what is written: not to an empty node, nor to a word of a multi-word token",
    "Move SpaceAfter=No to the row of the multi-word token, or remove it",
)
_SPACE_VALUE = rule("space-after-value", 2, "SpaceAfter has the value No", "Write SpaceAfter=No, or nothing")
_SPACE_BREAK = rule(
    "space-after-break", 2, "a space separates paragraphs and documents", "Remove SpaceAfter=No from the last token before the break"
)
_BREAKS = rule("newdoc-newpar", 2, "a sentence begins at most one document and one paragraph", "Keep one of the comments")
_NO_DOCUMENT = rule(
    "newdoc-missing",
    2,
    "the first sentence begins a document; without # newdoc, documents are guessed from the ids of sentences, or every sentence is one",
    "Add # newdoc id = and an id",
    note=True,
)
_DOCUMENT_UNIQUE = rule("newdoc-unique", 2, "no document id is used twice in a file", "Change one of the ids")
_KEYPHRASE = rule("keyphrase", 2, "# keyphrases occur in their document", "Write the phrase as in the text, or remove it")


@dataclass
class Metadata:
    """The comments of a file's sentences. `sentence_ids`, with their places, are shared by all files."""

    name: str
    sentence_ids: dict[str, str]
    _documents: set[str] = field(default_factory=set)
    _begun: bool = False
    _glued: bool = False  # the last token said SpaceAfter=No

    def sentence(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        """The problems in the comments of a sentence."""
        yield from self._breaks(sentence)
        yield from self._id(sentence)
        yield from _text(sentence)
        tokens = list(sentence.tokens())
        self._glued = bool(tokens) and not tokens[-1].space_after
        self._begun = True

    def _breaks(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        documents, paragraphs = sentence.comments(*NEW_DOCUMENT), sentence.comments(*NEW_PARAGRAPH)
        for comment in [*documents[1:], *paragraphs[1:]]:
            yield _BREAKS.at(comment.line, f"a second # {comment.key} before the same sentence")
        if not documents and not self._begun:
            yield _NO_DOCUMENT.at(sentence.line, "no # newdoc before the first sentence")
        if self._glued and (documents or paragraphs):
            yield _SPACE_BREAK.at((documents or paragraphs)[0].line, "SpaceAfter=No at the token before a new document or paragraph")
        for comment in documents:
            if comment.value and comment.value in self._documents:
                yield _DOCUMENT_UNIQUE.at(comment.line, f"document id {quoted(comment.value)} was used before")
            self._documents.add(comment.value)

    def _id(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        comments = [comment for comment in sentence.comments("sent_id") if comment.value]
        if not comments:
            yield _NO_ID.at(sentence.line, "no # sent_id")
        for comment in comments[1:]:
            yield _ID_FORMAT.at(comment.line, f"a second sent_id {quoted(comment.value)}")
        for comment in comments[:1]:
            if "/" in comment.value or len(comment.value.split()) > 1:
                yield _ID_FORMAT.at(comment.line, f"sent_id {quoted(comment.value)}")
            if comment.value in self.sentence_ids:
                yield _ID_UNIQUE.at(comment.line, f"sent_id {quoted(comment.value)} was used before, at {self.sentence_ids[comment.value]}")
            else:
                self.sentence_ids[comment.value] = f"line {comment.line} of {self.name}"


def _text(sentence: CheckedSentence) -> Iterator[RuleViolation]:
    comments = [comment for comment in sentence.comments("text") if comment.value]
    if not comments:
        yield _NO_TEXT.at(sentence.line, "no # text")
    for comment in comments[1:]:
        yield _TEXTS.at(comment.line, f"a second # text {quoted(comment.value)}")
    if sentence.whole:
        yield from _spacing(sentence)
        for comment in comments[:1]:
            yield from _agreement(sentence, comment)


def _spacing(sentence: CheckedSentence) -> Iterator[RuleViolation]:
    written = {row.line for row in sentence.tokens()}
    for row in sentence.rows:
        if "SpaceAfter" not in row.misc:
            continue
        if row.line not in written and not row.space_after:
            kind = "word of a multi-word token" if row.node is None else "empty node"
            yield _SPACE_PLACE.at(row.line, f"SpaceAfter=No at {row.id}, {'an' if row.node is not None else 'a'} {kind}")
        for item in row.misc.split("|"):
            if item == "NoSpaceAfter=Yes" or (item.startswith("SpaceAfter=") and item != "SpaceAfter=No"):
                yield _SPACE_VALUE.at(row.line, item)


def _agreement(sentence: CheckedSentence, comment: Comment) -> Iterator[RuleViolation]:
    """The first place where text and words differ. Later words would differ too, and are not reported."""
    text, place, glued = comment.value, 0, None
    for row in sentence.tokens():
        if not text.startswith(row.form, place):
            rest = text[place:].lstrip()
            if glued and rest != text[place:] and rest.startswith(row.form):
                yield _SPACE.at(glued.line, f"SpaceAfter=No at {quoted(glued.form)}, and a space in # text before {quoted(rest[:20])}")
            else:
                yield _TEXT.at(row.line, f"form {quoted(row.form)} where # text has {quoted(text[place : place + len(row.form) + 15])}")
            return
        place += len(row.form)
        glued = None if row.space_after else row
        if row.space_after:
            if place < len(text) and not text[place].isspace():
                around = text[max(0, place - len(row.form)) : place + 15]
                yield _SPACE.at(row.line, f"no SpaceAfter=No at {quoted(row.form)}, and no space in # text: {quoted(around)}")
            place = len(text) - len(text[place:].lstrip())
    if text[place:].strip():
        yield _TEXT.at(comment.line, f"# text continues after the last word: {quoted(text[place:].strip())}")


@dataclass
class KeyphraseCheck:
    """Checks that the keyphrases of each document occur in it."""

    _text: list[str] = field(default_factory=list)
    _comments: list[Comment] = field(default_factory=list)

    def sentence(self, sentence: CheckedSentence) -> Iterator[RuleViolation]:
        """Process a sentence. Return the problems of the document that ends before it."""
        if sentence.new_document:
            yield from self.finish()
        self._comments += sentence.comments("keyphrases")
        self._text.append(" ".join((sentence.block.comment("text") or sentence.surface()).split()))

    def finish(self) -> Iterator[RuleViolation]:
        """The problems of the document that ends here."""
        text = " ".join(self._text).casefold()
        for comment in self._comments:
            for phrase in filter(None, map(str.strip, comment.value.split(";"))):
                if phrase.casefold() not in text:
                    yield _KEYPHRASE.at(comment.line, f"keyphrase {quoted(phrase)} does not occur in the document")
        self._text, self._comments = [], []
