"""`headscope twins`: whether the heads of one model have twins in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.studies.twins.heads import Twins

Option = typer.Option


def twins(
    a: Annotated[str, typer.Argument(help="mini (embedded), a local folder, or a hub id")],
    b: Annotated[str, typer.Argument(help="the model to look for twins in, and whose heads may have some in the first")],
    corpus: Annotated[list[str] | None, Option(help="file, or 'sampler' (embedded); may be repeated [default: sampler]")] = None,
    level: Annotated[str, Option(help="word, or token for models that read the same tokens")] = "word",
    kind: Annotated[
        str | None, Option(help="encoder or decoder, or one for each: encoder,decoder [default: that with the most heads]")
    ] = None,
    control: Annotated[bool, Option("--control", help="compare with untrained copies, too; takes three times as long")] = False,
    epsilon: Annotated[
        list[float] | None, Option(help="how close twins must be, in nats; may be repeated [default: 0.02, 0.05, 0.1]")
    ] = None,
    least: Annotated[float, Option(help="heads that give less of their attention to words are marked as faint")] = 0.1,
    unit: Annotated[str | None, Option(help="what one text is: sentence, paragraph, document, pair, segment [default: sentence]")] = None,
    max_length: Annotated[int, Option(help="tokens a text may have, with either model; longer ones are left out")] = 128,
    limit: Annotated[int | None, Option(help="stop after so many texts", min=1)] = None,
    word_rows: Annotated[str, Option(help="a word's row: mean of its tokens' rows, first, or max")] = "mean",
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 500,
    seed: Annotated[int, Option(help="seed of the bootstrap and of untrained weights")] = 0,
    batch_tokens: Annotated[int | None, Option(help="tokens in a batch [default: 2048, on a GPU 32768]", min=1)] = None,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    pairs: Annotated[int, Option(help="print so many of the closest pairs of twins", min=1)] = 10,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for tables (.csv and .parquet) and the figure (.svg)")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, nothing printed but where files are")] = False,
) -> None:
    """Say whether the heads of two models have twins in each other: heads that attend alike on the same texts.

    headscope twins mini bert-base-uncased
    headscope twins mini ./my-bert --corpus en.conllu --control --out TWINS
    headscope twins bert-base-uncased gpt2 --kind encoder,decoder --limit 500
    headscope twins ./seed-1 ./seed-2 --level token --epsilon 0.03
    """
    from headscope.cli.options import names
    from headscope.cli.progress import bar
    from headscope.core.paths import kind_of, problem_of
    from headscope.errors import RunError
    from headscope.studies.twins.study import EPSILONS
    from headscope.studies.twins.study import twins as find

    kinds = names(kind) if kind is not None else []
    if len(kinds) > 2:
        raise RunError(f"{kind!r} names {len(kinds)} kinds", "Name one, or one for each of the two models")
    if out is not None and kind_of(out) != "missing" and (wrong := problem_of(out, "folder")):
        raise RunError(f"{out}: {wrong[0]}", wrong[1])
    with bar("comparing", hidden=quiet) as progress:
        found = find(
            a,
            b,
            corpus or "sampler",
            level=level,  # type: ignore[arg-type]
            kind=tuple(kinds * 2)[:2] or None,  # type: ignore[arg-type]
            control=control,
            epsilons=epsilon or EPSILONS,
            least=least,
            unit=unit,  # type: ignore[arg-type]
            max_length=max_length,
            limit=limit,
            word_rows=word_rows,  # type: ignore[arg-type]
            replicates=replicates,
            seed=seed,
            batch_tokens=batch_tokens,
            device=device,
            dtype=dtype,
            format=format,
            progress=progress,
        )
    if not quiet:
        _print(found, pairs)
    if out is not None:
        from headscope.studies.twins.figures import save

        for path in save(found, out):
            typer.echo(path)


def _print(found: Twins, count: int) -> None:
    from rich.console import Console

    from headscope.cli.tables import print_table
    from headscope.results.table import Table
    from headscope.studies.twins.findings import sentences

    console = Console(highlight=False)

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, soft_wrap=True, markup=False)

    for line in sentences(found):
        say(line)
    heads = {(row["layer"], row["head"]): row for row in found.table().where(side="a")}
    rows = [heads[first.layer + 1, first.head + 1] for first, _, _ in found.mutual()[:count]]
    if rows:
        columns = {
            found.a.name: [f"{row['layer']}-{row['head']}" for row in rows],
            found.b.name: [row["twin"] for row in rows],
            **{name: [row[name] for row in rows] for name in ("distance", "low", "high", "support", "own_distance", "words")},
        }
        print_table(Table.of(columns), f"\nthe {len(rows)} closest pairs of each other's twins")
    for label, lines, style in (("warning", found.warnings, "bold"), ("read", found.read, "dim"), ("left out", found.dropped, "dim")):
        for line in lines:
            say(f"{label}: {line}", style)
    say(found.signature, "dim")
