"""How exact the flow of a study is: what was worked out exactly, what was sketched, and with which error."""

from __future__ import annotations

import numpy as np

from headscope.encoding.texts import Encoded
from headscope.models.jacobian.flow import Flow
from headscope.results.columns import Kept
from headscope.results.table import Table
from headscope.studies.flow.comparisons import table

COLUMNS = ("measure", "layer", "method", "relative_error", "texts")


class Precision:
    """The mean over a text's entries of standard error / value, layer by layer; 0 of what is exact."""

    def __init__(self, kept: Kept | None = None) -> None:
        self.kept = kept or Kept()

    def observe(self, text: Encoded, flow: Flow) -> None:
        """Take in the flow of a text."""
        for name, values in flow.values.items():
            errors = flow.errors[name]
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.zeros_like(values) if errors is None else np.where(values > 0, errors / values, np.nan)
            self.kept.add(f"errors/{name}", np.nanmean(shares, (1, 2))[None])
        self.kept.say("note", flow.notes)

    def tables(self) -> dict[str, Table]:
        """`precision`: every measure and layer."""
        rows = []
        for name in self.kept.under("errors/"):
            errors = self.kept.numbers(f"errors/{name}")
            for layer, error in enumerate(np.nanmean(errors, 0).tolist(), 1):
                method = "sketch" if errors.any() else "exact"
                rows.append({"measure": name, "layer": layer, "method": method, "relative_error": error, "texts": len(errors)})
        return {"precision": table(rows, COLUMNS)}

    def notes(self) -> list[str]:
        """What there is to say about how it was worked out, each once."""
        return list(dict.fromkeys(self.kept.words("note")))
