"""`headscope probe structural`: whether trees lie in a model's vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.results.results import Results
    from headscope.studies.structural_probe.spec import StructuralSpec

Option = typer.Option


def structural(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    corpus: Annotated[
        list[str] | None, Option(help="file to train on, or 'sampler' (embedded); may be repeated [default: sampler]")
    ] = None,
    dev: Annotated[list[str] | None, Option(help="file to score on; may be repeated [default: some documents of the corpus]")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/structural-MODEL-CORPUS]")] = None,
    layers: Annotated[str | None, Option(help="as in 0,6-8; 0: embeddings, n: what block n gives [default: all]")] = None,
    rank: Annotated[int | None, Option(help="rank of the probes of each layer [default: as many as a vector has numbers]", min=1)] = None,
    ranks: Annotated[str | None, Option(help="ranks to try on one layer, as in 1,2,4,8; none: not at all [default: powers of 2]")] = None,
    ranks_layer: Annotated[int | None, Option(help="layer to try ranks on [default: the best one]", min=0)] = None,
    baselines: Annotated[str, Option(help="of linear,decay,projection,random; none: no baseline")] = "linear,decay,projection,random",
    seeds: Annotated[int, Option(help="probes to train of each kind, from different beginnings", min=1)] = 1,
    limit: Annotated[int | None, Option(help="sentences of the corpus, drawn by lot [default: all]", min=1)] = None,
    preset: Annotated[str, Option(help="recommended, or reference (what the released code did)")] = "recommended",
    scale: Annotated[
        str | None, Option(help="vectors and first matrices to one size (unit), or as they are (none) [default: unit]")
    ] = None,
    punct: Annotated[str | None, Option(help="punctuation by tag and relation (tag), or by the Penn Treebank's tags (ptb)")] = None,
    held_out: Annotated[str | None, Option(help="stop by a part of the training corpus (train), or by what is scored (dev)")] = None,
    rate: Annotated[float, Option(help="learning rate")] = 1e-3,
    batch: Annotated[int, Option(help="sentences a step", min=1)] = 20,
    epochs: Annotated[int, Option(help="epochs at most", min=1)] = 40,
    patience: Annotated[int, Option(help="epochs without a gain before a probe stops", min=1)] = 5,
    reset: Annotated[bool, Option("--reset", help="Adam begins anew whenever the rate is lowered, as the paper says")] = False,
    max_length: Annotated[int, Option(help="tokens a sentence may have; longer ones are left out")] = 128,
    cache: Annotated[Path | None, Option(help="folder to keep hidden states in for other studies [default: kept only meanwhile]")] = None,
    store: Annotated[str, Option(help="hidden states on disk as float16 or float32")] = "float16",
    cache_limit: Annotated[float, Option(help="GiB that the hidden states of a part of the corpus may take", min=0)] = 8.0,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    on_error: Annotated[str, Option(help="raise, or skip bad sentences and count them")] = "raise",
    resample: Annotated[str, Option(help="what intervals resample: document or sentence")] = "document",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 1000,
    seed: Annotated[int, Option(help="seed of what is drawn")] = 0,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Train the structural probe (Hewitt & Manning 2019): a linear map under which distances between words are those of the tree.

    headscope probe structural --out PROBE
    headscope probe structural --corpus en_ewt-train.conllu --dev en_ewt-dev.conllu --seeds 3 --out PROBE
    headscope probe structural --model bert-base-cased --corpus train.conllu --dev dev.conllu --layers 6-8 --out PROBE
    headscope show PROBE structural
    headscope plot PROBE structural -o layers.pdf
    headscope plot PROBE structural_ranks -o ranks.pdf
    """
    from headscope.cli.options import names, numbers
    from headscope.studies.structural_probe.spec import make_structural_spec

    chosen = [*(corpus or ["sampler"])]
    spec = make_structural_spec(
        {
            "model": model, "corpus": chosen, "dev": dev or None, "layers": numbers(layers) if layers is not None else None,
            "rank": rank, "ranks": None if ranks is None else [] if ranks == "none" else numbers(ranks), "ranks_layer": ranks_layer,
            "baselines": [] if baselines == "none" else names(baselines), "seeds": seeds, "limit": limit, "preset": preset, "scale": scale,
            "punct": punct, "held_out": held_out, "rate": rate, "batch": batch, "epochs": epochs, "patience": patience, "reset": reset,
            "max_length": max_length, "store": store, "format": format, "on_error": on_error, "resample": resample,
            "replicates": replicates, "seed": seed, "dtype": dtype,
        },
        "the options",
    )  # fmt: skip
    usual = Path("runs") / "-".join(["structural", *(Path(name).name.split(".")[0] for name in (model, chosen[0]))])
    results = _study(spec, out or usual, device, cache, int(cache_limit * 2**30), resume, overwrite, quiet)
    from headscope.cli.summary import summarise

    summarise(results, quiet)


def _study(
    spec: StructuralSpec, out: Path, device: str | None, cache: Path | None, limit_bytes: int, resume: bool, overwrite: bool, quiet: bool
) -> Results:
    from headscope.cli.progress import bar, interrupted
    from headscope.studies.structural_probe.study import probe_structural

    with interrupted(out), bar("probing", hidden=quiet) as progress:
        return probe_structural(
            spec, out, device=device, cache=cache, limit_bytes=limit_bytes, resume=resume, overwrite=overwrite, progress=progress
        )
