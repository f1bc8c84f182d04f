"""Sentences that go with numbers: few documents, texts that were cut, and how best heads were chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headscope.core.wording import number_of
from headscope.results.formats import display
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.inference import FEW, FEWEST

MARK = "*"
NOTE = f"{MARK} fewer than {FEW} documents: intervals are wide. Below {FEWEST} documents there is neither interval nor p."


def counted(documents: int | None) -> str:
    """A number of documents as tables show it, with a mark if it is small."""
    return display(documents) if documents is None or documents >= FEW else f"{documents}{MARK}"


def documents_range(documents: Iterable[int | None]) -> str:
    """The range of numbers of documents, as in `; 7* to 30 documents`; empty if they were not counted."""
    counts = sorted({number for number in documents if number is not None})
    if not counts:
        return ""
    ends = " to ".join(dict.fromkeys(counted(number) for number in (counts[0], counts[-1])))
    few = f" ({NOTE})" if counts[0] < FEW else ""
    return f"; {ends} document{'' if counts[-1] == 1 else 's'}{few}"


def note(documents: Iterable[int | None]) -> str:
    """What the mark means, if one of these numbers has it; else empty."""
    return NOTE if any(number is not None and number < FEW for number in documents) else ""


def few_documents(tables: Mapping[str, Table]) -> str:
    """How many of the numbers with an interval are based on few documents; empty if none is."""
    counts = [n for table in tables.values() for n in _documents(table)]
    few, none = (sum(n < limit for n in counts) for limit in (FEW, FEWEST))
    if not few:
        return ""
    without = f" {none:,} are based on fewer than {FEWEST} and have neither interval nor p." if none else ""
    if few == len(counts):
        most = max(counts)
        of = number_of(most, "document") if most == min(counts) else f"{most} documents or fewer"
        without = f" Below {FEWEST} there is neither interval nor p." if none == few else without
        return f"Few documents: all numbers are based on {of}, and may not hold for others.{without}"
    return f"Few documents: {few:,} of {len(counts):,} numbers are based on fewer than {FEW} documents and have wide intervals.{without}"


def _documents(table: Table) -> list[int]:
    if not {"documents", "low"} <= set(table.columns):
        return []
    counts = table["n"] if "n" in table.columns else [None] * len(table)
    return [documents for documents, n in zip(table["documents"], counts, strict=True) if documents is not None and n != 0]


def cut_sentence(results: Results, measure: str) -> str | None:
    """How many texts of a measure were cut, and how many words and mentions were read; None if none was cut."""
    way: dict[str, Any] = next((way for way in results.manifest.get("readings", ()) if measure in way["measures"]), {})
    if not (cut := way.get("cut")):
        return None
    every, verb = number_of(way["texts"], way["unit"]), "was" if way["texts"] == 1 else "were"
    if cut["texts"] < way["texts"]:
        every = f"{cut['texts']:,} of {every}"
    elif way["texts"] > 1:
        every = f"All {every}"
    read = [_of(way["words"], cut["words"], "words")]
    if mentions := way.get("mentions", 0) + cut["mentions"]:
        read.append(_of(way.get("mentions", 0), mentions - way.get("mentions", 0), "mentions"))
    length = results.manifest["settings"]["max_length"]
    return f"{every} {verb} cut at {length:,} tokens: only {' and '.join(read)} were read."


def _of(read: int, lost: int, what: str) -> str:
    return f"{read:,} of {read + lost:,} {what}"


def generated_sentence(manifest: Mapping[str, Any]) -> str | None:
    """A sentence on how the model generated the texts, and where they stopped; None for a run without generation."""
    if (said := manifest.get("generated")) is None:
        return None
    share = said["tokens"] / max(1, said["tokens"] + said["prompt_tokens"])
    stops = {"end": "were ended by the model", "context": "reached the model's longest context"}
    early = [f"{n:,} {stops[stop]}" for stop, n in said["stopped"].items() if n and stop in stops]
    return (
        f"Generated text: the model continued {said['texts']:,} prompts by up to {said['asked']:,} tokens, {said['how']}; {share:.0%} of "
        f"the tokens measured are its own{'; ' + ' and '.join(early) + ' before that' if early else ''}."
    )


def choice_note(results: Results, measure: str) -> str:
    """How the best heads of a measure were chosen, what their intervals cover, and how their scores are biased."""
    options = results.measures[measure]
    if options.get("selection") != "crossfit":
        return (
            "Heads and rules are chosen on the documents they are scored on (selection = in-sample): the scores of the chosen heads are "
            "biased high (selection bias), most for rare labels, and intervals, which hold the choice fixed, do not show it."
        )
    folds = options.get("folds", 2)
    parts = (
        "Each half of the documents scores the head, and the rule, that were best on the other half; two heads are named where the halves "
        "choose differently."
        if folds == 2
        else f"Each of {folds} parts of the documents scores the head, and the rule, that were best on all other parts; where parts choose "
        "differently the heads are named by how many chose them."
    )
    more = " More folds (--folds 5) lower this bias, and make intervals of rare labels too narrow." if folds == 2 else ""
    return (
        f"{parts} The interval is for the heads chosen, not for the best head there is. For rare labels the score is biased low, since a "
        f"choice from few cases often misses the best head.{more}"
    )
