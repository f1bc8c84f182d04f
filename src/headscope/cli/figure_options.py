"""Options of every command that draws a figure."""

from __future__ import annotations

from typing import Annotated

import typer

Width = Annotated[str | None, typer.Option(help="figure width: column (77 mm), page (160 mm) or millimetres [default: as needed]")]
FontSize = Annotated[float | None, typer.Option(help="figure font size in points [default: 9; below 112 mm 7.5]")]
Style = Annotated[
    str,
    typer.Option(metavar="colour|grey|dark", help="figure colours: safe for colour-blind readers, for print in grey, or for dark pages"),
]
Signature = Annotated[bool, typer.Option("--signature", help="figure: also write the signature into the picture")]


def figure_options(width: str | None, font_size: float | None, style: str, signature: bool) -> dict[str, str | float | bool]:
    """The chosen options by the names that Python functions take."""
    chosen = {"width": width, "font_size": font_size, "style": style if style != "colour" else None, "signature": signature or None}
    return {name: value for name, value in chosen.items() if value is not None}
