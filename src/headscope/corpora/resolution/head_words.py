"""The word that heads a mention: by its constituent, by its dependencies, or by cues in its wording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from headscope.core.annotation import NONE, ROOT, Annotation
from headscope.core.document import Mention, Word
from headscope.corpora.resolution.mentions import head_word, listed
from headscope.corpora.resolution.trees import coordinated_in_tree, head_in_tree, parse_tree

Source = Literal["constituents", "dependencies", "cue"]
SOURCES: tuple[Source, ...] = get_args(Source)  # from the most to the least reliable

# Signs of a postmodifier in an English noun phrase: tags if there are any, else these closed classes.
_PREPOSITIONS = listed(
    "about above across after against along among around at before behind below beneath beside between beyond by despite down during "
    "except for from in inside into like near of off on onto out outside over past since than through throughout to toward towards "
    "under until up upon via with within without"
)
_RELATIVE = listed("who whom whose which that where when why")
_MARKS = frozenset({",", "(", "[", "{", "-LRB-", "-LSB-", "-LCB-"})
_CLITICS = frozenset({"'s", "’s", "'", "’"})
_CUE_TAGS = listed("IN TO ADP WDT WP WP$ WRB MD VB VBD VBG VBN VBP VBZ VERB AUX")
_CONJUNCTIONS = frozenset({"and", "or", "&"})
_NOMINAL_TAGS = listed("NN NNS NNP NNPS PRP CD NOUN PROPN PRON NUM")


class Headed(NamedTuple):
    """A mention's head word by its place in the text, the source that determined it, and whether the mention
    coordinates nouns.
    """

    head: int
    source: Source
    coordinated: bool


class HeadWords:
    """Finds the head words of one text's mentions, by the first of the `sources` that is annotated, else by cues."""

    def __init__(self, text: Annotation, sources: Sequence[Source] = SOURCES) -> None:
        self._text = text
        self._sources = sources
        self._parses = {parse.sentence: parse for parse in text.parses}
        self._governors = [_governor(word, head) for word, head in zip(text.words, text.heads, strict=True)]

    def of(self, mention: Mention) -> Headed:
        """The head of a mention."""
        if "constituents" in self._sources and (headed := self._by_constituents(mention)):
            return Headed(headed[0], "constituents", headed[1])
        if "dependencies" in self._sources and (headed := self._by_dependencies(mention)):
            return Headed(headed[0], "dependencies", headed[1])
        head, coordinated = by_cue(self._text.words[mention.start : mention.end])
        return Headed(mention.start + head, "cue", coordinated)

    def _by_constituents(self, mention: Mention) -> tuple[int, bool] | None:
        text = self._text
        parse = self._parses.get(text.sentences[mention.start])
        if parse is None or text.sentences[mention.end - 1] != parse.sentence:
            return None
        tree = parse_tree(parse.tree, parse.end - parse.start)
        if tree is None:
            return None
        start = text.positions[mention.start] - parse.start
        end = text.positions[mention.end - 1] - parse.start + 1
        return mention.start + head_in_tree(tree, start, end) - start, coordinated_in_tree(tree, start, end)

    def _by_dependencies(self, mention: Mention) -> tuple[int, bool] | None:
        text = self._text
        head = head_word(mention, text.words, self._governors)
        if head is None:
            return None
        span = range(mention.start, mention.end)
        return head, any(self._governors[i] == head and (text.words[i].relation or "").partition(":")[0] == "conj" for i in span)


def by_cue(words: Sequence[Word]) -> tuple[int, bool]:
    """The last word before the first sign of a postmodifier, and whether a conjunction comes before it.

    A possessive clitic at the end and punctuation marks are skipped.
    """
    end = next((place for place, word in enumerate(words) if place and _is_cue(word)), len(words))
    head = next((place for place in reversed(range(end)) if _names(words[place].form)), end - 1)
    joins = any(
        words[place].form.lower() in _CONJUNCTIONS and place and _tag(words[place - 1]) in {None, *_NOMINAL_TAGS} for place in range(head)
    )
    return head, joins


def _names(form: str) -> bool:
    return form not in _CLITICS and any(map(str.isalnum, form))


def _is_cue(word: Word) -> bool:
    tag = _tag(word)
    if word.form in _MARKS or word.form.lower() in _RELATIVE:
        return True
    return tag in _CUE_TAGS if tag is not None else word.form.lower() in _PREPOSITIONS


def _tag(word: Word) -> str | None:
    return word.xpos or word.upos


def _governor(word: Word, head: int) -> int | None:
    """The governor in the form that `head_word` needs: one outside the text lies outside any mention."""
    if head == NONE:
        return None if word.head is None else ROOT
    return head
