"""`headscope train` and `headscope prune`: models fine-tuned on labelled texts, and models without some heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.printing.text import print_text
from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from headscope.models.finetuning.recipe import Check, TrainedModel, TrainingRecipe
    from headscope.results.table import Table

Option = typer.Option


def train(
    corpus: Annotated[list[str], Option(help="file of labelled texts: CSV, TSV, JSON lines, or CoNLL-U for tags; may be repeated")],
    out: Annotated[Path, Option("--out", "-o", help="folder for the trained model")],
    model: Annotated[str, Option(help=f"model to start from: {MODEL_HELP}")] = "mini",
    dev: Annotated[list[str] | None, Option(help="file to test on; may be repeated [default: part of the corpus is held out]")] = None,
    labels: Annotated[str, Option(help="what to learn: label (one class per text); upos, xpos or keyphrases (one tag per word)")] = "label",
    epochs: Annotated[int, Option(help="passes through the corpus", min=1)] = 3,
    batch: Annotated[int, Option(help="texts per batch", min=1)] = 16,
    rate: Annotated[float, Option(help="highest learning rate; 2e-5 is usual for models of BERT's size")] = 1e-4,
    warmup: Annotated[float, Option(help="share of all steps in which the learning rate rises; then it falls to 0")] = 0.1,
    weight_decay: Annotated[float, Option(help="weight decay of AdamW")] = 0.01,
    checks: Annotated[int, Option(help="evaluations on the dev part per epoch", min=1)] = 2,
    patience: Annotated[int, Option(help="evaluations without a better score before training stops", min=1)] = 4,
    held_out: Annotated[float, Option(help="share of the documents to test on, if there is no --dev")] = 0.1,
    metric: Annotated[
        str | None, Option(help="accuracy, f1, f1_macro, f1_micro, matthews, keyphrase_tokens, keyphrase_spans [default: by --labels]")
    ] = None,
    limit: Annotated[int, Option(help="texts to learn from, drawn with the seed; 0: all of them", min=0)] = 0,
    max_length: Annotated[int, Option(help="longest text, in tokens; longer ones are cut")] = 128,
    seed: Annotated[int, Option(help="seed of the new head, the order of texts, and what is held out")] = 0,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")] = None,
    format: Annotated[str | None, Option("--corpus-format", help="corpus format, if the file name does not show it")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="what to do with bad lines: raise an error, or skip and count them")] = "raise",
    overwrite: Annotated[bool, Option("--overwrite", help="replace the trained model in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress, no summary")] = False,
) -> None:
    """Fine-tune a model on labelled texts, and save it as a folder that every verb takes as --model.

    headscope train --corpus train.tsv --dev dev.tsv --out sst2
    headscope train --corpus pairs.jsonl --limit 4000 --out mnli
    headscope train --corpus en.conllu --labels upos --out tagger
    headscope train --model bert-base-uncased --corpus cola.tsv --metric matthews --rate 2e-5 --batch 32 --out cola

    A table or JSON lines name their columns: text or sentence (or two for pairs, such as premise and hypothesis),
    and label. The held-out part is never trained on. The weights with the best score on it are saved, and this score is
    printed beside that of the majority class.
    """
    from headscope.models.finetuning.recipe import TrainingRecipe

    format = format or old_format
    recipe = TrainingRecipe(
        labels=labels, epochs=epochs, batch=batch, rate=rate, warmup=warmup, weight_decay=weight_decay, checks=checks,  # type: ignore[arg-type]
        patience=patience, held_out=held_out, metric=metric, limit=limit or None, max_length=max_length, seed=seed,
    )  # fmt: skip
    trained = _train(recipe, [corpus, dev or []], out, model, device, {"format": format, "on_error": on_error}, overwrite, quiet)
    if not quiet:
        _print(trained, recipe)


def _train(
    recipe: TrainingRecipe,
    files: list[list[str]],
    out: Path,
    model: str,
    device: str | None,
    how: dict[str, Any],
    overwrite: bool,
    quiet: bool,
) -> TrainedModel:
    from headscope.cli.printing.progress import bar, exit_code, print_line
    from headscope.corpora import read
    from headscope.models.finetuning.training import train

    training, apart = (read(*paths, **how) if paths else None for paths in files)
    assert training is not None

    def on_check(check: Check) -> None:
        if not quiet:
            losses = f"loss {check.loss:.3f}, on the dev part {check.dev_loss:.3f}"
            typer.echo(f"epoch {check.epoch:.2f}: {losses}, {recipe.scored_by} {check.score:.4f}", err=True)

    try:
        with bar("training", hidden=quiet) as progress:
            return train(training, out, model, apart, recipe, device, overwrite, progress, on_check)
    except KeyboardInterrupt as error:
        print_line("interrupted; nothing was saved")
        raise typer.Exit(exit_code(error)) from None


def _print(trained: TrainedModel, recipe: TrainingRecipe) -> None:
    for line in trained.left_out:
        print_text(line)
    print_text(f"learnt from {trained.n_train:,} texts: {', '.join(trained.names[:20])}{', …' if len(trained.names) > 20 else ''}")
    stopped = trained.checks[-1].epoch < recipe.epochs - 1e-9
    ended = f", stopped after {trained.checks[-1].epoch:.2f}" if stopped else ""
    print_text(
        f"{trained.metric} {trained.best.score:.4f} on {trained.n_dev:,} texts held out, after {trained.best.epoch:.2f} of {recipe.epochs} "
        f"epochs{ended}; the majority class has {trained.majority:.4f}"
    )
    typer.echo(f"saved in {trained.folder}")


def prune(
    model: Annotated[str, typer.Argument(help=f"{MODEL_HELP}; with its prediction head")],
    keep: Annotated[str, Option(help="share of the heads to keep: 60%")],
    out: Annotated[Path, Option("--out", "-o", help="folder for the smaller model; it must not exist, or be empty")],
    by: Annotated[
        str,
        Option(
            help="order of removal: importance, drop (measured head by head), random, or a quantity of --run (-QUANTITY: highest first)"
        ),
    ] = "importance",
    run: Annotated[Path | None, Option(help="run of the same model, to order heads by one of its quantities")] = None,
    corpus: Annotated[list[str] | None, Option(help="texts for the order and for the test [default: sampler]")] = None,
    score: Annotated[str | None, Option(help="score to test with [default: by what the model does]")] = None,
    limit: Annotated[int, Option(help="texts; 0: all of them", min=0)] = 200,
    max_length: Annotated[int, Option(help="longest text, in tokens")] = 128,
    format: Annotated[str | None, Option("--corpus-format", help="format of the corpus, if the file name does not show it")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="what to do with bad sentences: raise an error, or skip and count them")] = "raise",
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    speed: Annotated[bool, Option("--speed", help="also measure the speed-up, with batches of 1, 4, 16 and 64")] = False,
    keep_shape: Annotated[
        bool, Option("--keep-shape", help="write zeros for the heads instead of smaller matrices: not faster, but every tool can load it")
    ] = False,
    seed: Annotated[int, Option(help="random seed")] = 0,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="print only the folder: no progress bar, no tables")] = False,
) -> None:
    """Remove the heads that matter least from a model, permanently, and print what it loses on documents that were not
    used for the choice.

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
    from headscope.studies.ablation.prune import parse_share, prune_model, require_new_folder, size_table, speed_table

    share = parse_share(keep)
    require_new_folder(out)
    settings: dict[str, Any] = {
        "model": model, "corpus": corpus or ["sampler"], "score": score, "limit": limit, "max_length": max_length,
        "format": format or old_format, "on_error": on_error, "dtype": dtype, "seed": seed,
    }  # fmt: skip
    with bar("ranking heads", hidden=quiet) as progress:
        result = prune_model(settings, share, by, run, device, progress)
    save(result.smaller, out, keep_shape)
    if not quiet:
        if keep_shape:
            print_text("written in full size, with zeros for the removed heads; the tables are of the model without them")
        models = result.whole, result.smaller
        _print_pruned(result.scores, size_table(*models), speed_table(*models, result.texts) if speed else None)
    typer.echo(out)


def _print_pruned(scores: Table, sizes: Table, speeds: Table | None) -> None:
    from headscope.cli.printing.tables import print_table

    print_table(sizes, "what is left")
    print_table(scores, "scores on documents that were not used for the choice")
    if speeds is not None:
        print_table(speeds, "texts per second, by batch size")
