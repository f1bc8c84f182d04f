"""What is said of numbers that rest on few documents: a mark beside their number, and a sentence for a whole run or
study.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headscope.results.table import Table, display
from headscope.stats.inference import FEW, FEWEST

MARK = "*"
NOTE = f"{MARK} fewer than {FEW} documents: intervals are wide. Below {FEWEST} documents there is neither interval nor p."


def counted(documents: int | None) -> str:
    """A number of documents as tables show it, with a mark where it is small."""
    return display(documents) if documents is None or documents >= FEW else f"{documents}{MARK}"


def documents_range(documents: Iterable[int | None]) -> str:
    """`; 7* to 30 documents`, where they were counted."""
    given = sorted({number for number in documents if number is not None})
    if not given:
        return ""
    ends = " to ".join(dict.fromkeys(counted(number) for number in (given[0], given[-1])))
    few = f" ({NOTE})" if given[0] < FEW else ""
    return f"; {ends} document{'' if given[-1] == 1 else 's'}{few}"


def note(documents: Iterable[int | None]) -> str:
    """What the mark means, if one of these numbers has it; else nothing."""
    return NOTE if any(number is not None and number < FEW for number in documents) else ""


def few_documents(tables: Mapping[str, Table]) -> str:
    """How many of the numbers with an interval rest on few documents; nothing if none does."""
    given = [n for table in tables.values() for n in _documents(table)]
    few, none = (sum(n < limit for n in given) for limit in (FEW, FEWEST))
    if not few:
        return ""
    without = f" {none:,} rest on fewer than {FEWEST} and have neither interval nor p." if none else ""
    if few == len(given):
        most = max(given)
        of = f"{most} document{'s' * (most != 1)}" if most == min(given) else f"{most} documents or fewer"
        without = f" Below {FEWEST} there is neither interval nor p." if none == few else without
        return f"Few documents: all numbers rest on {of}. What holds for so few may not hold for others.{without}"
    return f"Few documents: {few:,} of {len(given):,} numbers rest on fewer than {FEW} documents and have wide intervals.{without}"


def _documents(table: Table) -> list[int]:
    """The documents of all rows that could have an interval and that count something."""
    if not {"documents", "low"} <= set(table.columns):
        return []
    counts = table["n"] if "n" in table.columns else [None] * len(table)
    return [documents for documents, n in zip(table["documents"], counts, strict=True) if documents is not None and n != 0]
