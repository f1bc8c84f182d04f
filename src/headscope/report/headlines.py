"""The findings at the start of a report, in plain words: what the most surprising heads do, with their baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headscope.core.wording import number_of
from headscope.report.plain import mentions, percent, percents, relation, rule
from headscope.results.head_labels import readable_labels
from headscope.results.head_types import HALF
from headscope.results.results import Results
from headscope.results.skills import is_significant

MOST = 4
_CONTESTS = 2  # most of these, so that there is room for behaviour that does not depend on the words
# The place that a quantity names, and what is there.
_PLACES = {
    "previous": ("the previous token", "whatever it is"),
    "next": ("the next token", "whatever it is"),
    "self": ("the token itself", "whatever the text is"),
    "to_cls": ("[CLS]", "a marker without meaning at the start of every text"),
    "to_sep": ("[SEP]", "a marker without meaning at the end of every text"),
    "to_first": ("the first token", "whatever it is"),
    "to_punct": ("periods and commas", "which carry little meaning"),
}
_COPIES = {
    "induction": "the token that followed the same token earlier in the text",
    "duplicate": "an earlier copy of the same token",
    "qr": "the passage that answers the question, from the question",
}


@dataclass(frozen=True)
class Headline:
    """A finding: a head, what it does in one sentence, how much, and what the baseline does."""

    head: str
    measure: str
    quantity: str  # as in the tables
    title: str  # a sentence, without the baseline
    rest: str  # the baseline in a sentence
    value: float
    low: float
    high: float
    baseline: float
    rule: str  # the name of the baseline, in a few words
    n: str  # the interval, n and documents of the value
    heads: tuple[str, ...]  # all heads for which the finding holds

    @property
    def effect(self) -> float:
        """How far the value is above its baseline."""
        return self.value - self.baseline


def headlines(results: Results) -> list[Headline]:
    """The findings, the most surprising first: heads that beat the best simple rule, then behaviour that depends on the
    text, then behaviour that does not; within each sort by effect. Every head occurs once.
    """
    by_head: dict[str, Headline] = {}
    beating = sorted(_contests(results), key=lambda headline: -headline.effect)
    plainer = [line for found in (_followers, _place_findings) for line in sorted(found(results), key=lambda headline: -headline.effect)]
    for headline in beating:
        if headline.head not in by_head and len(by_head) < _CONTESTS:
            by_head[headline.head] = headline
    kinds: set[str] = set()
    for headline in plainer:
        if headline.head not in by_head and len(by_head) < MOST and headline.measure not in kinds:
            by_head[headline.head] = headline
            kinds.add(headline.measure)
    for headline in beating:
        if len(by_head) < MOST:
            by_head.setdefault(headline.head, headline)
    return list(by_head.values())


def _contests(results: Results) -> Iterator[Headline]:
    """Findings for labels for which one head, chosen on other documents, does better than the best rule."""
    for measure in (name for name in ("relations", "coreference", "pronouns") if f"{name}_best" in results):
        for row in results[f"{measure}_best"]:
            sure = row["lift"] > 0 if math.isnan(row["lift_low"]) else is_significant(row)
            if row["label"] == "all" or not sure or " | " in row["heads"] or " | " in row["direction"] or not row["heads"]:
                continue
            span = percents(row["low"], row["high"])
            rules = " or ".join(map(rule, row["rule"].split(" | ")))
            which = "the best fixed rule" if measure == "relations" else "the best simple rule"
            yield Headline(
                head=row["heads"],
                measure=measure,
                quantity=_quantity(row),
                title=skill(measure, row),
                rest=f"{which}, {rules}, finds {percent(row['baseline'])}",
                value=row["value"],
                low=row["low"],
                high=row["high"],
                baseline=row["baseline"],
                rule=f"best rule: {rules}",
                n=_counted(span, f"n = {row['n']:,}", _documents(row.get("documents"))),
                heads=(row["heads"],),
            )


def _quantity(row: Mapping[str, Any]) -> str:
    """The name of a label and its direction in the tables of heads."""
    usual = {"dep-to-head", "mention-to-antecedent", "pronoun-to-candidate"}
    return str(row["label"]) if row["direction"] in usual else f"{row['label']} ({row['direction']})"


def skill(measure: str, row: Mapping[str, Any]) -> str:
    """What the best head of a label does, as a sentence without its full stop; `row` is from a table of best heads."""
    names, label, share = row["heads"].replace(" | ", " and "), row["label"], percent(row["value"])
    several = " and " in names
    heads, finds, links = (f"heads {names}", "find", "link") if several else (f"head {names}", "finds", "links")
    if measure == "relations":
        dependents, governor = relation(label)
        if row["direction"] == "head-to-dep":
            wording = f"in {heads}, {share} of {dependents} get more attention from their {governor} than from any other word"
        elif " " in governor:
            wording = f"for {share} of {dependents}, {heads} {finds} the {governor}"
        else:
            wording = f"{heads} {finds} the {governor} of {share} of {dependents}"
    elif measure == "coreference":
        wording = f"{heads} {links} {share} of {mentions(label)} with an earlier mention of the same person or thing"
    else:
        wording = f"{heads} {finds} what {share} of pronouns refer to ({label})"
    return wording[0].upper() + wording[1:]


def _followers(results: Results) -> Iterator[Headline]:
    """Findings for heads that significantly follow repeated tokens, or attend from questions to answers."""
    labels = readable_labels(results) if "sequences" in results or "retrieval" in results else None
    for label in labels.sure if labels is not None else ():
        if label.quantity in _COPIES:
            share = percent(label.value)
            yield Headline(
                head=str(label.head),
                measure=label.type.measure,
                quantity=label.quantity,
                title=f"Head {label.head} gives {share} of its attention to {_COPIES[label.quantity]}",
                rest=f"attention spread evenly would give {percent(label.baseline)}",
                value=label.value,
                low=label.low,
                high=label.high,
                baseline=label.baseline,
                rule="spread evenly",
                n=_counted(percents(label.low, label.high), f"n = {label.n:,}", _documents(label.documents)),
                heads=tuple(str(other.head) for other in labels.sure if other.quantity == label.quantity) if labels is not None else (),
            )


def _place_findings(results: Results) -> Iterator[Headline]:
    """Findings for heads that give more than half of their attention to one place: the strongest head of each place."""
    total = sum(site["heads"] for site in results.manifest["sites"])
    special = results.special_tokens
    for measure in (name for name in ("positions", "tokens") if name in results):
        table = results[measure]
        quantities = dict.fromkeys(row["quantity"] for row in table if row["quantity"] in _PLACES)
        for quantity in (name for name in quantities if name not in special.uncounted):
            rows = sorted(
                (row for row in table if row["quantity"] == quantity and row["n"] and row["value"] > HALF), key=lambda row: -row["value"]
            )
            if not rows:
                continue
            best, (place, wording) = rows[0], _PLACES["to_first" if quantity == "to_cls" and special.first else quantity]
            head, share = results.head_of(best), percent(best["value"])
            alone = quantity in ("previous", "next", "self")
            one = f"Head {head} gives {share} of its attention to {place}, {wording}"
            many = f"{len(rows)} of {total} heads give more than half of their attention to {place}, {wording}"
            yield Headline(
                head=str(head),
                measure=measure,
                quantity=quantity,
                title=results.spelled(one if alone or len(rows) == 1 else many),
                rest=f"attention spread evenly would give {percent(best['baseline'])}",
                value=best["value"],
                low=best["low"],
                high=best["high"],
                baseline=best["baseline"],
                rule="spread evenly",
                n=_counted("" if alone else f"head {head}", percents(best["low"], best["high"]), _documents(best.get("documents"))),
                heads=tuple(str(results.head_of(row)) for row in rows),
            )


def _documents(number: int | None) -> str:
    return "" if number is None else number_of(number, "document")


def _counted(*parts: str) -> str:
    return ", ".join(filter(None, parts))
