"""`headscope probe`: what can be read from a model's attention and from its states."""

from __future__ import annotations

import typer

app = typer.Typer(help="Train small probes on what a model holds, to see what it knows.", no_args_is_help=True, rich_markup_mode=None)
