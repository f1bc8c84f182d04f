"""Write the claims of replications into a column of the tables of docs/replication.md, and count their verdicts again.

    headscope replicate westera --out runs/westera
    python docs/tools/replication.py embedded runs/westera
    python docs/tools/replication.py other runs/westera-gum

Rows are found by where the paper says something and what it says; the page has no other rows than these.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import headscope as hs

PAGE = Path(__file__).parents[1] / "replication.md"
COLUMNS = {"embedded": 3, "other": 4}
NAMES = {"embedded": "Embedded", "other": "Other data"}
ORDER = (
    *("same direction", "same order", "in our interval", "outside our interval"),
    *("unclear", "differs", "not tested", "cannot be compared"),
)
DATA, ELSEWHERE, NOTHING = "property of the data", "counted there", "–"
DIVIDER = re.compile(r"(?<!\\)\|")


def cells_of(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in DIVIDER.split(line)[1:-1]]


def row_of(cells: list[str]) -> str:
    """The line of a row."""
    return f"| {' | '.join(cells)} |".replace("|  |", "|  |")


def key_of(row: dict[str, Any]) -> tuple[str, str]:
    """Where a claim is made, and what it says."""
    return row["place"], row["says"] + (f" ({row['unit']})" if row["unit"] else "")


def cell_of(row: dict[str, Any]) -> str:
    """Our number and the verdict; a dash where these data do not have it."""
    ours = row["ours"].replace("|", "\\|")
    lacks = row["value"] is None or row["value"] != row["value"]
    if row["verdict"] == "not done" or (lacks and ours in ("", NOTHING)):
        return NOTHING
    return f"{ours}: *{row['verdict']}*"


def verdict_of(cells: list[str], column: int) -> str | None:
    """The verdict of a cell; None for one that is not counted, since the same number of ours is counted elsewhere."""
    found = re.search(r"\*([^*]+)\*$", cells[column])
    if found is None or ELSEWHERE in cells[-1]:
        return None
    return found.group(1)


def counted(rows: list[list[str]], column: int) -> str:
    """How many claims of a table have which verdict."""
    verdicts = Counter(filter(None, (verdict_of(cells, column) for cells in rows)))
    told = ", ".join(f"{verdicts[name]} {name}" for name in ORDER if verdicts[name])
    return told + (f" (not counted: {verdicts[DATA]} properties of the data)" if verdicts[DATA] else "")


def section(text: str, claims: dict[tuple[str, str], dict[str, Any]], column: int) -> tuple[str, int]:
    """A section of the page with the column made again, and how many of its rows were found."""
    lines, rows, found = text.split("\n"), [], 0
    for number, line in enumerate(lines):
        if not line.startswith("| ") or line.startswith("| where"):
            continue
        cells = cells_of(line)
        if (claim := claims.get((cells[0], cells[1]))) is not None:
            cells[column] = cell_of(claim)
            lines[number] = row_of(cells)
            found += 1
        rows.append(cells)
    if not found:
        return text, 0
    told = ". ".join(f"{NAMES[name]}: {counted(rows, place)}" for name, place in COLUMNS.items()) + "."
    lines = [told if line.startswith("Embedded: ") and "Other data: " in line else line for line in lines]
    return "\n".join(lines), found


def main(which: str, folders: list[str]) -> None:
    """Write the claims of some folders into a column."""
    column = COLUMNS[which]
    for folder in folders:
        claims = {key_of(row): row for row in hs.open_study(folder)["claims"]}
        head, *parts = re.split(r"(?m)^(?=### )", PAGE.read_text(encoding="utf-8"))
        made = [section(part, claims, column) for part in parts]
        PAGE.write_text(head + "".join(text for text, _ in made), encoding="utf-8")
        print(f"{folder}: {sum(found for _, found in made)} of {len(claims)} claims written")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in COLUMNS:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
