"""`headscope flow`: how much words bear on each other, and what that goes with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.runs.results import Results

Option = typer.Option


def flow(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    corpus: Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")] = None,
    parts: Annotated[str | None, Option(help="coreference,classes,trees,agreement [default: all that the corpus is annotated for]")] = None,
    measures: Annotated[
        str, Option(help="A (attention), G (gradient over a layer), G* (from the input on); also rollout, maxflow, norms")
    ] = "A,G,G*",
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/flow-MODEL-CORPUS]")] = None,
    limit: Annotated[
        int | None, Option(help="sentences; 0: all of them [default: 500; 16 if G* is measured, which takes long]", min=0)
    ] = None,
    pick: Annotated[str | None, Option(help="sentences: random ones, or the first [default: random]")] = None,
    items: Annotated[int | None, Option(help="pairs of a noun and a pronoun [default: 500; 16 if G* is measured]", min=2)] = None,
    draw: Annotated[
        str | None, Option(help="pairs: balanced, matched in distance, or alternating (as released) [default: balanced]")
    ] = None,
    context: Annotated[int, Option(help="tokens of text that a pair is read in, the pronoun's sentence last")] = 64,
    norm: Annotated[str | None, Option(help="size of a Jacobian: frobenius, sum, mean, spectral [default: frobenius]")] = None,
    method: Annotated[str, Option(help="auto, exact or sketch")] = "auto",
    probes: Annotated[int, Option(help="random vectors of a sketch", min=2)] = 32,
    mode: Annotated[str | None, Option(help="eval, or train: with dropout, as the paper's numbers were made [default: eval]")] = None,
    preset: Annotated[str, Option(help="recommended, or reference (what the released code did)")] = "recommended",
    grouping: Annotated[str, Option(help="from pieces to words: mean or sum")] = "mean",
    punct: Annotated[str, Option(help="punctuation in trees: include or exclude")] = "include",
    transpose: Annotated[bool, Option("--transpose", help="spanning trees: flow from j to i speaks for i as the head")] = False,
    max_length: Annotated[int, Option(help="tokens a text may have; longer ones are left out")] = 128,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad sentences and count them")] = "raise",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 1000,
    seed: Annotated[int, Option(help="seed of what is drawn")] = 0,
    weights: Annotated[str, Option(help="trained, or random: a control, all but the embeddings redrawn")] = "trained",
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Measure how much each word bears on each other word, and whether it goes with coreference, parts of speech and trees (Westera).

    headscope flow --out FLOW
    headscope flow --corpus gum-dev.conllu --measures A,G --out FLOW
    headscope flow --corpus ontogum-dev.conllu --parts coreference --items 500 --draw matched --out PAIRS
    headscope flow --model bert-base-uncased --corpus gum-dev.conllu --preset reference --out FLOW
    headscope show FLOW flow_coreference
    headscope plot FLOW westera1 -o figure1.pdf
    """
    from headscope.cli.options import names
    from headscope.flows.spec import make_flow_spec

    chosen = [*(corpus or ["sampler"])]
    counts = {name: number or None for name, number in (("limit", limit), ("items", items)) if number is not None}
    spec = make_flow_spec(
        {
            "model": model, "corpus": chosen, "parts": names(parts) if parts is not None else None, "measures": names(measures),
            **counts, "pick": pick, "draw": draw, "context": context, "norm": norm, "method": method,
            "probes": probes, "mode": mode, "preset": preset, "grouping": grouping, "punct": punct, "transpose": transpose,
            "max_length": max_length, "format": format, "on_error": on_error, "replicates": replicates, "seed": seed,
            "weights": weights, "dtype": dtype,
        },
        "the options",
    )  # fmt: skip
    usual = Path("runs") / "-".join(["flow", *(Path(name).name.split(".")[0] for name in (model, chosen[0]))])
    results = _study(spec, out or usual, device, resume, overwrite, quiet)
    from headscope.cli.summary import summarise

    summarise(results, quiet)


def _study(spec: object, out: Path, device: str | None, resume: bool, overwrite: bool, quiet: bool) -> Results:
    from headscope.cli.progress import bar, interrupted
    from headscope.cli.signals import say
    from headscope.flows.study import study

    told = None if quiet else say
    with interrupted(out), bar("differentiating", hidden=quiet) as progress:
        return study(spec, out, device=device, resume=resume, overwrite=overwrite, progress=progress, say=told)  # type: ignore[arg-type]
