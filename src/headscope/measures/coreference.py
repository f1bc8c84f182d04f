"""Single heads as coreference resolvers: how often the word that a head picks for a mention is the head word of an
antecedent (Clark et al. §4.3, Table 2).

The paper's code for this was never released. What its text leaves open is an option here; docs/coreference.md states
our choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from headscope.core.annotation import Annotation
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.corpora.resolution.expressions import SIEVES, Expression, expressions, head_match, nearest, sieve
from headscope.corpora.resolution.head_words import SOURCES, Source
from headscope.corpora.resolution.mentions import NameLists
from headscope.measures.base import Columns
from headscope.measures.contests import Contests, Selection
from headscope.measures.listings import counts_table, rules_table
from headscope.measures.questions import Question
from headscope.measures.resolver import Resolver
from headscope.measures.systems import systems_table

ALL = "all"
DIRECTIONS = ("mention-to-antecedent", "antecedent-to-mention")
RULES = ("nearest", "head_match", "sieves")
_BY = {source: f"head words by {source}" for source in SOURCES}
_TEXTS, _MENTIONS, _SINGLETONS = "texts", "mentions", "mentions of singletons left out"
_FIRST, _SHARED, _SCORED = "first mentions", "mentions with the head word of all their antecedents", "mentions scored"


@dataclass(frozen=True, kw_only=True)
class Coreference(Resolver):
    """Accuracy of every head and direction, and of three rules, in picking an antecedent of a mention by head words.

    `candidates` are the words that can be picked. `head_match` says what that rule does without a match.
    `skip_exact_for_pronouns` lets pronouns begin at the third sieve; `strip_determiner` compares wordings without their
    first article or demonstrative. `masculine` and `feminine` are first names that indicate gender. `singletons` are
    entities that the document mentions once.
    """

    name: ClassVar[str] = "coreference"
    summary: ClassVar[str] = "every head as a coreference resolver: is the mention it picks an antecedent?"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"candidates": "all_words", "selection": "in-sample"},
        "reference": {"candidates": "all_words", "selection": "in-sample"},
    }

    candidates: Literal["preceding_mentions", "any_other_mention", "preceding_words", "all_words"] = "preceding_mentions"
    head_words: Literal["auto", "constituents", "dependencies", "cue"] = "auto"
    singletons: Literal["include", "exclude"] = "exclude"
    head_match: Literal["wrong", "nearest"] = "wrong"
    skip_exact_for_pronouns: bool = False
    strip_determiner: bool = False
    masculine: tuple[str, ...] = ()
    feminine: tuple[str, ...] = ()
    selection: Selection = "crossfit"
    folds: int = 2
    least: int = 20

    @property
    def contests(self) -> Contests:
        """How counts are stored and turned into tables."""
        counted = (_TEXTS, _MENTIONS, _SINGLETONS, *_BY.values(), _FIRST, _SHARED, _SCORED)
        return Contests(self.name, DIRECTIONS, RULES, self.selection, self.least, counted=counted, folds=self.folds)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and kind of mention; the best heads with the best rule; every rule; Table 2; and the counts of
        texts and mentions.
        """
        contests = self.contests
        return {
            **contests.tables(state, layout),
            "coreference_rules": rules_table(contests, state, layout),
            "coreference_systems": systems_table(contests, state, layout),
            "coreference_counts": counts_table(contests, state),
        }

    def asked(self, number: int, text: Annotation, counts: Counter[str]) -> list[Question]:
        """One question for each mention of a text that has an antecedent in it."""
        sources: Sequence[Source] = SOURCES if self.head_words == "auto" else (self.head_words,)
        names = NameLists(frozenset(map(str.lower, self.masculine)), frozenset(map(str.lower, self.feminine)))
        found = expressions(text, sources, singletons=self.singletons == "include", strip_determiner=self.strip_determiner, names=names)
        counts.update([_TEXTS, *(_BY[one.source] for one in found)])
        counts.update({_MENTIONS: len(text.mentions), _SINGLETONS: len(text.mentions) - len(found)})
        asked = []
        for mention in found:
            before = [one for one in found if one.precedes(mention)]
            coreferent = [one for one in before if one.entity == mention.entity]
            answers = {one.head for one in coreferent} - {mention.head}
            counts[_SCORED if answers else _SHARED if coreferent else _FIRST] += 1
            if answers:
                others = [one for one in before if one.head != mention.head]
                rules = tuple(pick is not None and pick.head in answers for pick in self._picks(mention, others))
                allowed = self._candidates(mention, others, found, len(text.words))
                asked.append(Question(number, mention.head, allowed, answers, rules, (ALL, mention.kind)))
        return asked

    def _picks(self, mention: Expression, others: Sequence[Expression]) -> tuple[Expression | None, ...]:
        """The mention that each rule picks as the antecedent."""
        sieves = SIEVES[2:] if self.skip_exact_for_pronouns and mention.kind == "pronoun" else SIEVES
        return (
            nearest(mention, others),
            head_match(mention, others, fallback=self.head_match == "nearest"),
            sieve(mention, others, sieves),
        )

    def _candidates(self, mention: Expression, before: Sequence[Expression], mentions: Sequence[Expression], words: int) -> Collection[int]:
        """The words that a head can pick. The mention's own head word is never one of them."""
        if self.candidates == "preceding_mentions":
            return {one.head for one in before}
        if self.candidates == "any_other_mention":
            return {one.head for one in mentions} - {mention.head}
        if self.candidates == "preceding_words":
            return range(mention.head)
        return {*range(words)} - {mention.head}
