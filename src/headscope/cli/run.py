"""`headscope run`: measure a model's heads over a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headscope.runs.results import Results
    from headscope.runs.spec import RunSpec

Option = typer.Option


def run(
    spec: Annotated[Path | None, typer.Argument(help="TOML file with settings; options override it")] = None,
    model: Annotated[str | None, Option(help="mini (embedded), a local folder, or a hub id [default: mini]")] = None,
    corpus: Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")] = None,
    measures: Annotated[str | None, Option(help="comma-separated: positions,tokens,entropy [default: all]")] = None,
    out: Annotated[Path | None, Option(help="folder for the results [default: runs/MODEL-CORPUS]")] = None,
    option: Annotated[list[str] | None, Option("--option", "-O", help="option of a measure: -O entropy.level=word")] = None,
    preset: Annotated[str | None, Option(help="recommended, paper, or reference (what the released code did)")] = None,
    unit: Annotated[str | None, Option(help="what one input is: sentence, paragraph, document, pair, segment")] = None,
    max_length: Annotated[int | None, Option(help="tokens an input may have [default: 128]")] = None,
    overlong: Annotated[str | None, Option(help="longer texts: drop, truncate, window, error [default: drop]")] = None,
    segment_ids: Annotated[str | None, Option(help="pair (0 and 1) or zeros, for two-part inputs")] = None,
    layers: Annotated[str | None, Option(help="only these layers, counted from 1: 1-4,12")] = None,
    limit: Annotated[int | None, Option(help="stop after so many texts")] = None,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    on_error: Annotated[str | None, Option(help="raise, or skip bad sentences and count them")] = None,
    replicates: Annotated[int | None, Option(help="bootstrap replicates for intervals [default: 500]")] = None,
    seed: Annotated[int | None, Option(help="seed of the bootstrap and of segment construction [default: 0]")] = None,
    batch_tokens: Annotated[int | None, Option(help="tokens in a batch [default: 4096]")] = None,
    dtype: Annotated[str | None, Option(help="float32, float16 or bfloat16 weights [default: float32]")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    engine: Annotated[str, Option(help="local, or processes: several workers, the same bits")] = "local",
    workers: Annotated[int, Option(help="workers of the processes engine")] = 2,
    resume: Annotated[bool, Option("--resume", help="go on with the run in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the run in the folder")] = False,
    maps: Annotated[list[Path] | None, Option(help="measure saved maps (.npz, .safetensors) instead; may be repeated")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary")] = False,
) -> None:
    """Measure what every head attends to, in one streaming pass over a corpus.

    headscope run --out RUN
    headscope run --model bert-base-uncased --corpus en.conllu.xz --out RUN
    headscope run --corpus wiki.jsonl --preset reference -O tokens.groups='["sep","=the|a"]'
    headscope run study.toml --resume
    headscope run --maps saved1.npz --maps saved2.npz --out RUN
    """
    from headscope.cli.options import measure_options, names, numbers
    from headscope.runs.spec import make_spec, read_spec

    settings: dict[str, Any] = read_spec(spec) if spec is not None else {}
    out = out or (Path(settings.pop("out")) if "out" in settings else None)
    given = {
        "model": model, "corpus": corpus or None, "preset": preset, "unit": unit, "max_length": max_length, "overlong": overlong,
        "segment_ids": segment_ids, "layers": numbers(layers) if layers else None, "limit": limit, "format": format,
        "on_error": on_error, "replicates": replicates, "seed": seed, "batch_tokens": batch_tokens, "dtype": dtype,
    }  # fmt: skip
    settings |= {name: value for name, value in given.items() if value is not None}
    if measures is not None:
        settings["measures"] = names(measures)
    where = str(spec) if spec is not None else "the options"
    chosen = make_spec(settings, where).measures
    extra = measure_options(option or [])
    settings["measures"] = {
        name: {**chosen.get(name, {}), **extra.get(name, {})} for name in [*chosen, *(n for n in extra if n not in chosen)]
    }
    final = make_spec(settings, where)
    if maps:
        results = _from_maps(maps, final, out or Path("runs/maps"), overwrite)
    else:
        from headscope.cli.progress import bar
        from headscope.runs.execute import execute

        folder = out or Path("runs") / "-".join(Path(name).name.split(".")[0] for name in (final.model, final.corpus[0]))
        with bar("measuring", hidden=quiet) as progress:
            results = execute(
                final,
                folder,
                device=device,
                engine=engine,  # type: ignore[arg-type]
                workers=workers,
                resume=resume,
                overwrite=overwrite,
                progress=progress,
            )
    if not quiet:
        summarise(results)


def _from_maps(paths: list[Path], spec: RunSpec, out: Path, overwrite: bool) -> Results:
    from headscope.runs.maps import measure_maps, read_maps

    spec = spec.resolved(pairs=False)
    return measure_maps(
        [read_maps(path) for path in paths],
        spec.measures,
        preset=spec.preset,
        rows=spec.word_rows or "mean",
        replicates=spec.replicates,
        seed=spec.seed,
        out=out,
        overwrite=overwrite,
    )


def summarise(results: Results) -> None:
    """Print what was measured and what stands out."""
    from rich.console import Console

    console = Console(highlight=False)
    counts = results.manifest["counts"]
    console.print("  ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n))
    for line in results.manifest["dropped"]:
        console.print(f"passed over: {line}", style="dim", soft_wrap=True, markup=False)
    for name in results.measures:
        table = results[name]
        for quantity in dict.fromkeys(table["quantity"]):
            rows = table.where(quantity=quantity)
            top = [row for row in rows.sort("value", descending=True).head(3) if row["n"] and row["value"] > 1e-4]
            if top:
                heads = ", ".join(f"{row['layer']}-{row['head']} {row['value']:.2f}" for row in top)
                console.print(f"{quantity:>14}  {heads}  [dim](even {top[0]['baseline']:.2f})[/dim]")
    console.print(results.signature, style="dim", soft_wrap=True, markup=False)
    console.print(f"\nheadscope show {results.path}\nheadscope report {results.path}")
