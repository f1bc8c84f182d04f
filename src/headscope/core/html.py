"""Small pieces of HTML for notebooks. They take over the notebook's colours and fonts, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from headscope.core.paths import printable

_LINE = "1px solid rgba(128,128,128,.45)"
_CELL = "padding:.15em .7em;white-space:nowrap"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool]) -> str:
    """A table of cells; the columns for which `left` holds are aligned to the left, the others to the right."""
    sides = ["left" if side else "right" for side in left]
    head = f"<thead>{_row('th', names, sides, f'border-bottom:{_LINE};')}</thead>" if any(names) else ""
    body = "".join(_row("td", row, sides) for row in rows)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.3em 0"
    return f'<div style="overflow-x:auto"><table style="{style}">{head}<tbody>{body}</tbody></table></div>'


def card(title: str, lines: Sequence[str] = (), inside: str = "", note: str = "") -> str:
    """A title, a list of sentences, HTML of this module, and a note in small print."""
    sentences = "".join(f"<li>{text(line)}</li>" for line in lines)
    parts = [
        f'<div style="font-weight:600">{text(title)}</div>',
        f'<ul style="margin:.3em 0;padding-left:1.4em">{sentences}</ul>' if sentences else "",
        inside,
        f'<div style="font-size:.8em;opacity:.75;overflow-wrap:anywhere">{text(note)}</div>' if note else "",
    ]
    return f'<div style="color:inherit;margin:.3em 0">{"".join(parts)}</div>'


def text(value: str) -> str:
    """A text with its HTML characters escaped."""
    return escape(printable(value))


def _row(tag: str, cells: Sequence[str], sides: Sequence[str], style: str = "") -> str:
    marked = (f'<{tag} style="{style}text-align:{side};{_CELL}">{text(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True))
    return f"<tr>{''.join(marked)}</tr>"
