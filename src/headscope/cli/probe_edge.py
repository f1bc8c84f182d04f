"""`headscope probe edge`: in which layers a model knows what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.results.results import Results

Option = typer.Option


def edge(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    corpus: Annotated[
        list[str] | None, Option(help="file to train on, or 'sampler' (embedded); may be repeated [default: sampler]")
    ] = None,
    dev: Annotated[list[str] | None, Option(help="file to score on; may be repeated [default: part of the documents]")] = None,
    tasks: Annotated[
        str | None,
        Option(
            help="pos, deps, constituents, entities, srl, coref, spr, relations, or any other that the corpus names [default: all it has]"
        ),
    ] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/edge-MODEL-CORPUS]")] = None,
    limit: Annotated[int, Option(help="texts to train on, drawn from all documents; 0: all of them", min=0)] = 2000,
    dev_limit: Annotated[int, Option(help="texts to score on; 0: all of them", min=0)] = 0,
    seeds: Annotated[int, Option(help="times that every probe is trained", min=1)] = 2,
    control: Annotated[bool, Option(help="also train probes on labels by lot, for selectivity")] = True,
    single: Annotated[bool, Option("--single", help="also probe each layer alone")] = False,
    look: Annotated[list[str] | None, Option(help="file whose targets are shown one by one, belief by layer")] = None,
    examples: Annotated[int, Option(help="examples to show of each task, whose decision turns from layer to layer", min=0)] = 8,
    negatives: Annotated[
        str, Option(help="expected layer: keep layers that make it worse (the paper), clip them, or running_max")
    ] = "keep",
    preset: Annotated[str, Option(help="recommended, or reference (slow and long, as the paper trains)")] = "recommended",
    tags: Annotated[str, Option(help="pos: upos, xpos, or auto (upos if there is any)")] = "auto",
    subtypes: Annotated[bool, Option(help="deps: nsubj:pass is a label of its own")] = True,
    apart: Annotated[int, Option(help="coref: sentences that a pair may reach across; -1: any number", min=-1)] = 0,
    singletons: Annotated[bool, Option("--singletons", help="coref: with entities that are mentioned once")] = False,
    unit: Annotated[str | None, Option(help="what one text is: sentence or document [default: sentence, document if --apart]")] = None,
    max_length: Annotated[
        int, Option(help="tokens a text may have; longer sentences are left out, longer documents cut into windows")
    ] = 128,
    checks: Annotated[
        int | None, Option(help="checks at most: one per epoch, or per 25 steps if an epoch is shorter [default: 10]", min=1)
    ] = None,
    rate: Annotated[float | None, Option(help="rate of learning [default: 0.002]")] = None,
    hidden: Annotated[int, Option(help="width of a probe", min=1)] = 256,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad sentences and count them")] = "raise",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 1000,
    seed: Annotated[int, Option(help="seed of what is drawn; the first of the probes' seeds")] = 0,
    weights: Annotated[str, Option(help="trained, or random: a control, all but the embeddings redrawn")] = "trained",
    cache: Annotated[str | None, Option(help="folder where hidden states are kept for other studies [default: not kept]")] = None,
    cache_limit: Annotated[float, Option(help="GiB that hidden states may take")] = 8.0,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Train probes on layers 0, 0 to 1, 0 to 2, ... and see which layer adds what to which task (Tenney et al. 2019).

    headscope probe edge --tasks pos --out EDGE
    headscope probe edge --corpus train.conllu --dev dev.conllu --tasks pos,deps --limit 0 --out EDGE
    headscope probe edge --corpus train.jsonl --look mine.jsonl --single --out EDGE
    headscope probe join EDGE1 EDGE2 --out ALL
    headscope show EDGE edge_scores
    headscope plot EDGE tenney2 -o figure2.pdf
    headscope plot EDGE tenney3 --quantity pos/2 -o belief.pdf
    """
    from headscope.cli.options import names
    from headscope.studies.edge_probe.spec import make_edge_spec

    settings = {
        "model": model, "corpus": corpus or ["sampler"], "dev": dev or [], "look": look or [], "tasks": names(tasks) if tasks else None,
        "limit": limit or None, "dev_limit": dev_limit or None, "seeds": seeds, "control": control, "single": single, "examples": examples,
        "negatives": negatives, "preset": preset, "tags": tags, "subtypes": subtypes, "apart": None if apart < 0 else apart,
        "singletons": singletons, "unit": unit, "max_length": max_length, "checks": checks, "rate": rate, "hidden": hidden,
        "format": format, "on_error": on_error, "replicates": replicates, "seed": seed, "weights": weights, "cache": cache,
        "cache_limit": cache_limit,
    }  # fmt: skip
    spec = make_edge_spec(settings, "the options")
    usual = Path("runs") / "-".join(["edge", *(Path(name).name.split(".")[0] for name in (spec.model, spec.corpus[0]))])
    results = _probe(spec, out or usual, device, resume, overwrite, quiet)
    from headscope.cli.summary import summarise

    summarise(results, quiet)


def _probe(spec: object, out: Path, device: str | None, resume: bool, overwrite: bool, quiet: bool) -> Results:
    from headscope.cli.progress import bar, interrupted
    from headscope.studies.edge_probe.study import probe_edge

    with interrupted(out), bar("probing", hidden=quiet) as progress:
        return probe_edge(spec, out, device=device, resume=resume, overwrite=overwrite, progress=progress)  # type: ignore[arg-type]


def join(
    studies: Annotated[list[Path], typer.Argument(help="folders of studies by headscope probe edge, of one model")],
    out: Annotated[Path, Option("--out", "-o", help="folder for all of them together")],
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
    from headscope.cli.summary import summarise

    summarise(results, quiet)
