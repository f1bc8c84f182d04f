"""What a run says of sinks, in sentences with numbers, intervals and baselines."""

from __future__ import annotations

from typing import Any

from headscope.core.heads import HeadId
from headscope.results.results import Results
from headscope.results.table import interval

_PLACES = {"at_first": "the first token", "at_sep": "[SEP]", "at_punct": "a period or a comma", "at_other": "another token"}


def sink_sentences(results: Results) -> list[str]:
    """Where heads rest, and how much the first token gets."""
    if "sinks_model" not in results:
        return []
    lines = []
    options = results.measures["sinks"]
    for kind in dict.fromkeys(results["sinks_model"]["kind"]):
        rows = {row["quantity"]: row for row in results["sinks_model"].where(kind=kind) if row["n"]}
        resting = [f"{_PLACES[name]} in {_percent(rows[name])}" for name in _PLACES if name in rows and rows[name]["value"] >= 0.005]
        even = sum(rows[name]["baseline"] for name in _PLACES if name in rows)
        if resting:
            lines.append(
                f"Heads have a sink, a token that receives more than {options['threshold']:g} of their attention: "
                f"{', '.join(resting)} of heads and texts (even attention: {even:.0%} in all)."
            )
        if "to_first" in rows:
            strongest = max(results["sinks"].where(kind=kind, quantity="to_first"), key=lambda row: row["value"])
            layer = max(results["sinks_layers"].where(kind=kind, quantity="to_first"), key=lambda row: row["value"])
            lines.append(
                f"The first token receives {_score(rows['to_first'])} of the attention of the tokens after it (even attention: "
                f"{rows['to_first']['baseline']:.2f}), most in layer {layer['layer']}, {_score(layer)}; head {_name(strongest)} gives it "
                f"{_score(strongest)}."
            )
        if "sink_first" in rows:
            lines.append(
                f"In the first {options['tokens']} tokens of a text, the first one receives more than {options['threshold']:g} of the "
                f"attention in {_percent(rows['sink_first'])} of heads and texts (even attention: {rows['sink_first']['baseline']:.0%})."
            )
    return lines


def _score(row: dict[str, Any]) -> str:
    return interval(row["value"], row["low"], row["high"])


def _percent(row: dict[str, Any]) -> str:
    if row["low"] != row["low"]:
        return f"{row['value']:.0%}"
    return f"{row['value']:.0%} [{row['low']:.0%} {row['high']:.0%}]"


def _name(row: dict[str, Any]) -> str:
    return str(HeadId(row["kind"], row["layer"] - 1, row["head"] - 1))
