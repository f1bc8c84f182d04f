"""Draw docs/img/architecture.svg from the import contract in pyproject.toml: `python docs/tools/architecture.py`."""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "img" / "architecture.svg"
WIDTH, HEIGHT, GAP, MARGIN = 880, 46, 8, 12


def layers() -> list[list[str]]:
    """The packages of the contract, the lowest layer first; those of one layer side by side."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(part for part in settings["tool"]["importlinter"]["contracts"] if part["type"] == "layers")
    names = [[part.strip(" ()").removeprefix("headscope.") for part in layer.split("|")] for layer in contract["layers"]]
    return [
        [name for name in layer if (ROOT / "src" / "headscope" / name).is_dir()]
        for layer in reversed(names)
        if "headscope.errors" not in layer
    ]


def purpose(package: str) -> str:
    """The first sentence of a package's docstring."""
    source = (ROOT / "src" / "headscope" / package / "__init__.py").read_text(encoding="utf-8")
    line = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return line.partition(". ")[0].rstrip(".")


def picture() -> str:
    """The layers as boxes, one row per layer: a package may import what stands below it."""
    rows = [layer for layer in reversed(layers()) if layer]
    height = 2 * MARGIN + len(rows) * (HEIGHT + GAP) - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif">',
        "<title>Packages of headscope: each may import those in the rows below it</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, row in enumerate(rows):
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        top = MARGIN + number * (HEIGHT + GAP)
        for place, package in enumerate(row):
            left = MARGIN + place * (width + GAP)
            most = int(width / 6.1)
            text = purpose(package)
            short = text if len(text) <= most else text[:most].rsplit(" ", 1)[0].rstrip(",:;") + " …"
            parts += [
                f'<rect x="{left:g}" y="{top}" width="{width:g}" height="{HEIGHT}" rx="4" fill="#eef3f8" stroke="#31688e"/>',
                f'<text x="{left + 10:g}" y="{top + 19}" font-size="14" font-weight="bold" fill="#12303f">{package}</text>',
                f'<text x="{left + 10:g}" y="{top + 36}" font-size="11.5" fill="#333333">{escape(short)}</text>',
            ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE)
