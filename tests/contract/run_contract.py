"""`make contract`: compare capture with eager attention for every architecture in the installed transformers, and write
the table of docs/models.md. The maps of each architecture must be equal, or it must be refused with a reason.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import torch
import transformers
from tiny import architectures
from transformers.utils import logging
from verdict import Verdict, judge

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- contract: begin -->", "<!-- contract: end -->"


def table(text: list[Verdict], other: list[Verdict]) -> str:
    """The verdicts as Markdown: of architectures of text, and of others."""
    lines = [f"Made by `make contract` with transformers {transformers.__version__}.", ""]
    lines += ["| architectures | equal | refused, with the reason | not built here |", "|---|---|---|---|"]
    for what, verdicts in (("of text", text), ("of text and images or sound, given text alone", other)):
        count = Counter(verdict.state for verdict in verdicts)
        lines.append(f"| {what} ({len(verdicts)}) | {count['equal']} | {count['refused']} | {count['not built']} |")
    equal = [verdict for verdict in text if verdict.state == "equal"]
    for how, heading in (("interface", "Equal, layer by layer"), ("outputs", "Equal, all layers at once")):
        names = [verdict.name for verdict in equal if verdict.how == how]
        lines += ["", f"**{heading}** ({len(names)}): {', '.join(f'`{name}`' for name in names)}."]
    names = [verdict.name for verdict in equal if verdict.how == "interface" and not verdict.without_maps]
    count_without = sum(verdict.without_maps for verdict in equal)
    lines += ["", f"**Without maps** ({count_without}), when no measure needs them: all that are read layer by layer except "]
    lines[-1] += ", ".join(f"`{name}`" for name in names) + "."
    names = [verdict.name for verdict in other if verdict.state == "equal"]
    lines += ["", f"**Equal, with parts for images or sound that text does not reach** ({len(names)}): "]
    lines[-1] += ", ".join(f"`{name}`" for name in names) + "."
    for state, heading in (("refused", "Refused"), ("not built", "Not built from a default configuration, so not tried")):
        lines += ["", f"**{heading}**", "", "| architecture | reason |", "|---|---|"]
        lines += [f"| `{verdict.name}` | {verdict.why.replace('|', '/')} |" for verdict in (*text, *other) if verdict.state == state]
    return "\n".join(lines)


def main() -> int:
    """Judge the named architectures, or all; with all, write the table. Return 1 if the maps of any differ."""
    warnings.filterwarnings("ignore")
    logging.set_verbosity(logging.CRITICAL)
    torch.set_num_threads(1)
    named = sys.argv[1:]
    groups: dict[bool, list[Verdict]] = {True: [], False: []}
    for name, only_text in architectures():
        if not named or name in named:
            verdict = judge(name)
            groups[only_text].append(verdict)
            print(f"{verdict.state:9} {name:28} {verdict.why or f'{len(verdict.sites)} layers, {verdict.how}'}", flush=True)
    verdicts = groups[True] + groups[False]
    print(f"{sum(verdict.without_maps for verdict in groups[True])} of text alone are measured without maps")
    print(", ".join(f"{count} {state}" for state, count in Counter(verdict.state for verdict in verdicts).items()))
    if not named:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table(groups[True], groups[False])}\n{END}{after}", encoding="utf-8")
        print(f"the table is in {PAGE}")
    return int(any(verdict.state == "differs" for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
