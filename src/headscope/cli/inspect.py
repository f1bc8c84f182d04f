"""`headscope inspect` and `headscope doctor`: what a model is, and whether this installation works."""

from __future__ import annotations

from typing import Annotated

import typer

from headscope.models import EMBEDDED, MODEL_HELP


def inspect(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)] = "mini",
    length: Annotated[list[int] | None, typer.Option(help="tokens per text, for one more row of the table of memory", min=1)] = None,
    batch: Annotated[int, typer.Option(help="texts per batch, for the table of memory", min=1)] = 1,
    layers: Annotated[bool, typer.Option("--layers", help="list the layers and their modules as well")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ... [default: cuda if available]")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16 weights")] = "float32",
) -> None:
    """Print what a model is, how its attention is read and verified, what it predicts, and the memory that texts take.

    headscope inspect
    headscope inspect bert-base-uncased --length 300 --batch 8
    headscope inspect ./my-model --layers
    """
    from headscope.api import inspect as summary_of
    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table

    summary = summary_of(model, device, dtype, lengths=length or (), batch=batch)
    typer.echo(str(summary))
    if layers:
        columns = {
            "layer": [site.name for site in summary.sites],
            "heads": [site.heads for site in summary.sites],
            "kv_heads": [site.kv_heads for site in summary.sites],
            "module": [site.module for site in summary.sites],
        }
        print_table(Table.of(columns), "attention")


def doctor() -> None:
    """Check this installation: versions, the embedded models, capture on them, devices. Exits with 1 if something is
    wrong.
    """
    import os
    import platform
    import time

    import torch

    from headscope.corpora import check
    from headscope.errors import HeadscopeError
    from headscope.models.load import load, verify_embedded
    from headscope.results.signature import versions

    typer.echo(f"python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors")
    typer.echo(", ".join(f"{name} {version}" for name, version in versions().items()))
    devices = [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    typer.echo(f"devices: cpu{', ' + ', '.join(devices) if devices else ''}; torch uses {torch.get_num_threads()} threads")
    problems = []
    try:
        for name in EMBEDDED:
            verify_embedded(name)
            started = time.perf_counter()
            model = load(name)
            seconds = f"{time.perf_counter() - started:.1f} s"
            typer.echo(f"embedded model {name}: whole, loads in {seconds}, {model.layout.size} heads, capture by {model.capture}")
    except HeadscopeError as error:
        problems.append(str(error))
    findings = check(["sampler"])
    typer.echo(f"embedded corpus: {len(findings)} findings")
    problems += [str(finding) for finding in findings]
    for problem in problems:
        typer.echo(f"wrong: {problem}")
    typer.echo("a check failed; reinstall headscope" if problems else "no problem was found")
    raise typer.Exit(1 if problems else 0)
