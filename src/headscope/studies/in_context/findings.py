"""Findings of a study of in-context learning, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headscope.results.table import interval

if TYPE_CHECKING:
    from headscope.results.results import Results

LISTED = 5
_LEARNING = {
    "copy_drop": "the loss drops from the first to the second copy by",
    "icl_score": "the loss changes from early to late in the context by",
}


def sentences(results: Results) -> list[str]:
    """What the model gains from its context, which heads were chosen, and what it gains without them, as sentences."""
    measured = results.measures["in_context"]
    summary = {(row["quantity"], row["off"], row["heads"]): row for row in results["summary"]}
    shown = [quantity for quantity in _LEARNING if (quantity, "none", 0) in summary]
    lines = [_whole(quantity, summary, measured["places"]) for quantity in shown]
    return lines + [_without(shown[0], number, results, summary, measured["by"]) for number in measured["heads"]]


def _whole(quantity: str, summary: dict[tuple[str, str, int], dict[str, Any]], places: dict[str, Any]) -> str:
    sides = ("first_copy", "second_copy") if quantity == "copy_drop" else ("early", "late")
    before, after, change = (_score(summary[name, "none", 0]) for name in (*sides, quantity))
    if quantity == "copy_drop":
        return f"The loss is {before} nats per token in the first copy of a sequence and {after} in the second: it drops by {change}."
    (first, end), (begin, stop) = places["early"], places["late"]
    return (
        f"The loss is {before} nats at tokens {first} to {end - 1} and {after} at tokens {begin} to {stop - 1} of a context of "
        f"{places['context']}: an in-context-learning score of {change}."
    )


def _without(quantity: str, number: int, results: Results, summary: dict[tuple[str, str, int], dict[str, Any]], by: str) -> str:
    heads = list(results["in_context_heads"])[:number]
    listed = ", ".join(f"{results.head_of(row)} ({row['value']:.2f})" for row in heads[:LISTED])
    more = f" and {number - LISTED} more" if number > LISTED else ""
    strongest, random = (summary[quantity, off, number] for off in ("strongest", "random"))
    draws = [row["difference"] for row in results["in_context_draws"].where(quantity=quantity, heads=number)]
    effect = next(iter(results["in_context_effects"].where(quantity=quantity, heads=number, effect="strongest minus random")))
    score = by.replace("_", " ")
    which = f"the {number} strongest heads" if number > 1 else "the strongest head"
    others = f"{number} random heads of the same layers" if number > 1 else "a random head of the same layer"
    return (
        f"Without {which} by {score} ({listed}{more}), chosen on other texts, {_LEARNING[quantity]} {_score(strongest)}; without {others} "
        f"by {_score(random)} ({len(draws)} draws, with changes of {min(draws):+.2f} to {max(draws):+.2f}). The difference between the two "
        f"is {_score({**effect, 'value': effect['difference']})} nats per token."
    )


def _score(row: dict[str, Any]) -> str:
    return interval(row["value"], row["low"], row["high"])
