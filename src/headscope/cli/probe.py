"""`headscope probe`: what can be read from a model's attention and from its states."""

from __future__ import annotations

import typer

from headscope.cli.options import examples
from headscope.cli.probe_join import join
from headscope.cli.study import StudyGroup

app = typer.Typer(
    cls=StudyGroup, help="Train small probes on what a model holds, to see what it knows.", no_args_is_help=True, rich_markup_mode=None
)
app.command(help=examples(join.__doc__))(join)
