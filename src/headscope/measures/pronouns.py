"""Single heads on pronoun tests (GAP, WinoBias): whether a pronoun attends more to its referent than to the other
candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from headscope.core.annotation import Annotation
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.corpora.resolution.expressions import Expression, expressions, nearest
from headscope.corpora.resolution.head_words import SOURCES, Source
from headscope.corpora.resolution.mentions import PLURAL, THIRD
from headscope.measures.base import Columns
from headscope.measures.contests import Contests, Selection, own_label
from headscope.measures.gaps import gaps_table
from headscope.measures.listings import counts_table, rules_table
from headscope.measures.questions import Question
from headscope.measures.resolver import Resolver

ALL = "all"
DIRECTIONS = ("pronoun-to-candidate", "candidate-to-pronoun")
RULES = ("first", "nearest", "nearest_before")
PAIRS = (("feminine", "masculine"), ("anti", "pro"))
_TEXTS, _PRONOUNS, _SCORED = "texts", "third-person pronouns", "pronouns scored"
_FEW, _NONE, _EVERY = (
    "pronouns with fewer than two candidates",
    "pronouns that refer to no candidate",
    "pronouns that refer to every candidate",
)


@dataclass(frozen=True, kw_only=True)
class Pronouns(Resolver):
    """Accuracy of every head and direction, and of three rules, in picking the referent of a third-person pronoun.

    Candidates are the mentions of the text, before and after the pronoun, that are not pronouns themselves: the two
    names of GAP, the two occupations of WinoBias. A pronoun is scored if it has at least two candidates and some of
    them, but not all, belong to its entity.
    """

    name: ClassVar[str] = "pronouns"
    summary: ClassVar[str] = "every head on pronoun tests: does the pronoun attend more to the right candidate?"

    head_words: Literal["auto", "constituents", "dependencies", "cue"] = "auto"
    selection: Selection = "crossfit"
    folds: int = 2
    least: int = 20

    @property
    def contests(self) -> Contests:
        """How counts are stored and turned into tables."""
        counted = (_TEXTS, _PRONOUNS, _FEW, _NONE, _EVERY, _SCORED)
        return Contests(self.name, DIRECTIONS, RULES, self.selection, self.least, counted=counted, folds=self.folds)

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and gender; the best heads with the best rule; every rule; gaps between groups; and the counts of
        texts and pronouns.
        """
        contests = self.contests
        return {
            **contests.tables(state, layout),
            "pronouns_rules": rules_table(contests, state, layout),
            "pronouns_gaps": gaps_table(contests, state, layout, PAIRS),
            "pronouns_counts": counts_table(contests, state),
        }

    def asked(self, number: int, text: Annotation, counts: Counter[str]) -> list[Question]:
        """One question for each third-person pronoun of a text that has right and wrong candidates."""
        sources: Sequence[Source] = SOURCES if self.head_words == "auto" else (self.head_words,)
        found = expressions(text, sources)
        counts[_TEXTS] += 1
        asked = []
        for mention in found:
            if mention.kind != "pronoun" or mention.attributes.person != THIRD:
                continue
            others = [one for one in found if one.kind != "pronoun" and not one.start <= mention.head < one.end]
            candidates = {one.head for one in others}
            answers = {one.head for one in others if one.entity == mention.entity}
            counts[_PRONOUNS] += 1
            counts[_FEW if len(candidates) < 2 else _NONE if not answers else _EVERY if answers == candidates else _SCORED] += 1
            if len(candidates) > 1 and answers and answers != candidates:
                rules = tuple(pick.head in answers for pick in _picks(mention, others))
                labels = (ALL, _gender(mention), *([own_label(text.subset)] if text.subset else []))
                asked.append(Question(number, mention.head, candidates, answers, rules, labels))
        return asked


def _picks(pronoun: Expression, candidates: Sequence[Expression]) -> tuple[Expression, ...]:
    """The candidate that each rule picks: the first of the text, the nearest, and the nearest before the pronoun or, if
    there is none, the nearest after it.
    """
    closest = nearest(pronoun, candidates)
    assert closest is not None
    before = nearest(pronoun, (one for one in candidates if one.head < pronoun.head))
    return candidates[0], closest, before or closest


def _gender(pronoun: Expression) -> str:
    """`feminine`, `masculine` or `neuter`; `plural` for they, which has no gender; `unknown` if
    nothing indicates one.
    """
    if pronoun.attributes.number == PLURAL:
        return "plural"
    return "".join(pronoun.attributes.gender or {"unknown"})
