"""Findings on sinks, sequence heads and retrieval heads, as sentences with numbers, intervals and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.results.head_labels import readable_labels
from headscope.results.head_types import CLEARLY, TYPES
from headscope.results.results import Results
from headscope.results.table import interval

_PLACES = {"at_first": "the first token", "at_sep": "[SEP]", "at_punct": "a period or a comma", "at_other": "another token"}

_SEQUENCES = {
    "induction": ("Induction", "the token after an earlier copy of the token"),
    "duplicate": ("Duplicate tokens", "an earlier copy of the token"),
    "previous_token": ("Previous token", "the token before"),
    "name_induction": ("Rare names", "the token after an earlier copy of the name"),
}
_NAMED = 5  # heads


def sequence_sentences(results: Results) -> list[str]:
    """Which heads follow repeated tokens, compared with even attention and shuffled texts, as sentences."""
    labels = readable_labels(results) if "sequences" in results else None
    if labels is None:
        return []
    named_heads = {(label.quantity, label.head) for label in labels.labels if label.type.measure == "sequences"}
    typed = {quantity for type in TYPES if type.measure == "sequences" for quantity in type.words}
    lines = []
    for kind in dict.fromkeys(results["sequences"]["kind"]):
        table = results["sequences"].where(kind=kind)
        for quantity, (name, target) in _SEQUENCES.items():
            rows = sorted((row for row in table.where(quantity=quantity) if row["n"]), key=lambda row: -row["value"])
            if not rows:
                continue
            shuffled = [row["value"] for row in table.where(quantity=f"{quantity}_shuffled") if row["n"]]
            beside = f"even attention: {rows[0]['baseline']:.2f}"
            beside += f"; at most {max(shuffled):.2f} with the words of each text shuffled" if shuffled else ""
            clear = [row for row in rows if (quantity, results.head_of(row)) in named_heads or (quantity not in typed and _clearly(row))]
            named = ", ".join(f"{results.head_of(row)} ({_score(row)})" for row in (clear or rows)[: _NAMED if clear else 1])
            more = f" and {len(clear) - _NAMED} more" if len(clear) > _NAMED else ""
            attend = "attends" if len(clear) == 1 else "attend"
            lines.append(
                f"{name}: {len(clear)} of {len(rows)} heads {attend} to {target}: {named}{more} ({beside})."
                if clear
                else f"{name}: no head significantly attends to {target}; the highest is {named} ({beside})."
            )
    return lines


def _clearly(row: Mapping[str, Any]) -> bool:
    """Whether a score that defines no type of head is significantly above its baseline, and by more than `CLEARLY`."""
    return bool(row["low"] > row["baseline"] and row["value"] - row["baseline"] > CLEARLY)


def retrieval_sentences(results: Results) -> list[str]:
    """Which heads attend from a question to the passage that answers it, compared with even attention and another
    passage.
    """
    labels = readable_labels(results) if "retrieval" in results else None
    if labels is None:
        return []
    named_heads = {label.head for label in labels.labels if label.type.measure == "retrieval"}
    lines = []
    what = "from the question to the passage that answers it"
    for kind in dict.fromkeys(results["retrieval"]["kind"]):
        table = results["retrieval"].where(kind=kind)
        rows = sorted((row for row in table.where(quantity="qr") if row["n"]), key=lambda row: -row["value"])
        if not rows:
            continue
        other = {results.head_of(row): row["value"] for row in table.where(quantity="qr_other") if row["n"]}
        clear = [row for row in rows if results.head_of(row) in named_heads]
        named = []
        for row in (clear or rows)[: _NAMED if clear else 1]:
            head = results.head_of(row)
            named.append(f"{head} ({_score(row)}" + (f", to another passage {other[head]:.2f})" if head in other else ")"))
        more = f" and {len(clear) - _NAMED} more" if len(clear) > _NAMED else ""
        attend = f"{len(clear)} of {len(rows)} heads {'attends' if len(clear) == 1 else 'attend'} {what}: {', '.join(named)}{more}"
        none = f"no head significantly attends {what}; the highest is {named[0]}"
        lines.append(f"Retrieval: {attend if clear else none} (even attention: {rows[0]['baseline']:.2f}).")
    return lines


def sink_sentences(results: Results) -> list[str]:
    """Where heads rest, and how much attention the first token receives, as sentences."""
    if "sinks_model" not in results:
        return []
    lines = []
    options = results.measures["sinks"]
    for kind in dict.fromkeys(results["sinks_model"]["kind"]):
        rows = {row["quantity"]: row for row in results["sinks_model"].where(kind=kind) if row["n"]}
        idle = [f"{_PLACES[name]} in {_percent(rows[name])}" for name in _PLACES if name in rows and rows[name]["value"] >= 0.005]
        even = sum(rows[name]["baseline"] for name in _PLACES if name in rows)
        if idle:
            lines.append(
                f"Heads have a sink, a token that receives more than {options['threshold']:g} of their attention: "
                f"{', '.join(idle)} of heads and texts (even attention: {even:.0%} in all)."
            )
        if "to_first" in rows:
            strongest = max(results["sinks"].where(kind=kind, quantity="to_first"), key=lambda row: row["value"])
            layer = max(results["sinks_layers"].where(kind=kind, quantity="to_first"), key=lambda row: row["value"])
            lines.append(
                f"The first token receives {_score(rows['to_first'])} of the attention of the tokens after it (even attention: "
                f"{rows['to_first']['baseline']:.2f}), most in layer {layer['layer']}, {_score(layer)}; "
                f"head {results.head_of(strongest)} gives it {_score(strongest)}."
            )
        if "sink_first" in rows:
            lines.append(
                f"In the first {options['tokens']} tokens of a text, the first one receives more than {options['threshold']:g} of the "
                f"attention in {_percent(rows['sink_first'])} of heads and texts (even attention: {rows['sink_first']['baseline']:.0%})."
            )
        if "value_norm" in rows:
            smallest = min(results["sinks"].where(kind=kind, quantity="value_norm"), key=lambda row: row["value"])
            lines.append(
                f"The value vector of the token that receives most attention is {_score(rows['value_norm'])} times as large as the mean "
                f"over the text; the smallest ratio is {_score(smallest)}, of head {results.head_of(smallest)}."
            )
    return lines


def _score(row: dict[str, Any]) -> str:
    return interval(row["value"], row["low"], row["high"])


def _percent(row: dict[str, Any]) -> str:
    if row["low"] != row["low"]:
        return f"{row['value']:.0%}"
    return f"{row['value']:.0%} [{row['low']:.0%} {row['high']:.0%}]"
