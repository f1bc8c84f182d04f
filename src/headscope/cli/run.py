"""`headscope run`: measure a model's heads over a corpus; and `headscope rerun`: repeat a run or a study."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from headscope.cli.help import Command, measure_summaries
from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from headscope.engine.spec import RunSpec
    from headscope.results.results import Results

Option = typer.Option


class RunCommand(Command):
    """`headscope run`, whose help lists the measures."""

    lists: ClassVar = {"Measures": measure_summaries}


def run(
    spec: Annotated[Path | None, typer.Argument(help="TOML file with settings; options override it")] = None,
    model: Annotated[str | None, Option(help=f"{MODEL_HELP} [default: mini]")] = None,
    corpus: Annotated[
        list[str] | None,
        Option(
            help="file, folder, - (standard input), 'sampler', 'repeats:50' (random sequences, twice) or 'needles:96' (facts in texts); "
            "may be repeated [default: sampler]"
        ),
    ] = None,
    measures: Annotated[
        str | None, Option(help="measures listed below, or your own: FILE.py:CLASS [default: positions,tokens,entropy]")
    ] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/MODEL-CORPUS]")] = None,
    option: Annotated[list[str] | None, Option("--option", "-O", help="option of a measure: -O entropy.level=word")] = None,
    folds: Annotated[
        int | None,
        Option(help="cross-fitting folds: each part of the documents scores the heads that are best on all other parts [default: 2]"),
    ] = None,
    preset: Annotated[str | None, Option(help="recommended, paper, or reference (what the released code did)")] = None,
    unit: Annotated[str | None, Option(help="unit of input: sentence, paragraph, document, pair, segment")] = None,
    max_length: Annotated[int | None, Option(help="longest input, in tokens [default: 128]")] = None,
    overlong: Annotated[str | None, Option(help="longer texts: drop, truncate, window, error [default: drop]")] = None,
    word_rows: Annotated[str | None, Option(help="row of a word: mean of its tokens' rows, first, or max [default: mean]")] = None,
    segment_ids: Annotated[str | None, Option(help="pair (0 and 1) or zeros, for two-part inputs")] = None,
    layers: Annotated[str | None, Option(help="only these layers, counted from 1: 1-4,12")] = None,
    limit: Annotated[int | None, Option(help="stop after this many texts; 0: all of them [default: all]")] = None,
    generate: Annotated[
        int | None, Option(help="let the model continue each text by this many tokens, and measure both together (decoders)")
    ] = None,
    prompt_tokens: Annotated[
        int | None, Option(help="with --generate: cut each text after this many tokens, at the end of a word [default: the whole text]")
    ] = None,
    temperature: Annotated[
        float | None, Option(help="with --generate: sample tokens, with --seed, instead of the most probable one [default: 0]")
    ] = None,
    by: Annotated[str | None, Option(help="column of the documents (genre, label, length): also all tables for each of its values")] = None,
    format: Annotated[str | None, Option("--corpus-format", help="corpus format, if the file name does not show it")] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    allow_unknown: Annotated[
        bool | None, Option("--allow-unknown", help="measure words even if over 30 % of the tokens are unknown to the model")
    ] = None,
    on_error: Annotated[
        str | None, Option(help="what to do with bad sentences and texts on which the model fails: raise an error, or skip and count them")
    ] = None,
    replicates: Annotated[int | None, Option(help="bootstrap replicates for intervals [default: 500]")] = None,
    seed: Annotated[
        int | None, Option(help="random seed of the bootstrap, of segment construction and of --temperature [default: 0]")
    ] = None,
    batch_tokens: Annotated[int | None, Option(help="tokens per batch [default: 2048, on a GPU 32768]")] = None,
    shard_tokens: Annotated[int | None, Option(help="tokens between two checkpoints [default: 8 batches on a CPU, 32 on a GPU]")] = None,
    dtype: Annotated[str | None, Option(help="float32, float16 or bfloat16 weights [default: float32]")] = None,
    weights: Annotated[str | None, Option(help="trained, or random: a control, with all weights but the embeddings redrawn")] = None,
    map_: Annotated[
        str | None,
        Option("--map", help="maps to measure: attention weights, norm (of what heads carry), or value-zeroing [default: weights]"),
    ] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")] = None,
    engine: Annotated[
        str, Option(help="local, processes, or ray: several workers on one machine or many, with identical results")
    ] = "local",
    workers: Annotated[int, Option(help="workers of the engines processes and ray", min=1)] = 2,
    address: Annotated[str | None, Option(help="HOST:PORT of a Ray cluster, or auto [default: start a new Ray]")] = None,
    gpus_per_worker: Annotated[float | None, Option(help="GPUs per Ray worker [default: one, or a share if there are fewer]")] = None,
    readers: Annotated[
        int | None,
        Option(help="processes that read and encode texts ahead of the model; 0: none [default: 0, with a GPU up to 8]", min=0),
    ] = None,
    gallery: Annotated[int, Option(help="texts from which the gallery is chosen; 0: no gallery", min=0)] = 96,
    resume: Annotated[bool, Option("--resume", help="continue the run in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the run in the folder")] = False,
    plan: Annotated[bool, Option("--plan", help="print what the run would do and how long it would take, without running it")] = False,
    tried: Annotated[int, Option(help="shards that --plan runs to estimate the time; 0: none", min=0)] = 3,
    maps: Annotated[list[Path] | None, Option(help="measure saved maps (.npz, .safetensors) instead; may be repeated")] = None,
    causal: Annotated[bool | None, Option("--causal/--not-causal", help="whether --maps are causal [default: detected]")] = None,
    profile: Annotated[bool, Option("--profile", help="print where the time went: seconds and share of each part")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Measure what every head attends to, in one streaming pass over a corpus.

    headscope run --out RUN
    headscope run --model bert-base-uncased --corpus en.conllu.xz --out RUN
    headscope run --corpus en.conllu.xz --measures relations --out RUN
    headscope run --corpus en.conllu.xz --measures relations --weights random --out CHANCE
    headscope run --corpus en.conllu.xz --measures relations --map norm --out NORM
    headscope run --corpus en.conllu.xz --by genre --out RUN
    headscope run --model mini-decoder --corpus repeats:50 --measures sequences --out RUN
    headscope run --model mini-decoder --measures sinks,entropy --generate 40 --prompt-tokens 16 --out WRITTEN
    headscope run --corpus wiki.jsonl --preset reference -O tokens.groups='["sep","=the|a"]'
    headscope run --corpus 'posts.parquet?text=body&id=post' --out POSTS
    zcat notes.txt.gz | headscope run --corpus - --out NOTES
    headscope run study.toml --resume
    headscope run study.toml --plan
    headscope run study.toml --engine ray --address auto --workers 8
    headscope run --maps saved1.npz --maps saved2.npz --out RUN
    """
    from headscope.cli.options import numbers
    from headscope.cli.printing.summary import summarise
    from headscope.core.paths import default_folder
    from headscope.errors import RunError

    format = format or old_format
    settings = {
        "model": model, "corpus": corpus or None, "preset": preset, "unit": unit, "max_length": max_length, "overlong": overlong,
        "segment_ids": segment_ids, "word_rows": word_rows, "layers": None if layers is None else numbers(layers), "limit": limit,
        "format": format, "on_error": on_error, "replicates": replicates, "seed": seed, "batch_tokens": batch_tokens,
        "shard_tokens": shard_tokens, "dtype": dtype, "weights": weights, "allow_unknown": allow_unknown, "by": by, "map": map_,
        "generate": generate, "prompt_tokens": prompt_tokens, "temperature": temperature,
    }  # fmt: skip
    final, folder = _settings(spec, settings, measures, option or [], folds)
    if plan and not maps:
        _plan(final, quiet, device, None if engine == "local" else workers, tried, readers)
        return
    if maps:
        if plan:
            raise RunError("--plan does not work with --maps", "Omit one of them")
        if resume or limit is not None or layers is not None or profile:
            raise RunError("--resume, --limit, --layers and --profile do not work with --maps", "Omit them")
        if final.generate is not None:
            raise RunError("--generate does not work with --maps, which are of given texts", "Omit one of them")
        if final.map != "weights":
            raise RunError(f"--map {final.map} needs a model, and --maps are measured as they are", "Omit one of them")
        if final.by is not None:
            raise RunError(f"saved maps have no column {final.by!r}, since they have no corpus", "Omit --by, or run on a corpus")
        results = _from_maps(maps, final, causal, out or folder or Path("runs/maps"), overwrite, gallery)
    else:
        usual = default_folder(final.model, final.corpus[0])
        who = {"device": device, "engine": engine, "workers": workers, "address": address, "gpus_per_worker": gpus_per_worker}
        who["readers"] = readers
        results = _execute(final, out or folder or usual, quiet, who, resume, overwrite, gallery, profile)
    summarise(results, quiet)


def _settings(
    spec: Path | None, flags: dict[str, Any], measures: str | None, options: list[str], folds: int | None
) -> tuple[RunSpec, Path | None]:
    """The settings of a file, overridden by those of the command line; and the folder that the file names."""
    from headscope.cli.options import measure_options, names
    from headscope.engine.spec import make_spec, read_spec
    from headscope.errors import RunError
    from headscope.measures import REGISTRY
    from headscope.measures.own import named

    settings: dict[str, Any] = read_spec(spec) if spec is not None else {}
    out = settings.pop("out", None)
    settings |= {name: value for name, value in flags.items() if value is not None}
    own_measures: tuple[str, ...] = ()
    if measures is not None:
        settings["measures"], own_measures = named(names(measures), REGISTRY)
    where = str(spec) if spec is not None else "the options"
    chosen = {name: dict(values) for name, values in make_spec(settings, where, own_measures).measures.items()}
    if folds is not None:
        choosing = [name for name in chosen if hasattr(REGISTRY.get(name), "folds")]
        if not choosing:
            raise RunError("--folds is only for measures that choose best heads", "Add relations, coreference or pronouns to --measures")
        for name in choosing:
            chosen[name]["folds"] = folds
    for name, values in measure_options(options).items():
        chosen.setdefault(name, {}).update(values)
    return make_spec({**settings, "measures": chosen}, where, own_measures), Path(out) if out is not None else None


def _execute(
    spec: RunSpec, out: Path, quiet: bool, who: dict[str, Any], resume: bool, overwrite: bool, gallery: int, profile: bool
) -> Results:
    from headscope.cli.printing.progress import bar, interrupted
    from headscope.core.profile import profiling, timing

    with profiling() if profile else nullcontext() as times:
        with timing("importing libraries"):
            from headscope.runs.execute import execute
        gc.freeze()  # libraries stay: the garbage collector need not scan them
        with interrupted(out), bar("measuring", hidden=quiet) as progress:
            results = execute(spec, out, **who, resume=resume, overwrite=overwrite, progress=progress, gallery=gallery)
        if times is not None:
            typer.echo("\n".join([*times.lines(), ""]))
    return results


def _plan(spec: RunSpec, quiet: bool, device: str | None, workers: int | None, tried: int, readers: int | None) -> None:
    from headscope.cli.printing.progress import bar
    from headscope.runs.estimate import plan_run

    with bar("planning", hidden=quiet) as progress:
        planned = plan_run(spec, device=device, tried=tried, readers=readers, progress=progress)
    for line in planned.lines(workers):
        typer.echo(line)


def _from_maps(paths: list[Path], spec: RunSpec, causal: bool | None, out: Path, overwrite: bool, gallery: int) -> Results:
    from headscope.runs.given_maps import measure_maps, read_maps

    spec = spec.resolved(pairs=False)
    return measure_maps(
        [read_maps(path) for path in paths],
        spec.measures,
        preset=spec.preset,
        rows=spec.word_rows or "mean",
        causal=causal,
        replicates=spec.replicates,
        seed=spec.seed,
        out=out,
        overwrite=overwrite,
        gallery=gallery,
    )


def rerun(
    run: Annotated[Path, typer.Argument(help="folder of a run or a study")],
    out: Annotated[
        Path | None, Option("--out", "-o", help="folder for the new one [default: beside the old one, and removed if identical]")
    ] = None,
    model: Annotated[str | None, Option(help="where the model is now, if it moved")] = None,
    other: Annotated[str | None, Option(help="where the other model of twins is now, if it moved")] = None,
    corpus: Annotated[list[str] | None, Option(help="where the corpus is now; may be repeated")] = None,
    dev: Annotated[list[str] | None, Option(help="where the dev corpus of a study is now; may be repeated")] = None,
    look: Annotated[list[str] | None, Option(help="where the corpus of probe edge --look is now; may be repeated")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: as in the original]")] = None,
    engine: Annotated[str, Option(help="local, or processes: several workers, with identical results")] = "local",
    workers: Annotated[int, Option(help="workers of the processes engine", min=1)] = 2,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, and no output if identical")] = False,
) -> None:
    """Repeat a run or a study with its own settings, and compare every table and state with the original.

    headscope rerun RUN
    headscope rerun RUN --out AGAIN --corpus moved/en.conllu
    headscope rerun STUDY --device cpu

    The model and the corpus must be unchanged: their hashes are compared before anything is computed. The exit code is
    0 if everything is identical to the last bit, and else 1. Then the new folder is kept, and the differences are
    printed, with their sizes and with any change of versions, device or number of threads.
    """
    from headscope.api import rerun as again
    from headscope.cli.printing.progress import bar, exit_code, print_line
    from headscope.cli.printing.tables import print_table

    def notify(line: str) -> None:
        typer.echo(f"headscope: {line}", err=True)

    try:
        with bar("rerunning", hidden=quiet) as progress:
            outcome = again(
                run, out, model=model, other=other, corpus=corpus, dev=dev, look=look, device=device, engine=engine, workers=workers,
                progress=progress, notify=notify,
            )  # fmt: skip
    except KeyboardInterrupt as error:
        kept = f"finished parts are kept in {out}" if out is not None else "nothing is kept"
        print_line(f"interrupted; {kept}")
        raise typer.Exit(exit_code(error)) from None
    if outcome.identical and quiet:
        return
    for line in outcome.lines():
        typer.echo(line)
    if outcome.same.differences:
        print_table(outcome.same.table(), "what differs")
    if outcome.kept is not None:
        typer.echo(f"the new results are in {outcome.kept}")
    if not outcome.identical:
        raise typer.Exit(1)
