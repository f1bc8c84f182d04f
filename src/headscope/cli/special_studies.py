"""Commands of studies that do not follow from their declarations alone: `headscope importance` (ablation with one
part), `headscope twins` (prints pairs of heads) and `headscope probe join`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.help import Command, with_metavars
from headscope.cli.options import examples
from headscope.cli.study import PLAN, StudyCommand, StudyGroup
from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from headscope.results.results import Results

Option = typer.Option


def importance(
    model: Annotated[str, Option(help=f"{MODEL_HELP}; with its prediction head")] = "mini",
    corpus: Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")] = None,
    tags: Annotated[str | None, Option(help="tags that the model was trained on: upos, xpos, keyphrases [default: by its labels]")] = None,
    unit: Annotated[str | None, Option(help="unit of text: sentence, paragraph, document, pair [default: as the model needs it]")] = None,
    mask_share: Annotated[float, Option(help="share of the word pieces that a masked model predicts")] = 0.15,
    abs_over: Annotated[
        str, Option(help="gradient norms per example (the paper), per token (its code), or per batch (Hugging Face)")
    ] = "example",
    batch_texts: Annotated[int, Option(help="per batch: texts of a batch, in the order of the corpus", min=1)] = 8,
    normalise: Annotated[str, Option(help="layer_l2, global_minmax or none")] = "layer_l2",
    max_length: Annotated[int, Option(help="longest text, in tokens")] = 128,
    limit: Annotated[int, Option(help="texts, drawn from all documents; 0: all of them", min=0)] = 200,
    format: Annotated[str | None, Option("--corpus-format", help="format of the corpus, if the file name does not show it")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="what to do with bad sentences: raise an error, or skip and count them")] = "raise",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 10_000,
    seed: Annotated[int, Option(help="random seed")] = 0,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/ablation-MODEL-CORPUS]")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")] = None,
    resume: Annotated[bool, Option("--resume", help="continue the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    plan: Annotated[bool, Option("--plan", help=PLAN)] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Estimate from gradients how much each head matters to the loss: one backward pass for all heads (Michel et al.
    2019).

    headscope importance --out WEIGHTS
    headscope importance --model ./sst2 --corpus train.tsv --limit 2000 --out WEIGHTS
    headscope show WEIGHTS importance --sort importance
    """
    from headscope.cli.study import run_study
    from headscope.studies.registry import REGISTRY

    settings: dict[str, Any] = {
        "model": model, "corpus": corpus or ["sampler"], "parts": "importance", "tags": tags, "unit": unit, "mask_share": mask_share,
        "abs_over": abs_over, "batch_texts": batch_texts, "normalise": normalise, "max_length": max_length, "limit": limit,
        "format": format or old_format, "on_error": on_error, "replicates": replicates, "seed": seed, "dtype": dtype,
    }  # fmt: skip
    run_study(REGISTRY["ablation"], settings, out, device, resume, overwrite, quiet, plan=plan)


class TwinsCommand(StudyCommand):
    """The command of the study: `--epsilon` may be repeated, and the closest pairs of heads are printed."""

    def options(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The options of the settings, and the number of pairs to print."""
        field = self._study.spec.model_fields["epsilons"]
        usual = ", ".join(map(str, field.default))
        epsilon = Option("--epsilon", help=f"{field.description}; may be repeated [default: {usual}]")
        for name, made in super().options():
            yield name, made if name != "epsilons" else {"annotation": Annotated[list[float] | None, epsilon], "default": None}
        pairs = Option(help="closest pairs of twins to print", min=1)
        yield "pairs", {"annotation": Annotated[int, pairs], "default": 10}

    def call(self, *, pairs: int = 10, **given: Any) -> Results | None:
        """Compare the models, and print the results and the closest pairs."""
        results = super().call(**given)
        if results is not None and not given["quiet"]:
            _print_pairs(results, pairs)
        return results


def _print_pairs(results: Results, count: int) -> None:
    """Print the closest pairs of heads that are each other's twins."""
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
        print_table(Table.of(columns), f"\nthe {len(rows)} closest pairs of mutual twins")


def join(
    studies: Annotated[list[Path], typer.Argument(help="folders of studies by headscope probe edge, of one model")],
    out: Annotated[Path, Option("--out", "-o", help="folder for the joined study")],
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no summary")] = False,
) -> None:
    """Put tasks that were probed on several corpora into one study, for one table and one figure.

    headscope probe join POS SRL COREF --out ALL
    headscope plot ALL tenney2 -o figure2.pdf
    """
    from headscope.results.results import Results
    from headscope.studies.edge_probe.join import joined

    results = joined([Results.open(path) for path in studies], out, overwrite)
    from headscope.cli.printing.summary import summarise

    summarise(results, quiet)


probe = typer.Typer(
    cls=StudyGroup, help="Train small probes on the attention or the hidden states of a model.", no_args_is_help=True, rich_markup_mode=None
)
probe.command(cls=Command, help=examples(join.__doc__))(with_metavars(join))
