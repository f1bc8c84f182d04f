"""Coreference scores of one document as numerators and denominators, which add up over documents.

Definitions as in the reference scorer (Pradhan et al. 2014, https://aclanthology.org/P14-2006). The first annotation
is taken as the key: `recalled / first` is recall, `precise / second` is precision. MUC and links come out the same
with and without singletons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from headscope.core.document import Mention
from headscope.corpora.agreement.assignment import best_total

Span = tuple[int, int, int]
Entity = frozenset[Span]


class CoreferenceParts(NamedTuple):
    """What recall and precision are made of."""

    recalled: float
    first: float
    precise: float
    second: float


def entities(mentions: Sequence[Mention], singletons: bool = True) -> list[Entity]:
    """The entities as sets of spans (start, end, 0); without `singletons`, those with two mentions or more.

    A span that two entities share is (start, end, 1) for the second, the one that is mentioned first in the text
    coming first.
    """
    opening: dict[str, tuple[int, int]] = {}
    for mention in mentions:
        span = (mention.start, mention.end)
        opening[mention.entity] = min(opening.get(mention.entity, span), span)
    seen: Counter[tuple[int, int]] = Counter()
    found: dict[str, set[Span]] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.start, mention.end, opening[mention.entity])):
        found.setdefault(mention.entity, set()).add((mention.start, mention.end, seen[mention.start, mention.end]))
        seen[mention.start, mention.end] += 1
    return [frozenset(spans) for spans in found.values() if singletons or len(spans) > 1]


def muc(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Links that keep entities together (Vilain et al. 1995): of the size - 1 that one needs, those left when the
    other cuts it up.
    """
    return CoreferenceParts(*_kept_links(first, second), *_kept_links(second, first))


def b_cubed(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Mentions (Bagga and Baldwin 1998): the share of a mention's entity that the other annotation's entity of it
    holds.
    """
    overlaps = _overlaps(first, second)
    return CoreferenceParts(
        sum(n * n / len(first[i]) for (i, _), n in overlaps.items()),
        sum(map(len, first)),
        sum(n * n / len(second[j]) for (_, j), n in overlaps.items()),
        sum(map(len, second)),
    )


def ceaf(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Entities (CEAF, Luo 2005): Dice overlaps (similarity phi 4), summed over the best one-to-one matching."""
    similarity = {(i, j): 2 * n / (len(first[i]) + len(second[j])) for (i, j), n in _overlaps(first, second).items()}
    total = best_total(similarity)
    return CoreferenceParts(total, len(first), total, len(second))


def links(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Pairs of mentions of one entity, and how many of them are pairs in both."""
    common = sum(map(_pairs, _overlaps(first, second).values()))
    return CoreferenceParts(common, sum(_pairs(len(entity)) for entity in first), common, sum(_pairs(len(entity)) for entity in second))


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _kept_links(whole: Sequence[Entity], cut: Sequence[Entity]) -> tuple[int, int]:
    """Links left of the entities in `whole`, and all that they have. A mention that `cut` lacks is a piece by
    itself.
    """
    needed = sum(len(entity) - 1 for entity in whole)
    return sum(n - 1 for n in _overlaps(whole, cut).values()), needed


def _overlaps(first: Sequence[Entity], second: Sequence[Entity]) -> Counter[tuple[int, int]]:
    """How many mentions the entities i of `first` and j of `second` share, where they share any."""
    place = {span: j for j, entity in enumerate(second) for span in entity}
    return Counter((i, place[span]) for i, entity in enumerate(first) for span in entity if span in place)
