"""The main results of a run in a few lines: after a run, and for `headscope show RUN`."""

from __future__ import annotations

import math

import typer

from headscope.cli.printing.text import print_text
from headscope.core.wording import number_of
from headscope.results.notes import choice_note, counted, cut_sentence, few_documents, note
from headscope.results.results import BASELINES, Results, blame_folder
from headscope.results.slices import slices_line


@blame_folder
def summarise(results: Results, quiet: bool = False) -> None:
    """Print what was measured and which heads stand out; `quiet` leaves only the warnings, on standard error."""
    if quiet:
        for line in results.warnings:
            typer.echo(f"headscope: warning: {line}", err=True)
        return
    from headscope.views.words import whose

    counts = results.manifest["counts"]
    print_text("  ".join(number_of(n, name.replace("_", " ").removesuffix("s")) for name, n in counts.items() if n))
    for way in results.manifest.get("readings", [])[1:]:
        measures = ", ".join(way["measures"])
        print_text(f"{measures}: {way['texts']:,} texts, one {way['unit']} each (too long: {way['overlong']})")
    if (slices := slices_line(results)) is not None:
        print_text(slices)
    if results.study is None:
        for line in whose(results):
            print_text(line)
    for label, lines in (("read", results.manifest.get("read", ())), ("left out", results.manifest["dropped"])):
        for line in lines:
            print_text(f"{label}: {line}", "dim")
    if (unknown := results.manifest.get("unknown_tokens", {"n": 0}))["n"]:
        print_text(f"unknown tokens: {unknown['n']:,} of {unknown['of']:,} ({unknown['share']:.1%})")
    for line in results.warnings:
        print_text(f"warning: {line}", "bold")
    if few := few_documents(results):
        print_text(few)
    if "summary" in results:
        _print_summary(results)
    if results.study is not None:
        _print_findings(results)
    for name in results.of_heads():
        if f"{name}_best" in results:
            _print_best(results, name)
        elif f"{name}_structure" in results:
            _print_alike(results)
        else:
            _print_top(results, name)
    print_text(results.signature, "dim")
    if results.path is not None:
        typer.echo(f"\nheadscope show {results.path}\nheadscope report {results.path}")


def _print_findings(results: Results) -> None:
    """Print the findings in sentences, and notes on the method."""
    from headscope.views.words import findings

    for line in (*findings(results), *results.manifest.get("notes", ())):
        print_text(line)
    typer.echo()


def _print_summary(results: Results) -> None:
    """Print the main results of a study."""
    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table
    from headscope.views.words import has_published, shown_columns

    columns = shown_columns(results["summary"])
    beside = ", and published values" if has_published(columns) else ""
    shown = Table.of({name: results["summary"][name] for name in columns})
    print_table(shown, f"\n{results.study}: results{beside}", all_columns=_shown_whole(results, "summary"))


def _print_top(results: Results, name: str) -> None:
    """Print the three highest heads of each quantity of a measure; quantities of saliency are marked, since other
    measures have the same names.
    """
    prefix, baseline, places = ("saliency ", "even", 5) if name == "saliency" else ("", BASELINES.get(name, "even"), 2)
    table = results[name]
    for quantity in dict.fromkeys(table["quantity"]):
        rows = table.where(quantity=quantity).sort("value", descending=True).head(3)
        top = [row for row in rows if row["n"] and row["value"] > 1e-4]
        if top:
            heads = ", ".join(f"{results.head_of(r)} {r['value']:.{places}f}" for r in top)
            even = sorted({round(row["baseline"], 2) for row in top if not math.isnan(row["baseline"])})
            beside = f"  ({baseline} {' to '.join(f'{value:.2f}' for value in even)})" if even else ""
            print_text(f"{prefix + quantity:>14}  {heads}{beside}")


def _print_alike(results: Results) -> None:
    """Print how likeness depends on layers, and the closest pairs, for each kind of attention with several heads."""
    from headscope.comparison.alike import STRUCTURE, layers_sentence, pairs_sentence

    kinds = list(dict.fromkeys(results[STRUCTURE]["kind"]))
    for kind in kinds:
        sentences = " ".join(filter(None, (layers_sentence(results, kind), pairs_sentence(results, kind))))
        print_text(f"\ndistances{'' if len(kinds) == 1 else f', {kind} attention'}: {sentences}")


def _print_best(results: Results, name: str) -> None:
    """Print the best head of each label, as in Clark et al.'s Table 1."""
    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table, interval, with_error

    best = results[f"{name}_best"]
    rows = list(best.head(20))
    columns = {
        "label": [row["label"] if results.layout.one_kind else f"{row['kind']} {row['label']}" for row in rows],
        "n (documents)": [f"{row['n']} ({counted(row.get('documents'))})" for row in rows],
        "best head": [row["heads"] or row["in_sample_head"] for row in rows],
        "direction": [row["direction"].replace("-to-", "→") or "–" for row in rows],
        "accuracy": [interval(row["value"], row["low"], row["high"]) for row in rows],
        "rule": [row["rule"] for row in rows],
        "its accuracy": [interval(row["baseline"], row["baseline_low"], row["baseline_high"]) for row in rows],
        "lift": [interval(row["lift"], row["lift_low"], row["lift_high"]) for row in rows],
        "in-sample": [f"{row['in_sample']:.2f}" for row in rows],
    }
    if any(row["chance"] == row["chance"] for row in rows):
        columns["chance"] = [with_error(row["chance"], row.get("chance_error")) for row in rows]
    more = f", the {len(rows)} most frequent of {len(best)}" if len(best) > len(rows) else ""
    fair = results.measures[name].get("selection") == "crossfit"
    how = f"chosen on {'other documents than' if fair else 'the documents'} it is scored on"
    cut = cut_sentence(results, name)
    print_table(
        Table.of(columns),
        f"\n{name}: the best head of each label, {how}{more}{'' if cut is None else f'. {cut}'}",
        "\n".join(filter(None, (note(row.get("documents") for row in rows), choice_note(results, name)))),
        _shown_whole(results, f"{name}_best"),
    )


def _shown_whole(results: Results, table: str) -> str:
    """The command that prints a table with all its columns."""
    return f"headscope show {results.path or 'RUN'} {table} --format tsv"
