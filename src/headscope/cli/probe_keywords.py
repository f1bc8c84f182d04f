"""`headscope probe keywords`: which heads tell what is important in a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Option = typer.Option


def keywords(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    corpus: Annotated[list[str] | None, Option(help="file with keyphrases, or 'sampler' (embedded); may be repeated")] = None,
    dev: Annotated[list[str] | None, Option(help="file to try on what was learnt [default: documents of the corpus in turn]")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/keywords-MODEL-CORPUS]")] = None,
    source: Annotated[str, Option(help="attention from all positions, from the opening token (cls), or from words")] = "all",
    folds: Annotated[int, Option(help="parts of the documents, each tried once, where there is no --dev", min=2)] = 5,
    penalty: Annotated[float, Option(help="weight of the squares of coefficients")] = 1.0,
    limit: Annotated[int, Option(help="documents to learn from, drawn from all; 0: all of them", min=0)] = 0,
    max_length: Annotated[int, Option(help="tokens of a document that are read")] = 512,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad documents and count them")] = "raise",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 1000,
    seed: Annotated[int, Option(help="seed of what is drawn")] = 0,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Find out which heads look at what is important, and how well all of them together find keyphrases (Štefánik).

    headscope probe keywords --out KEYS
    headscope probe keywords --corpus inspec-train.jsonl --dev inspec-dev.jsonl --out KEYS
    headscope probe keywords --corpus kpcrowd.jsonl --folds 10 --out KEYS
    headscope show KEYS keywords_scores
    headscope plot KEYS keywords -o heads.pdf
    """
    from headscope.cli.progress import bar, interrupted
    from headscope.cli.summary import summarise
    from headscope.studies.keywords.spec import make_keyword_spec
    from headscope.studies.keywords.study import keywords as study

    settings = {
        "model": model, "corpus": corpus or ["sampler"], "dev": dev or [], "source": source, "folds": folds, "penalty": penalty,
        "limit": limit or None, "max_length": max_length, "format": format, "on_error": on_error, "replicates": replicates, "seed": seed,
        "dtype": dtype,
    }  # fmt: skip
    spec = make_keyword_spec(settings, "the options")
    usual = Path("runs") / "-".join(["keywords", *(Path(name).name.split(".")[0] for name in (spec.model, spec.corpus[0]))])
    folder = out or usual
    with interrupted(folder), bar("reading", hidden=quiet) as progress:
        results = study(spec, folder, device=device, resume=resume, overwrite=overwrite, progress=progress)
    summarise(results, quiet)
