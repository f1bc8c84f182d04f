"""`headscope ablate` and `headscope importance`: which heads are needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headscope.results.results import Results

Option = typer.Option
Model = Annotated[str, Option(help="mini (embedded), a local folder, or a hub id; with what it predicts with")]
Texts = Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")]
Out = Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/ablation-MODEL-CORPUS]")]
Limit = Annotated[int, Option(help="texts, drawn from all documents; 0: all of them", min=0)]
Unit = Annotated[str | None, Option(help="what one text is: sentence, paragraph, document, pair [default: as the model needs it]")]
Length = Annotated[int, Option(help="tokens a text may have")]
Share = Annotated[float, Option(help="share of the pieces that a masked model is to guess")]
Format = Annotated[str | None, Option(help="corpus format, if the file name does not tell")]
Replicates = Annotated[int, Option(help="bootstrap replicates for intervals", min=0)]
Seed = Annotated[int, Option(help="seed of what is drawn")]
Device = Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")]
Resume = Annotated[bool, Option("--resume", help="go on with the study in the folder")]
Overwrite = Annotated[bool, Option("--overwrite", help="replace the study in the folder")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")]
Abs = Annotated[str, Option(help="importance: sizes of gradients by example (the paper), by token (its code), or by batch (Hugging Face)")]
BatchTexts = Annotated[int, Option(help="importance by batch: texts of a batch, in the order of the corpus", min=1)]
Tags = Annotated[str | None, Option(help="what a model that tags words was trained on: upos, xpos, keyphrases [default: by its tags]")]
Normalise = Annotated[str, Option(help="importance: layer_l2, global_minmax or none")]


def ablate(
    model: Model = "mini",
    corpus: Texts = None,
    score: Annotated[
        str | None,
        Option(
            help="accuracy, f1, f1_macro, matthews, loss, perplexity, masked_accuracy, bleu, chrf, keyphrase_tokens, keyphrase_spans "
            "[default: by what the model does]"
        ),
    ] = None,
    parts: Annotated[
        str, Option(help="heads (one by one), all_but_one (of a layer), layers, importance, pruning (more and more)")
    ] = "heads,all_but_one,layers,importance,pruning",
    out: Out = None,
    how: Annotated[str, Option(help="what a head gives that is off: zero, or its mean over the texts")] = "zero",
    limit: Limit = 200,
    unit: Unit = None,
    max_length: Length = 128,
    mask_share: Share = 0.15,
    test: Annotated[
        str | None,
        Option(help="mcnemar, bootstrap, paired_t, unpaired_t [default: bootstrap, mcnemar for accuracy of documents of one example]"),
    ] = None,
    tags: Tags = None,
    abs_over: Abs = "example",
    batch_texts: BatchTexts = 8,
    normalise: Normalise = "layer_l2",
    steps: Annotated[int, Option(help="pruning: steps from all heads to none", min=1)] = 10,
    orders: Annotated[int, Option(help="pruning: orders of chance, as a control", min=0)] = 3,
    run: Annotated[str | None, Option(help="pruning: a run of the same model, whose quantities give further orders")] = None,
    by: Annotated[str | None, Option(help="pruning: those quantities, lowest first; with - highest first: entropy,-to_sep")] = None,
    reestimate: Annotated[bool, Option("--reestimate", help="pruning: also estimate importance anew after each step")] = False,
    most_first: Annotated[bool, Option("--most-first", help="pruning: also begin with the heads that matter most")] = False,
    tolerance: Annotated[float, Option(help="pruning: the share of the score that may be lost", min=0)] = 0.01,
    beams: Annotated[int, Option(help="translations: beams of the search", min=1)] = 5,
    format: Format = None,
    replicates: Replicates = 10_000,
    seed: Seed = 0,
    batch_tokens: Annotated[int | None, Option(help="tokens in a batch", min=1)] = None,
    device: Device = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Switch heads off and see what the model loses: one by one, all but one, layer by layer, more and more (Michel et al. 2019).

    headscope ablate --limit 50 --out ABLATED
    headscope ablate --model ./sst2 --corpus dev.tsv --limit 500 --out ABLATED
    headscope ablate --model ./marian --corpus test.jsonl --score bleu --parts heads,all_but_one --out ABLATED
    headscope ablate --run RUN --by entropy,-to_sep --out ABLATED
    headscope show ABLATED ablation --sort difference
    headscope plot ABLATED michel1 -o table1.pdf
    headscope plot ABLATED michel3 -o figure3.pdf
    """
    from headscope.cli.options import names

    settings = {
        "model": model, "corpus": corpus or ["sampler"], "score": score, "parts": names(parts), "how": how, "limit": limit or None,
        "unit": unit, "max_length": max_length, "mask_share": mask_share, "test": test, "tags": tags,
        "abs_over": abs_over, "batch_texts": batch_texts, "normalise": normalise,
        "run": run, "by": names(by) if by else [], "reestimate": reestimate, "most_first": most_first,
        "steps": steps, "orders": orders, "tolerance": tolerance,
        "beams": beams, "format": format, "replicates": replicates, "seed": seed, "batch_tokens": batch_tokens,
    }  # fmt: skip
    _study(settings, out, device, resume, overwrite, quiet)


def importance(
    model: Model = "mini",
    corpus: Texts = None,
    out: Out = None,
    limit: Limit = 200,
    unit: Unit = None,
    max_length: Length = 128,
    mask_share: Share = 0.15,
    tags: Tags = None,
    abs_over: Abs = "example",
    batch_texts: BatchTexts = 8,
    normalise: Normalise = "layer_l2",
    format: Format = None,
    replicates: Replicates = 10_000,
    seed: Seed = 0,
    device: Device = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Estimate from gradients how much each head matters to the loss: one backward pass for all heads (Michel et al. 2019).

    headscope importance --out WEIGHTS
    headscope importance --model ./sst2 --corpus train.tsv --limit 2000 --out WEIGHTS
    headscope show WEIGHTS importance --sort importance
    """
    settings = {
        "model": model, "corpus": corpus or ["sampler"], "parts": ["importance"], "limit": limit or None, "unit": unit,
        "max_length": max_length, "mask_share": mask_share, "tags": tags, "abs_over": abs_over, "batch_texts": batch_texts,
        "normalise": normalise, "format": format,
        "replicates": replicates, "seed": seed,
    }  # fmt: skip
    _study(settings, out, device, resume, overwrite, quiet)


def _study(settings: dict[str, Any], out: Path | None, device: str | None, resume: bool, overwrite: bool, quiet: bool) -> None:
    from headscope.cli.summary import summarise
    from headscope.studies.ablation.spec import make_ablation_spec

    spec = make_ablation_spec(settings, "the options")
    usual = Path("runs") / "-".join(["ablation", *(Path(name).name.split(".")[0] for name in (spec.model, spec.corpus[0]))])
    results = _ablate(spec, out or usual, device, resume, overwrite, quiet)
    summarise(results, quiet)


def _ablate(spec: Any, out: Path, device: str | None, resume: bool, overwrite: bool, quiet: bool) -> Results:
    from headscope.cli.progress import bar, interrupted
    from headscope.studies.ablation.study import ablate as study

    with interrupted(out), bar("switching off", hidden=quiet) as progress:
        return study(spec, out, device=device, resume=resume, overwrite=overwrite, progress=progress)
