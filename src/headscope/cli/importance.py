"""`headscope importance`: how much each head matters to the loss, by gradients alone. A study of ablation with one
part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Option = typer.Option


def importance(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id; with what it predicts with")] = "mini",
    corpus: Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")] = None,
    tags: Annotated[
        str | None, Option(help="what a model that tags words was trained on: upos, xpos, keyphrases [default: by its tags]")
    ] = None,
    unit: Annotated[
        str | None, Option(help="what one text is: sentence, paragraph, document, pair [default: as the model needs it]")
    ] = None,
    mask_share: Annotated[float, Option(help="share of the pieces that a masked model is to guess")] = 0.15,
    abs_over: Annotated[
        str, Option(help="sizes of gradients by example (the paper), by token (its code), or by batch (Hugging Face)")
    ] = "example",
    batch_texts: Annotated[int, Option(help="by batch: texts of a batch, in the order of the corpus", min=1)] = 8,
    normalise: Annotated[str, Option(help="layer_l2, global_minmax or none")] = "layer_l2",
    max_length: Annotated[int, Option(help="tokens a text may have")] = 128,
    limit: Annotated[int, Option(help="texts, drawn from all documents; 0: all of them", min=0)] = 200,
    format: Annotated[str | None, Option("--corpus-format", help="format of the corpus, if the file name does not tell")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad sentences and count them")] = "raise",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 10_000,
    seed: Annotated[int, Option(help="seed of what is drawn")] = 0,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/ablation-MODEL-CORPUS]")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
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
    run_study(REGISTRY["ablation"], settings, out, device, resume, overwrite, quiet)
