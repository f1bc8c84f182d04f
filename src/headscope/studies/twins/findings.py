"""Findings of a comparison of the heads of two models, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headscope.core.heads import HeadId
from headscope.core.wording import number_of
from headscope.results.table import Table, spelled
from headscope.studies.twins.heads import LETTERS, TABLES, Letter, Twins

if TYPE_CHECKING:
    from headscope.results.results import Results


def sentences(results: Results) -> list[str]:
    """What was compared, the distances of heads to twins and to other heads, and which have twins, as sentences."""
    settings = results.manifest["settings"]
    choices = (results.manifest["counts"]["texts"], settings["level"], settings["epsilons"], settings["least"])
    return list(filter(None, _Findings(results, *choices).sentences()))


def of_twins(twins: Twins) -> list[str]:
    """The findings of a comparison in memory."""
    tables = {name: twins.table(name) for name in TABLES}
    return list(filter(None, _Findings(tables, twins.texts, twins.level, twins.epsilons, twins.least).sentences()))


@dataclass
class _Findings:
    """The tables of a study, and other numbers that the sentences need."""

    tables: Mapping[str, Table]
    texts: int
    level: str
    epsilons: Sequence[float]
    least: float

    def __post_init__(self) -> None:
        self.rows = {(row["side"], row["quantity"]): row for row in self.tables["twins_summary"]}
        self.heads = {letter: list(self.tables["twins"].where(side=letter)) for letter in LETTERS}
        self.names = {letter: heads[0]["model"] for letter, heads in self.heads.items()}

    def sentences(self) -> list[str]:
        """All sentences; an empty one if there is nothing to report."""
        of_sides = [line for letter in LETTERS for line in (self.distance(letter), self.close(letter))]
        return [self.opening(), *of_sides, self.mutual(), self.depth(), self.faint()]

    def opening(self) -> str:
        """What was compared."""
        kinds = " and ".join(dict.fromkeys(heads[0]["kind"] for heads in self.heads.values()))
        row = self.rows["both", "all_pairs"]
        documents = number_of(row["documents"], "document")
        return (
            f"{number_of(len(self.heads['a']), 'head')} of {self.names['a']} and {len(self.heads['b'])} of {self.names['b']} are compared: "
            f"{kinds} attention between {self.level}s, {row['n']:,} rows of {number_of(self.texts, 'text')} of {documents}. "
            "Distances are Jensen-Shannon divergences in nats."
        )

    def distance(self, letter: Letter) -> str:
        """The mean distances of the heads of a model to their twins, and to other heads."""
        model, other = self._pair(letter)
        wording = f"A head of {model} is {spelled(self.rows[letter, 'twin'])} from its twin in {other}, on average"
        more, nearer = [], ""
        if (letter, "own") in self.rows:
            more.append(f"{spelled(self.rows[letter, 'own'])} from its nearest neighbour in {model}")
        if (letter, "untrained") in self.rows:
            more.append(f"{spelled(self.rows[letter, 'untrained'])} from the nearest head of an untrained {other}")
            nearer = f" For {percent(self.rows[letter, 'nearer_than_untrained'])} of its heads the twin is nearer than that."
        return f"{wording}{', ' if len(more) == 2 else ' and ' if more else ''}{' and '.join(more)}.{nearer}"

    def close(self, letter: Letter) -> str:
        """The share of heads of a model that have a twin closer than each epsilon."""
        model, other = self._pair(letter)
        shares = []
        for epsilon in self.epsilons:
            beside = [
                f"{name} {percent(self.rows[key])}"
                for name, key in ((model, (letter, f"own_{epsilon:g}")), (f"untrained {other}", (letter, f"untrained_{epsilon:g}")))
                if key in self.rows
            ]
            within = percent(self.rows[letter, f"twin_{epsilon:g}"])
            shares.append(f"{within} at a distance below {epsilon:g}" + (f" ({', '.join(beside)})" if beside else ""))
        return f"Share of heads of {model} with a twin in {other}: {', '.join(shares)}." if shares else ""

    def mutual(self) -> str:
        """How many heads are each other's twins, and the closest of them."""
        pairs = mutual_rows(self.tables["twins"])
        closest_pairs = ", ".join(f"{head_of(row)} and {row['twin']} ({row['distance']:.3f})" for row in pairs[:5])
        closest = f"; the closest are {closest_pairs}" if len(pairs) > 1 else f": {closest_pairs}" if pairs else ""
        return f"{number_of(len(pairs), 'pair')} of mutual twins{closest}."

    def depth(self) -> str:
        """Whether twins are at similar depths."""
        rows = {letter: self.rows[letter, "depth"] for letter in LETTERS if (letter, "depth") in self.rows}
        correlations = [f"{spelled(row)} for heads of {self.names[letter]}" for letter, row in rows.items()]
        return f"The depth of a head correlates with the depth of its twin: {' and '.join(correlations)}." if correlations else ""

    def faint(self) -> str:
        """How many heads give little attention to words."""
        counts = {letter: sum(row["faint"] for row in heads) for letter, heads in self.heads.items()}
        wording = " and ".join(f"{count} of {self.names[letter]}" for letter, count in counts.items() if count)
        return (
            f"Faint: {wording} give less than {self.least:.0%} of their attention to words; only this part is compared." if wording else ""
        )

    def _pair(self, letter: Letter) -> tuple[str, str]:
        """The names of a model and of the other model."""
        return self.names[letter], self.names["b" if letter == "a" else "a"]


def mutual_rows(table: Table) -> list[dict[str, Any]]:
    """The rows of the heads of `a` that are their twin's twin, the closest first, of the table `twins`."""
    return sorted((row for row in table.where(side="a") if row["mutual"]), key=lambda row: float(row["distance"]))


def head_of(row: Mapping[str, Any]) -> HeadId:
    """The head of a row of the table `twins`."""
    return HeadId.of_row(row, bare=True)


def percent(row: Mapping[str, Any]) -> str:
    """A share of heads, as in `42 % [40 44]`."""
    bounds = "" if math.isnan(row["low"]) else f" [{100 * row['low']:.0f} {100 * row['high']:.0f}]"
    return f"{100 * row['value']:.0f} %{bounds}"
