"""The time that the command line takes to answer (part g), compared with a Python that only imports typer, which it
needs in any case.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from common import Row, interleaved, ratio, spread

_HELP = "import sys; sys.argv = ['headscope', {verb}'--help']; from headscope.cli.main import main; main()"
WORK = {"typer": "import typer", "help": _HELP.format(verb=""), "alike": _HELP.format(verb="'alike', ")}


def rows(quick: bool = False) -> list[Row]:
    """`headscope --help`, and that of a verb, each in a separate process."""

    def start(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    times = interleaved({name: lambda code=code: start(code) for name, code in WORK.items()}, 3 if quick else 15)  # type: ignore[misc]
    return [
        Row("g", "`headscope --help` / `import typer`", ratio(times, "help", "typer"), note=spread(times, "help", "typer")),
        Row("g", "`headscope alike --help` / `import typer`", ratio(times, "alike", "typer"), note=spread(times, "alike", "typer")),
        Row("g", "`headscope --help`", 1000 * statistics.median(times["help"]), "ms", most=500),
    ]
