"""`headscope twins`: whether the heads of one model have twins in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.study import StudyCommand

if TYPE_CHECKING:
    from headscope.results.results import Results

Option = typer.Option


class TwinsCommand(StudyCommand):
    """The command of the study: `--epsilon` may be repeated, and the closest pairs of heads are printed."""

    def options(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Those of the settings, and how many pairs are printed."""
        field = self._study.spec.model_fields["epsilons"]
        usual = ", ".join(map(str, field.default))
        epsilon = Option("--epsilon", help=f"{field.description}; may be repeated [default: {usual}]")
        for name, made in super().options():
            yield name, made if name != "epsilons" else {"annotation": Annotated[list[float] | None, epsilon], "default": None}
        pairs = Option(help="print so many of the closest pairs of twins", min=1)
        yield "pairs", {"annotation": Annotated[int, pairs], "default": 10}

    def call(self, *, pairs: int = 10, **given: Any) -> Results:
        """Compare, and print what was found and the closest pairs."""
        results = super().call(**given)
        if not given["quiet"]:
            _print_pairs(results, pairs)
        return results


def _print_pairs(results: Results, count: int) -> None:
    """The closest pairs of heads that are each other's twins."""
    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table, columns_of
    from headscope.studies.twins.findings import mutual_rows

    table = results["twins"]
    rows = mutual_rows(table)[:count]
    if rows:
        names = [next(iter(table.where(side=side)))["model"] for side in ("a", "b")]
        columns = {
            names[0]: [f"{row['layer']}-{row['head']}" for row in rows],
            names[1]: [row["twin"] for row in rows],
            **columns_of(rows, ("distance", "low", "high", "support", "own_distance", "words")),
        }
        print_table(Table.of(columns), f"\nthe {len(rows)} closest pairs of each other's twins")
