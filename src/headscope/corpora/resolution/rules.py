"""The baselines of Clark et al.'s Table 2: which of the mentions before it a rule takes for the antecedent of a
mention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headscope.corpora.resolution.attributes import compatible
from headscope.corpora.resolution.expressions import Expression

Sieve = Callable[[Expression, Expression], bool]


def same_wording(mention: Expression, candidate: Expression) -> bool:
    """Word for word the same, whatever the case."""
    return mention.wording == candidate.wording


def same_head(mention: Expression, candidate: Expression) -> bool:
    """The same head word, whatever the case."""
    return mention.head_form == candidate.head_form


def agrees(mention: Expression, candidate: Expression) -> bool:
    """Number, gender and person do not contradict each other."""
    return compatible(mention.attributes, candidate.attributes)


def anything(mention: Expression, candidate: Expression) -> bool:
    """Any mention will do."""
    return True


SIEVES: tuple[Sieve, ...] = (same_wording, same_head, agrees, anything)


def nearest(mention: Expression, candidates: Iterable[Expression]) -> Expression | None:
    """The candidate whose head word is nearest; of two equally near, the one that starts later."""
    return min(candidates, key=lambda one: (abs(one.head - mention.head), -one.start, -one.end), default=None)


def head_match(mention: Expression, candidates: Sequence[Expression], fallback: bool = False) -> Expression | None:
    """The nearest candidate with the same head word; without one none, or with `fallback` the nearest of all."""
    found = nearest(mention, (one for one in candidates if same_head(mention, one)))
    return nearest(mention, candidates) if found is None and fallback else found


def sieve(mention: Expression, candidates: Sequence[Expression], sieves: Iterable[Sieve] = SIEVES) -> Expression | None:
    """The nearest candidate that passes the first sieve which any of them passes."""
    for passes in sieves:
        found = nearest(mention, (one for one in candidates if passes(mention, one)))
        if found is not None:
            return found
    return None
