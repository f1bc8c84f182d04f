"""What `headscope corpus check` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer

from headscope.core.automatic import sentence, summed_up
from headscope.corpora import Finding
from headscope.corpora.automatic import marks
from headscope.corpora.formats import resolve
from headscope.errors import CorpusError


def print_findings(findings: Sequence[Finding], paths: Sequence[str], limit: int) -> bool:
    """Print findings, at most `limit` of a rule unless it is 0, and how often each rule is broken; whether more than notes were found."""
    printed: Counter[str] = Counter()
    for finding in findings:
        printed[finding.rule] += 1
        if not limit or printed[finding.rule] <= limit:
            typer.echo(str(finding))
    if len(printed) > 1 or (limit and len(findings) > limit):
        _print_counts(findings)
    if limit and max(printed.values(), default=0) > limit:
        typer.echo(f"At most {limit} findings of a rule are printed; --limit 0 prints all.")
    wrong = [finding for finding in findings if not finding.note]
    files = ", ".join(Path(path).name for path in paths) if len(paths) <= 5 else f"{len(paths)} files"
    notes = f", {_number(len(findings) - len(wrong), 'note')}" if len(findings) > len(wrong) else ""
    typer.echo(f"{files}: {_number(len(wrong), 'finding') if wrong else 'nothing wrong'}{notes}")
    return bool(wrong)


def whose(paths: Sequence[str]) -> dict[str, str]:
    """What is said of each file that a parser annotated, as far as it can be read."""
    found = {}
    for path in resolve(tuple(paths)):
        try:
            summary = summed_up(marks(path))
        except CorpusError:  # which the check has found, too
            continue
        if summary is not None:
            found[path.name] = sentence(summary)
    return found


def _print_counts(findings: Sequence[Finding]) -> None:
    from headscope.cli.tables import print_table
    from headscope.corpora.checks import RULES
    from headscope.results.table import Table

    counts = sorted(Counter(finding.rule for finding in findings).items(), key=lambda item: (RULES[item[0]].note, -item[1], item[0]))
    rules = [RULES[name] for name, _ in counts]
    columns = {
        "rule": [rule.name for rule in rules],
        "level": [rule.level for rule in rules],
        "kind": ["note" if rule.note else "wrong" for rule in rules],
        "n": [n for _, n in counts],
    }
    print_table(Table.of(columns), "\nbroken rules")


def _number(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
