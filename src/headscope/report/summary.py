"""The findings of a run in plain sentences, for the start of a report."""

from __future__ import annotations

import math
from typing import Any

from headscope.comparison.alike import STRUCTURE, layers_sentence, twins_sentence
from headscope.core.wording import number_of
from headscope.report.headlines import skill
from headscope.report.patterns import retrieval_sentences, sequence_sentences, sink_sentences
from headscope.results.head_types import HALF
from headscope.results.notes import cut_sentence
from headscope.results.results import Results
from headscope.results.skills import is_significant
from headscope.results.table import interval
from headscope.views.words import whose

_HABITS = {
    "previous": "the previous token",
    "next": "the next token",
    "self": "the token itself",
    "to_cls": "the opening token, [CLS]",
    "to_first": "the first token",
    "to_sep": "[SEP]",
    "to_punct": "periods and commas",
}
_ASKED = {
    "relations": ("relation", "the governor of a word", "a fixed offset"),
    "coreference": ("kind of mention", "an antecedent of a mention", "a simple rule"),
    "pronouns": ("kind of pronoun", "what a pronoun refers to", "a simple rule"),
}


def sentences(results: Results) -> list[str]:
    """The findings, most general first, of what was measured."""
    contests = (line for measure in _ASKED for line in _skills(results, measure))
    patterns = (line for of in (sink_sentences, sequence_sentences, retrieval_sentences) for line in of(results))
    lines = [*_place_findings(results), *_focus(results), *patterns, *contests, *_alike(results)]
    lines = list(map(results.spelled, lines)) or ["This run has no finding that fits into a sentence: see the tables."]
    return [*whose(results), *lines]


def _place_findings(results: Results) -> list[str]:
    """Which heads give more than half of their attention to one thing, as sentences."""
    total = sum(site["heads"] for site in results.manifest["sites"])
    habits = []
    asked = []
    known = _HABITS.keys() - results.special_tokens.uncounted
    for measure in ("positions", "tokens"):
        if measure not in results:
            continue
        for quantity in (quantity for quantity in dict.fromkeys(results[measure]["quantity"]) if quantity in known):
            counted = [row for row in results[measure].where(quantity=quantity) if row["n"]]
            rows = sorted((row for row in counted if row["value"] > HALF), key=lambda row: -row["value"])
            asked += [_HABITS[quantity]] if counted else []
            if rows:
                habits.append((len(rows), _HABITS[quantity], rows))
    if not habits and asked:
        return [f"None of {total} heads gives more than half of its attention to {_either(asked)}."]
    habits.sort(key=lambda item: -item[0])
    return [
        f"{number} of {total} heads {'gives' if number == 1 else 'give'} more than half of {'its' if number == 1 else 'their'} attention "
        f"to {what}: {_listed(results, rows)}."
        for number, what, rows in habits
    ]


def _focus(results: Results) -> list[str]:
    if "entropy_layers" not in results or results.measures["entropy"].get("base") != "nats":
        return []
    lines = []
    table = results["entropy_layers"].where(quantity="entropy")
    kinds = dict.fromkeys(table["kind"])
    for kind in kinds:
        rows = [row for row in table.where(kind=kind) if row["n"]]
        if len(rows) > 1:
            broad, narrow = max(rows, key=_value), min(rows, key=_value)
            what = "Attention" if len(kinds) == 1 else f"{kind.capitalize()} attention"
            if f"{broad['value']:.2f}" == f"{narrow['value']:.2f}":
                lines.append(f"{what} is equally broad in all layers (entropy {_nats(broad)}; even attention: {broad['baseline']:.2f}).")
                continue
            lines.append(
                f"{what} is broadest in layer {broad['layer']} (entropy {_nats(broad)}) and most focused in layer {narrow['layer']} "
                f"({_nats(narrow)}); even attention would have {broad['baseline']:.2f} nats."
            )
    return lines


def _skills(results: Results, measure: str) -> list[str]:
    """How many labels have a head that significantly beats the rule, and which do best, as sentences."""
    if f"{measure}_best" not in results:
        return []
    label, asked, rule = _ASKED[measure]
    lines = []
    for kind in dict.fromkeys(results[f"{measure}_best"]["kind"]):
        rows = [row for row in results[f"{measure}_best"].where(kind=kind) if row["label"] != "all" and not math.isnan(row["value"])]
        if not rows:
            continue
        unsure = all(math.isnan(row["lift_low"]) for row in rows)
        sure = [row for row in rows if (row["lift"] > 0 if unsure else is_significant(row))]
        chosen = "chosen on other documents" if results.measures[measure].get("selection") == "crossfit" else "chosen on the same documents"
        best = sorted(sure, key=lambda row: -row["lift"])[:3]
        wording = "".join(f" {skill(measure, row)} ({row['label']}: {_score(row)})." for row in best)
        kinds = "" if results.layout.one_kind else f" ({kind} attention)"
        more = f"more often than {rule} (not tested, because the run has no intervals)"
        if not unsure:
            more = f"significantly more often than {rule} (the 95 % interval of the difference excludes 0)"
        finds = f"a single head, {chosen}, finds" if sure else f"does a single head, {chosen}, find"
        lost = cut_sentence(results, measure)
        lines.append(
            f"For {len(sure) or 'none'} of {_count(len(rows), label)}{kinds} {finds} {asked} {more}."
            f"{wording}{'' if lost is None else f' {lost}'}"
        )
    return lines


def _alike(results: Results) -> list[str]:
    """How the similarity of heads depends on layers, and how many heads have a near-duplicate, as sentences."""
    if STRUCTURE not in results:
        return []
    kinds = list(dict.fromkeys(results[STRUCTURE]["kind"]))
    lines = [(kind, line) for kind in kinds for line in (layers_sentence(results, kind), twins_sentence(results, kind)) if line]
    return [line if len(kinds) == 1 else f"{kind.capitalize()} attention: {line}" for kind, line in lines]


def _either(things: list[str]) -> str:
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} or {things[-1]}"


def _score(row: dict[str, Any]) -> str:
    return f"{interval(row['value'], row['low'], row['high'])}, the rule {row['baseline']:.2f}"


def _nats(row: dict[str, Any]) -> str:
    tokens = round(math.exp(row["value"]))
    return f"{row['value']:.2f} nats, effectively {number_of(tokens, 'token')}"


def _value(row: dict[str, Any]) -> float:
    return float(row["value"])


def _count(number: int, what: str) -> str:
    plural = what if number == 1 else what.replace("kind", "kinds") if " of " in what else f"{what}s"
    return f"{number} {plural}"


def _listed(results: Results, rows: list[dict[str, Any]], most: int = 8) -> str:
    names = [f"{results.head_of(row)} ({row['value']:.2f})" for row in rows[:most]]
    return ", ".join(names) + (f" and {len(rows) - most} more" if len(rows) > most else "")
