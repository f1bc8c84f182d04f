"""`headscope prune`: a smaller model, with the heads that matter least cut out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headscope.results.table import Table

Option = typer.Option


def prune(
    model: Annotated[str, typer.Argument(help="mini (embedded), a local folder, or a hub id; with what it predicts with")],
    keep: Annotated[str, Option(help="share of the heads to keep: 60%")],
    out: Annotated[Path, Option("--out", "-o", help="folder for the smaller model; it must not be there yet, or be empty")],
    by: Annotated[
        str, Option(help="what goes first: importance, drop (measured, head by head), random, or a quantity of --run, with - the highest")
    ] = "importance",
    run: Annotated[Path | None, Option(help="a run of the same model, to order heads by one of its quantities")] = None,
    corpus: Annotated[list[str] | None, Option(help="texts to estimate by and to try it on [default: sampler]")] = None,
    score: Annotated[str | None, Option(help="what to try it by [default: by what the model does]")] = None,
    limit: Annotated[int, Option(help="texts; 0: all of them", min=0)] = 200,
    max_length: Annotated[int, Option(help="tokens a text may have")] = 128,
    format: Annotated[str | None, Option("--corpus-format", help="format of the corpus, if the file name does not tell")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad sentences and count them")] = "raise",
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    speed: Annotated[bool, Option("--speed", help="also measure how much faster it is, at batches of 1, 4, 16 and 64")] = False,
    keep_shape: Annotated[
        bool, Option("--keep-shape", help="write zeros for the heads instead of smaller matrices: no faster, but every tool can load it")
    ] = False,
    seed: Annotated[int, Option(help="seed of what is drawn")] = 0,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, nothing printed but the folder")] = False,
) -> None:
    """Cut the heads that matter least out of a model for good, and say what it loses on documents that had no say in
    the choice.

    headscope prune ./sst2 --keep 60% --by importance --corpus dev.tsv --out smaller
    headscope prune mini --keep 50% --by drop --limit 100 --speed --out smaller
    headscope prune mini --keep 80% --run RUN --by=-to_sep --out smaller
    headscope prune mini --keep 60% --keep-shape --out zeroed
    headscope run --model smaller --out RUN2

    The folder's README.md says how to load it: with headscope, or with a few lines of transformers. With
    --keep-shape it loads with AutoModel.from_pretrained.
    """
    from headscope.cli.printing.progress import bar
    from headscope.models.prune import save
    from headscope.studies.ablation.prune import parse_share, prune_model, require_new_folder
    from headscope.studies.ablation.size_and_speed import size_table, speed_table

    share = parse_share(keep)
    require_new_folder(out)
    settings: dict[str, Any] = {
        "model": model, "corpus": corpus or ["sampler"], "score": score, "limit": limit, "max_length": max_length,
        "format": format or old_format, "on_error": on_error, "dtype": dtype, "seed": seed,
    }  # fmt: skip
    with bar("weighing heads", hidden=quiet) as progress:
        result = prune_model(settings, share, by, run, device, progress)
    save(result.smaller, out, keep_shape)
    if not quiet:
        if keep_shape:
            typer.echo("written with zeros for the heads that are gone, in its full size; the tables are of the model without them")
        models = result.whole, result.smaller
        _print(result.scores, size_table(*models), speed_table(*models, result.texts) if speed else None)
    typer.echo(out)


def _print(scores: Table, sizes: Table, speeds: Table | None) -> None:
    from headscope.cli.printing.tables import print_table

    print_table(sizes, "what is left")
    print_table(scores, "what it scores on documents that had no say in the choice")
    if speeds is not None:
        print_table(speeds, "texts a second, by batch")
