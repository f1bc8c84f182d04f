"""The `headscope` command. Nothing heavy is imported here: a verb imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from headscope.cli import (
    alike,
    annotate,
    compare,
    corpus,
    heads,
    inspect,
    keywords,
    models,
    pages,
    plot,
    replicate,
    run,
    show,
    special_studies,
    version,
    view,
)
from headscope.cli.help import Command, with_metavars
from headscope.cli.options import examples
from headscope.cli.printing.progress import signals_as_exceptions
from headscope.cli.study import StudyGroup
from headscope.errors import HeadscopeError

StudyGroup.special["twins"] = special_studies.TwinsCommand
app = typer.Typer(
    name="headscope",
    cls=StudyGroup,
    help=examples("""What the attention heads of a Transformer look at, and whether it matters, in numbers.

    headscope run --out RUN                  measure the embedded model on the embedded corpus
    headscope run --model bert-base-uncased --corpus en.conllu --out RUN
    headscope annotate a.txt -o a.conllu     no treebank? trees from an installed parser, marked as automatic
    headscope show RUN tokens                the numbers, in the terminal
    headscope plot RUN clark2 -o fig2.svg    a figure for a paper
    headscope heads RUN                      the type of each head: sink, syntactic, induction, ...
    headscope alike RUN                      which heads attend alike
    headscope twins mini bert-base-uncased   which heads of two models attend alike
    headscope flow --out FLOW                influence between words, and its link to syntax and coreference
    headscope ablate --out ABLATED           which heads are needed
    headscope in-context --out CONTEXT       what a language model gains from its context, and which heads bring it
    headscope probe attention --out PROBE    how much syntax all heads together encode
    headscope probe edge --out EDGE          which layers encode which annotation
    headscope probe structural --out PROBE   whether hidden states encode syntax trees
    headscope prune mini --keep 60% --out M  a smaller model, without the heads that matter least
    headscope train --corpus T.tsv --out M   fine-tune a model on labelled texts
    headscope replicate clark2019            a paper's analyses repeated, our number beside each published one
    headscope report RUN                     one offline page with everything
    headscope view "Keys open doors."        what heads look at in any text
    headscope keywords article.txt           its keyphrases, found from attention
    headscope compare A B C                  runs, or studies of one kind, side by side
    headscope rerun RUN                      repeat a run, and check that it is identical to the last bit
    headscope serve RUN                      runs in the browser, and a box to type a sentence into
    """),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_VERBS = (
    *(run.run, show.show, plot.plot, pages.report, view.view, pages.serve, compare.compare, heads.heads, alike.alike, inspect.inspect),
    keywords.keywords,
    run.rerun,
    annotate.annotate,
    special_studies.importance,
    models.prune,
    replicate.replicate,
    models.train,
    inspect.doctor,
)

_COMMANDS: dict[Callable[..., None], type[Command]] = {run.run: run.RunCommand, plot.plot: plot.PlotCommand}


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of headscope, Python, torch and transformers, and the device.",
            is_eager=True,
            callback=version.print_version,
        ),
    ] = False,
) -> None: ...


for verb in _VERBS:
    app.command(cls=_COMMANDS.get(verb, Command), help=examples(verb.__doc__))(with_metavars(verb))
app.add_typer(corpus.app, name="corpus")
app.add_typer(special_studies.probe, name="probe")


def main() -> None:
    """Run the command line; a user's mistake ends in one clear line and exit code 2."""
    try:
        with signals_as_exceptions():
            app()
    except HeadscopeError as error:
        print(f"headscope: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # `headscope show RUN | head` closes the pipe early
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
