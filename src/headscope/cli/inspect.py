"""`headscope inspect` and `headscope doctor`: what a model has to look at, and whether this installation works."""

from __future__ import annotations

from typing import Annotated

import typer

from headscope.models import EMBEDDED, MODEL_HELP


def inspect(
    model: Annotated[str, typer.Argument(help=MODEL_HELP)] = "mini",
    length: Annotated[int, typer.Option(help="tokens of a text, for the estimate of memory", min=1)] = 128,
    batch: Annotated[int, typer.Option(help="texts in a batch, for the estimate of memory", min=1)] = 32,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ... [default: cuda if there is one]")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16 weights")] = "float32",
) -> None:
    """Print a model's architecture, heads, key-value groups, how its attention is captured, and the memory that takes.

    headscope inspect
    headscope inspect bert-base-uncased --length 512 --batch 8
    """
    from headscope.cli.printing.tables import print_table
    from headscope.models.load import load
    from headscope.models.memory import estimate
    from headscope.results.table import Table

    loaded = load(model, device, dtype)
    network = loaded.network
    size = sum(parameter.numel() for parameter in network.parameters())
    typer.echo(f"{loaded.name}: {type(network).__name__}, {size / 1e6:.1f} million parameters, fingerprint {loaded.fingerprint}")
    typer.echo(
        f"inputs of up to {loaded.max_length or 'any number of'} tokens; {len(loaded.sites)} attention layers, {loaded.layout.size} heads"
    )
    how = {"interface": "streamed layer by layer", "outputs": "all layers at once (the model bypasses transformers' attention interface)"}
    typer.echo(f"maps are {how[loaded.capture]}")
    without = (
        "made for surface measures alone: texts of any length fit" if loaded.needs_maps is None else f"always made: {loaded.needs_maps}"
    )
    typer.echo(f"maps are {'not ' if loaded.needs_maps is None else ''}{without}")
    columns = {
        "layer": [site.name for site in loaded.sites],
        "heads": [site.heads for site in loaded.sites],
        "kv_heads": [site.kv_heads for site in loaded.sites],
        "module": [site.module for site in loaded.sites],
    }
    print_table(Table.of(columns), "attention")
    need = estimate(loaded, batch, length)
    typer.echo(f"memory for {batch} texts of {length} tokens: weights {need.weights / 1e6:,.0f} MB, maps {need.maps / 1e6:,.0f} MB")
    typer.echo(f"(one layer's maps are {need.layer / 1e6:,.0f} MB; all layers together would be {need.everything / 1e6:,.0f} MB)")


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
    typer.echo("something is wrong; reinstall headscope" if problems else "all is well")
    raise typer.Exit(1 if problems else 0)
