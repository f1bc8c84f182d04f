"""`headscope view`: what heads look at in one text, in the terminal, as a page, or as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def view(
    text: Annotated[str, typer.Argument(help="the text")],
    second: Annotated[str | None, typer.Argument(help="the other text of a pair, or what the decoder of an encoder-decoder reads")] = None,
    model: Annotated[str, typer.Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    heads: Annotated[
        str | None, typer.Option(help="heads counted from 1: 8-10,5-4 or cross/3-2 [default: those that link far words]")
    ] = None,
    level: Annotated[str | None, typer.Option(help="token or word [default: word]")] = None,
    specials: Annotated[str | None, typer.Option(help="show, hide or renormalise: what to do with special tokens [default: show]")] = None,
    max_length: Annotated[int | None, typer.Option(help="tokens to read at most [default: 512, or what the model takes]", min=1)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write: .html (a page), .svg, .pdf or .png")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ... [default: cuda if there is one]")] = None,
) -> None:
    """See what heads look at in a text of your own.

    headscope view "The keys to the cabinet are on the table."
    headscope view "The keys to the cabinet are on the table." --heads 8-10,5-4
    headscope view "The keys to the cabinet are on the table." -o page.html
    headscope view "The keys to the cabinet are on the table." --heads 8-11 --specials hide -o figure.pdf
    headscope view "She called." "He did not answer." --level token
    headscope view "The cat sleeps." "Die Katze schläft." --model Helsinki-NLP/opus-mt-en-de --heads cross/4-1
    """
    from headscope.cli.options import names

    if out is not None:
        from headscope.widget.files import suffix_of

        suffix_of(out)  # before a model is loaded for nothing
    from headscope.api import load
    from headscope.api import view as look

    shown = look(
        load(model, device),
        text,
        second,
        names(heads) if heads is not None else None,
        level=level,  # type: ignore[arg-type]
        specials=specials,  # type: ignore[arg-type]
        max_length=max_length,
    )
    for note in shown.notes(out):
        typer.echo(f"headscope: {note}", err=True)
    if out is not None:
        typer.echo(shown.save(out))
        return
    from headscope.cli.terminal import print_heads

    print_heads(shown.grids(), shown.signature)
