"""What a run found, in a few lines: after a run, and for `headscope show RUN`."""

from __future__ import annotations

from headscope.core.heads import HeadId
from headscope.runs.results import Results


def summarise(results: Results) -> None:
    """Print what was measured and which heads stand out."""
    from rich.console import Console

    console = Console(highlight=False)
    counts = results.manifest["counts"]
    console.print("  ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n))
    for line in results.manifest["dropped"]:
        console.print(f"passed over: {line}", style="dim", soft_wrap=True, markup=False)
    for table in results.of_heads().values():
        for quantity in dict.fromkeys(table["quantity"]):
            rows = table.where(quantity=quantity).sort("value", descending=True).head(3)
            top = [row for row in rows if row["n"] and row["value"] > 1e-4]
            if top:
                heads = ", ".join(f"{HeadId(r['kind'], r['layer'] - 1, r['head'] - 1)} {r['value']:.2f}" for r in top)
                even = sorted({round(row["baseline"], 2) for row in top})
                console.print(f"{quantity:>14}  {heads}  (even {' to '.join(f'{value:.2f}' for value in even)})", markup=False)
    console.print(results.signature, style="dim", soft_wrap=True, markup=False)
    if results.path is not None:
        console.print(f"\nheadscope show {results.path}\nheadscope report {results.path}", soft_wrap=True, markup=False)
