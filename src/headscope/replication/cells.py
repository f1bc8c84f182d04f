"""Claims and our numbers as cells and rows of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headscope.replication.numbers import Number
from headscope.replication.recipe import Claim
from headscope.replication.verdicts import Outcome


def published(claim: Claim) -> str:
    """What the paper has, as a cell."""
    if claim.items:
        text = " < ".join(f"{item.name} {item.published:g}" for item in sorted(claim.items, key=lambda item: item.published))
    elif isinstance(claim.published, tuple):
        text = (
            f"by layer, highest in {int(np.argmax(claim.published)) + 1}"
            if claim.expect == "curve"
            else " ".join(map(_plain, claim.published))
        )
    else:
        text = "" if claim.published is None else _plain(claim.published)
        text += f" ({claim.named})" if claim.named else ""
        text += f", baseline {_plain(claim.baseline)}" if claim.baseline is not None else ""
    told = {"by eye": "read off by eye", "recalled": "from memory, not checked", "recomputed": "worked out from the notebook's scores"}
    told |= {"notebook": "notebook", "results": "result file"}
    notes = [note for note in (claim.remark, told.get(claim.source, "")) if note]
    return f"{text} [{'; '.join(notes)}]" if text and notes else text or "; ".join(notes) or "–"


def ours(outcome: Outcome, claim: Claim) -> str:
    """What we have, as a cell."""
    number = outcome.ours
    if number is None:
        return "–"
    label = {"curve": "ρ ", "correlation": "r ", "order": "τ "}.get(claim.expect if not claim.items else "order", "")
    text = label + _short(number.value)
    text += f" [{_short(number.low)} {_short(number.high)}]" if not math.isnan(number.low) else ""
    text += f" ({number.named})" if number.named else ""
    text += f", baseline {_short(number.baseline)}" if not math.isnan(number.baseline) else ""
    text += f" ({number.tested})" if number.tested else ""
    return f"{text}: {outcome.told}" if outcome.told else text


def _plain(value: float) -> str:
    return f"{value:g}"


def _short(value: float) -> str:
    """A number to three places that count, and no more digits after the point than help."""
    if not math.isfinite(value) or value.is_integer():
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"


def counted(claim: Claim) -> str:
    """What n counts."""
    names = {"curve": "layers", "correlation": "heads"}
    return "numbers in order" if claim.items else names.get(claim.expect) or (claim.where.n_counts if claim.where is not None else "")


def row(claim: Claim, outcome: Outcome, differs: str, repeats: str = "") -> dict[str, Any]:
    """A row of the table of claims. `repeats` is the claim that the same number of ours belongs to, and that counts
    instead.
    """
    number = outcome.ours or Number(math.nan)
    single = claim.published if isinstance(claim.published, float) else None
    return {
        **{"id": claim.id, "place": claim.place, "says": claim.says, "unit": claim.unit},
        **{"published": published(claim), "ours": ours(outcome, claim), "verdict": outcome.verdict},
        **{"why": "; ".join(filter(None, [outcome.why, f"our number is that of {repeats}, and counted there" if repeats else ""]))},
        **{"differs": differs, "source": claim.source, "expect": claim.expect, "published_value": single},
        **{"value": number.value, "low": number.low, "high": number.high, "n": number.n, "documents": number.documents},
        **{"n_counts": counted(claim) if number.n is not None else "", "repeats": repeats},
        "step": ", ".join(dict.fromkeys(place.step for place in claim.places)),
    }
