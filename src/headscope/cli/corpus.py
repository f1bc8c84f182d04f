"""`headscope corpus`: what is in a corpus, whether it is valid, and how two annotations of it agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.cli.help import Command, CommandGroup, with_metavars
from headscope.cli.options import examples
from headscope.cli.printing.text import print_text
from headscope.corpora import Finding
from headscope.corpora.automatic import marks, sentence, summed_up
from headscope.corpora.inputs import resolve
from headscope.errors import CorpusError

if TYPE_CHECKING:
    from headscope.corpora.agreement import AgreementReport, AnnotationDifference
    from headscope.corpora.agreement.scores import AgreementScore
    from headscope.results.table import Table

app = typer.Typer(cls=CommandGroup, help="Look at a corpus before running a model over it.", no_args_is_help=True, rich_markup_mode=None)


def stats(
    paths: Annotated[list[str], typer.Argument(help="files, folders, - for standard input, or 'sampler'")],
    format: Annotated[
        str | None,
        typer.Option("--corpus-format", help="conllu, conll2012, jsonl, bio, spans or another, if the file name does not show it"),
    ] = None,
    old_format: Annotated[str | None, typer.Option("--format", hidden=True)] = None,
    on_error: Annotated[str, typer.Option(help="what to do with bad sentences: raise an error, or skip and count them")] = "raise",
    model: Annotated[str, typer.Option(help="model whose tokenizer counts split words and overlong texts; 'none' for neither")] = "mini",
    unit: Annotated[str | None, typer.Option(help="unit of input: sentence, paragraph, document, pair, segment")] = None,
    max_length: Annotated[int, typer.Option(help="longest input, in tokens")] = 128,
    beside: Annotated[list[str] | None, typer.Option(help="another corpus, in a column beside the first; may be repeated")] = None,
    every_label: Annotated[bool, typer.Option("--all", help="every relation and tag, not the 20 most frequent")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="tables in Markdown, to standard output")] = False,
) -> None:
    """Print sizes, trees, tags, coreference, labelled spans, split words, and what a run would drop; of several
    corpora, side by side.

    headscope corpus stats en.conllu.xz
    zcat reviews.jsonl.gz | headscope corpus stats - --corpus-format jsonl
    headscope corpus stats wiki.jsonl --model bert-base-uncased --max-length 512
    headscope corpus stats sampler --beside en_ewt-ud-dev.conllu.xz --beside en_gum-ud-dev.conllu.xz
    headscope corpus stats sampler --beside en.conllu --all --model none --markdown > table.md
    """
    from headscope.cli.corpus_stats import TokenCounter, named, print_side_by_side, print_stats
    from headscope.corpora import read

    format = format or old_format
    corpora = named([paths, *([path] for path in beside or [])])
    opened = {name: read(*files, format=format, on_error=on_error) for name, files in corpora.items()}  # type: ignore[arg-type]
    tokenizer = None if model == "none" else TokenCounter(model, unit, max_length)
    if len(opened) > 1 or markdown:
        print_side_by_side(opened, tokenizer, every_label, markdown)
    else:
        print_stats(next(iter(opened.values())), tokenizer, every_label)


def check(
    paths: Annotated[list[str], typer.Argument(help="CoNLL-U or CoNLL-2012 files, folders of them, - for standard input, or 'sampler'")],
    level: Annotated[
        int, typer.Option(min=1, max=3, help="1: the layout of the file; 2: also columns, comments and trees; 3: also UD's guidelines")
    ] = 3,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULE", help="a rule to skip; may be repeated")] = None,
    limit: Annotated[int, typer.Option(min=0, help="findings to print per rule; 0: all")] = 20,
) -> None:
    """Validate CoNLL-U files, their coreference brackets and keyphrases, or CoNLL-2012 files; exit with 1 if anything
    is wrong.

    headscope corpus check mine.conllu
    headscope corpus check train.conllu.gz dev.conllu.gz --level 2
    headscope corpus check mine.conllu --ignore mention-head --ignore newdoc-missing
    headscope corpus check mine.conllu --limit 0 > findings.txt

    Each line names the place, the sentence, the rule, what is wrong, and what to do. A note marks something unusual
    that may be right; notes do not count as wrong. docs/checking.md explains all rules.
    """
    from headscope.corpora import check as check_files

    wrong = print_findings(check_files(paths, level, ignore or ()), paths, limit)
    for name, annotation in whose(paths).items():
        print_text(f"{name}: {annotation}")
    if wrong:
        raise typer.Exit(1)


def print_findings(findings: Sequence[Finding], paths: Sequence[str], limit: int) -> bool:
    """Print findings, at most `limit` per rule (0: all), and counts of rules. Return whether any is not just a note."""
    printed: Counter[str] = Counter()
    for finding in findings:
        printed[finding.rule] += 1
        if not limit or printed[finding.rule] <= limit:
            typer.echo(str(finding))
    if len(printed) > 1 or (limit and len(findings) > limit):
        _print_counts(findings)
    if limit and max(printed.values(), default=0) > limit:
        typer.echo(f"At most {limit} findings per rule are printed; --limit 0 prints all.")
    wrong = [finding for finding in findings if not finding.note]
    files = ", ".join(Path(path).name for path in paths) if len(paths) <= 5 else f"{len(paths)} files"
    notes = f", {_number(len(findings) - len(wrong), 'note')}" if len(findings) > len(wrong) else ""
    print_text(f"{files}: {_number(len(wrong), 'finding') if wrong else 'nothing wrong'}{notes}")
    return bool(wrong)


def whose(paths: Sequence[str]) -> dict[str, str]:
    """For each file that a parser annotated, the sentence that says so. Files that cannot be read are omitted."""
    sources = {}
    for path in resolve(tuple(paths), "conllu").paths:
        try:
            summary = summed_up(marks(path))
        except CorpusError:  # the check has already reported it
            continue
        if summary is not None:
            sources[path.name] = sentence(summary)
    return sources


def _print_counts(findings: Sequence[Finding]) -> None:
    from headscope.cli.printing.tables import print_table
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


def compare(
    first: Annotated[str, typer.Argument(help="a file or a folder of CoNLL-U, or 'sampler'")],
    second: Annotated[str, typer.Argument(help="a second annotation of the same text")],
    differences: Annotated[
        bool, typer.Option("--differences", help="list every word and mention on which they differ, instead of scores")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="write scores and differences to this file")] = None,
    every_label: Annotated[bool, typer.Option("--all", help="every relation, not the 20 most frequent")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="tables in Markdown, to standard output")] = False,
    format: Annotated[str | None, typer.Option("--corpus-format", help="conllu, conllx or conll2012, if the name does not show it")] = None,
    old_format: Annotated[str | None, typer.Option("--format", hidden=True)] = None,
    replicates: Annotated[int, typer.Option(help="bootstrap replicates for intervals over documents", min=0)] = 500,
    seed: Annotated[int, typer.Option(help="seed of the bootstrap")] = 0,
) -> None:
    """Compare two annotations of the same text: tags, trees, coreference, keyphrases.

    headscope corpus compare first.conllu second.conllu
    headscope corpus compare annotator1/ annotator2/ --differences > to_decide.tsv
    headscope corpus compare annotator1/ annotator2/ --json agreement.json
    """
    from headscope.corpora.agreement import compare as compare_annotations
    from headscope.corpora.agreement import read_annotation

    format = format or old_format
    agreement = compare_annotations(read_annotation(first, format), read_annotation(second, format), replicates, seed)
    if json is not None:
        _write(agreement, json)
    if differences:
        typer.echo("file\tsentence\twords\ttext\tfirst\tsecond")
        for difference in agreement.differences:
            typer.echo(_line(difference))
        return
    _print_scores(agreement, None if every_label else 20, markdown)
    for side, tally in zip((first, second), agreement.skipped, strict=True):
        for label, line in tally.labelled():
            print_text(f"{label} in {side}: {line}")
    for name, n in agreement.alone.items():
        print_text(f"not compared: {_number(n, 'value')} of {name} that only one side has")
    words = sum(difference.last is None for difference in agreement.differences)
    more = ": see --differences" if agreement.differences else ""
    print_text(f"{_number(words, 'word')} and {_number(len(agreement.differences) - words, 'mention')} differ{more}")


def _print_scores(agreement: AgreementReport, limit: int | None, markdown: bool) -> None:
    from headscope.cli.printing.tables import print_markdown, print_table
    from headscope.corpora.agreement.comparison import WORDS

    show = print_markdown if markdown else print_table
    sizes = (_number(getattr(agreement, f"{unit}s"), unit) for unit in ("document", "sentence", "word"))
    typer.echo(f"{', '.join(sizes)}\n")
    about_words = [score for score in agreement.scores if score.name.removesuffix("_kappa") in WORDS]
    about_spans = [score for score in agreement.scores if score not in about_words]
    if about_words:
        show(_shares(about_words), "words")
    if about_spans:
        show(_overlaps("quantity", about_spans), "mentions, entities, keyphrases")
    if agreement.relations:
        show(_overlaps("relation", agreement.relations[:limit]), "relations with their heads")


def _shares(scores: Sequence[AgreementScore]) -> Table:
    from headscope.results.table import Table

    names = ("value", "low", "high")
    columns = {"quantity": [score.name for score in scores]} | {name: [getattr(score, name) for score in scores] for name in names}
    return Table.of(columns | {"n": [score.first for score in scores], "documents": [score.documents for score in scores]})


def _overlaps(head: str, scores: Sequence[AgreementScore]) -> Table:
    from headscope.results.table import Table

    names = ("value", "low", "high", "precision", "recall", "first", "second", "documents")
    return Table.of({head: [score.name for score in scores]} | {name: [getattr(score, name) for score in scores] for name in names})


def _line(difference: AnnotationDifference) -> str:
    """A difference as one line, in columns separated by tabs."""
    words = str(difference.word) if difference.last in (None, difference.word) else f"{difference.word}-{difference.last}"
    sides = (_values(difference.first.items()), _values(difference.second.items()))
    return "\t".join([difference.file, difference.sentence, words, difference.text, *sides])


def _values(items: Iterable[tuple[str, object]]) -> str:
    return " ".join(f"{name}={'_' if value is None else value}" for name, value in items) or "no mention"


def _write(agreement: AgreementReport, path: Path) -> None:
    import json
    import math
    from dataclasses import asdict

    from headscope.results.files import write_atomically

    def plain(value: object) -> object:
        return None if isinstance(value, float) and math.isnan(value) else value

    content = {
        "documents": agreement.documents,
        "sentences": agreement.sentences,
        "words": agreement.words,
        **{
            name: [{key: plain(value) for key, value in asdict(score).items()} for score in scores]
            for name, scores in (("scores", agreement.scores), ("relations", agreement.relations))
        },
        "differences": [asdict(difference) for difference in agreement.differences],
    }
    write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode(), within=path.parent)


for verb in (stats, check, compare):
    app.command(cls=Command, help=examples(verb.__doc__))(with_metavars(verb))
