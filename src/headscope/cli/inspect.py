"""`headscope inspect`: what a model has to look at, before looking."""

from __future__ import annotations

from typing import Annotated

import typer


def inspect(
    model: Annotated[str, typer.Argument(help="mini (embedded), a local folder, or a hub id")] = "mini",
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
