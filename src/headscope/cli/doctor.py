"""`headscope doctor`: whether everything is here, and works."""

from __future__ import annotations

import typer


def doctor() -> None:
    """Check this installation: versions, the embedded model, capture on it, devices. Exits with 1 if something is
    wrong.
    """
    import os
    import platform
    import time

    import torch

    from headscope.corpora import check
    from headscope.errors import HeadscopeError
    from headscope.models.load import load, verify_mini
    from headscope.results.signature import versions

    typer.echo(f"python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors")
    typer.echo(", ".join(f"{name} {version}" for name, version in versions().items()))
    devices = [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    typer.echo(f"devices: cpu{', ' + ', '.join(devices) if devices else ''}; torch uses {torch.get_num_threads()} threads")
    problems = []
    try:
        verify_mini()
        started = time.perf_counter()
        model = load()
        typer.echo(
            f"embedded model: whole, loads in {time.perf_counter() - started:.1f} s, {model.layout.size} heads, capture by {model.capture}"
        )
    except HeadscopeError as error:
        problems.append(str(error))
    findings = check(["sampler"])
    typer.echo(f"embedded corpus: {len(findings)} findings")
    problems += [str(finding) for finding in findings]
    for problem in problems:
        typer.echo(f"wrong: {problem}")
    typer.echo("something is wrong; reinstall headscope" if problems else "all is well")
    raise typer.Exit(1 if problems else 0)
