"""What `headscope corpus stats` prints: one corpus in detail, or several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headscope.cli.printing.tables import print_markdown, print_table
from headscope.cli.printing.text import print_text
from headscope.core.tally import Tally
from headscope.corpora import Corpus, Stats, stats
from headscope.corpora.automatic import summed_up
from headscope.corpora.files import base_name
from headscope.corpora.resolution.mentions import KINDS
from headscope.corpora.stats import CoreferenceStats, Distribution, Offsets
from headscope.errors import HeadscopeError
from headscope.results.counts import warning
from headscope.results.formats import display
from headscope.results.table import Table

if TYPE_CHECKING:
    from headscope.results.counts import Counts

SPREAD = "mean [smallest, lower quartile, median, upper quartile, largest]"
Rows = dict[str, str | None]


def overview(counted: Stats) -> Rows:
    """Everything that was counted, as text by row: always the same rows in the same order, None where there is none."""
    dependencies, phrases = counted.dependencies, counted.phrases
    return {
        "documents": _number(counted.documents),
        "annotation": summed_up(counted.parsers),
        "paragraphs": _number(counted.paragraphs),
        "sentences": _number(counted.sentences),
        "words": _number(counted.words),
        "without punctuation": _number(counted.words - counted.punctuation) if counted.punctuation else None,
        "words per sentence": _spread(counted.lengths),
        "dependencies": _number(dependencies.n),
        "head to the right": f"{100 * dependencies.right:.1f}%" if dependencies.n else None,
        "words to the head": _spread(dependencies.distances),
        **_coreference(counted.coreference),
        "keyphrases": _number(counted.keyphrases),
        "keyphrases per document": _spread(phrases.per_document) if counted.keyphrases else None,
        "words per keyphrase": _spread(phrases.lengths),
        "keyphrases in the text": _share(phrases.found, counted.keyphrases),
        "labelled spans": ", ".join(f"{n:,} {task}" for task, n in sorted(counted.edges.tasks.items())) or None,
        "words per labelled span": _spread(counted.edges.lengths),
    }


def encoding(corpus: Corpus, model: str, unit: str | None, max_length: int) -> tuple[str, Rows, Counts]:
    """What a run over a corpus would read: a title with model and unit, rows with numbers of texts and tokens, and the
    counts behind them.
    """
    from headscope.engine.shards import encoder_for
    from headscope.engine.spec import make_spec
    from headscope.models.load import load_tokenizer
    from headscope.results.counts import count

    spec = make_spec({"model": model, "unit": unit, "max_length": max_length}).resolved(corpus.pairs)
    counts = count(corpus, encoder_for(spec, load_tokenizer(model)))
    percent = 100 * counts.split_words / counts.words if counts.words else 0.0
    rows: Rows = {
        "texts": f"{counts.texts:,}",
        "tokens": f"{counts.tokens:,}",
        "split words": f"{counts.split_words:,} of {counts.words:,} ({percent:.1f}%)",
        "unknown tokens": f"{counts.unknown:,} of {counts.word_tokens:,} ({counts.unknown_share:.1%})",
    }
    return f"a run of {model} over each {spec.unit}, up to {max_length} tokens", rows, counts


def _coreference(counted: CoreferenceStats) -> Rows:
    linked, back = counted.words_back.n, counted.sentences_back.counts
    return {
        "mentions": _number(counted.mentions),
        "words per mention": _spread(counted.lengths),
        **{f"{kind}s": _share(counted.kinds[kind], counted.kinds.total()) for kind in KINDS},
        "entities": _number(counted.entities),
        "singletons": _share(counted.singletons, counted.entities),
        "chains": _share(counted.chains.n, counted.entities),
        "mentions in chains": _share(counted.coreferent, counted.mentions),
        "mentions per chain": _spread(counted.chains),
        "antecedent, words back": _spread(counted.words_back),
        "antecedent, sentences back": _spread(counted.sentences_back),
        "in the same sentence": _share(back[0], linked),
        "in the sentence before": _share(back[1], linked),
        "further back": _share(linked - back[0] - back[1], linked),
    }


def _number(n: int) -> str | None:
    return f"{n:,}" if n else None


def _spread(numbers: Distribution) -> str | None:
    return f"{numbers.mean:.1f} [{' '.join(f'{numbers.quantile(q / 4):g}' for q in range(5))}]" if numbers.n else None


def _share(n: int, total: int) -> str | None:
    return f"{n:,} ({100 * n / total:.1f}%)" if total else None


_COUNTED: dict[str, Callable[[Stats], Counter[str]]] = {
    "relations": lambda counted: counted.relations,
    "parts of speech, UPOS": lambda counted: counted.upos,
    "parts of speech, XPOS": lambda counted: counted.xpos,
    "labels of documents": lambda counted: counted.labels,
    "entity types": lambda counted: counted.coreference.types,
}
_TOP = 20


@dataclass(frozen=True)
class TokenCounter:
    """The model whose tokenizer counts tokens, and the inputs that texts are cut into."""

    model: str
    unit: str | None
    max_length: int


def named(corpora: Sequence[list[str]]) -> dict[str, list[str]]:
    """The files of each corpus by a name for its column: the file's name, or the path where two names are equal."""
    names: dict[str, list[str]] = {}
    for files in corpora:
        more = f" +{len(files) - 1}" if len(files) > 1 else ""
        short, whole = base_name(Path(files[0])).removesuffix(".conllu") + more, files[0] + more
        name = short if short not in names else whole
        if name in names:
            raise HeadscopeError(f"{whole} is named twice", "Name each corpus once")
        names[name] = files
    return names


def print_stats(corpus: Corpus, tokenizer: TokenCounter | None, every_label: bool) -> None:
    """Print what is in one corpus and, with a tokenizer, what a run over it would see."""
    counted = stats(corpus)
    _print_rows(overview(counted), counted.skipped)
    print_text(f"\n{SPREAD}\n")
    limit = None if every_label else _TOP
    for title, pick in _counters([counted]).items():
        if counts := pick(counted):
            directed = counted.offsets if title == "relations" else None
            print_table(_details(counts, directed, limit), title)
    if tokenizer:
        title, rows, encoded = encoding(corpus, tokenizer.model, tokenizer.unit, tokenizer.max_length)
        print_text(f"\n{title}:")
        _print_rows(rows | ({} if encoded.dropped.lines(read=False) else {"left out": "nothing"}), encoded.dropped)
        for line in warning(encoded, tokenizer.model):
            print_text(f"\nwarning: {line}")


def print_side_by_side(corpora: Mapping[str, Corpus], tokenizer: TokenCounter | None, every_label: bool, markdown: bool) -> None:
    """Print what is in several corpora, one column per corpus."""
    counted = {name: stats(corpus) for name, corpus in corpora.items()}
    sizes = {name: overview(counts) for name, counts in counted.items()}
    tallies = {name: counts.skipped for name, counts in counted.items()}
    warnings: list[str] = []
    runs: dict[str, list[str]] = {}
    if tokenizer:
        for name, corpus in corpora.items():
            title, rows, encoded = encoding(corpus, tokenizer.model, tokenizer.unit, tokenizer.max_length)
            tallies[name] = encoded.dropped
            warnings += [f"warning: {name}: {line}" for line in warning(encoded, tokenizer.model)]
            sizes[name] |= rows
            runs.setdefault(title, []).append(name)
    show = print_markdown if markdown else print_table
    quantities = [quantity for quantity in next(iter(sizes.values())) if any(rows[quantity] for rows in sizes.values())]
    show(_columns("quantity", quantities, {name: [rows[quantity] for quantity in quantities] for name, rows in sizes.items()}), "sizes")
    notes = [SPREAD, *(f"texts, tokens and split words of {', '.join(names)}: {title}" for title, names in runs.items())]
    notes += [f"{label} in {name}: {line}" for name, tally in tallies.items() for label, line in tally.labelled()]
    notes += warnings
    for note in notes:
        print_text(f"- {note}" if markdown else note, indent=2)
    typer.echo()
    for title, pick in _counters(counted.values()).items():
        _print_labels(title, {name: pick(counts) for name, counts in counted.items()}, counted, None if every_label else _TOP, show)


def _counters(counted: Iterable[Stats]) -> dict[str, Callable[[Stats], Counter[str]]]:
    """By title, a function that returns the counts of labels of a corpus: relations, tags, ..., then each task."""
    tasks = sorted({task for stats in counted for task in stats.edges.labels})
    return _COUNTED | {f"labels of {task}": partial(_labels_of, task) for task in tasks}


def _labels_of(task: str, counted: Stats) -> Counter[str]:
    return counted.edges.labels.get(task, Counter())


def _print_labels(
    title: str,
    counters: Mapping[str, Counter[str]],
    counted: Mapping[str, Stats],
    limit: int | None,
    show: Callable[[Table, str], None],
) -> None:
    """Print how frequent labels are in each corpus and, for relations, where the heads are."""
    words = {name: stats.words for name, stats in counted.items()}
    labels = _frequent(counters, words)
    shown, others = labels[:limit], labels[limit:] if limit else []
    if not labels:
        return
    cells = {name: [_rate(counter[label], words[name]) for label in shown] for name, counter in counters.items()}
    for name, counter in counters.items():
        cells[name] += [_rate(sum(counter[label] for label in others), words[name])] if others else []
    rows = [*shown, f"{len(others)} others"] if others else shown
    show(_columns("label", rows, cells), f"{title}: how many, and how many in 1,000 words")
    if title == "relations":
        cells = {name: [_direction(stats.offsets.get(label)) for label in shown] for name, stats in counted.items()}
        show(_columns("label", shown, cells), "relations: heads to the right, and mean distance to the head in words")


def _print_rows(rows: Mapping[str, str | None], tally: Tally) -> None:
    for name, value in [*rows.items(), *tally.labelled()]:
        if value:
            print_text(f"{name:>26}  {value}", indent=28)


def _details(counts: Counter[str], offsets: Mapping[str, Offsets] | None, limit: int | None) -> Table:
    """Labels with their numbers and shares, the most frequent first, and those over the limit in one row."""
    shown = counts.most_common(limit)
    labels, numbers = [label for label, _ in shown], [n for _, n in shown]
    if len(shown) < len(counts):
        labels.append(f"{len(counts) - len(shown)} others")
        numbers.append(counts.total() - sum(numbers))
    columns: dict[str, Sequence[object]] = {"label": labels, "n": numbers, "%": [f"{100 * n / counts.total():.1f}" for n in numbers]}
    if offsets is not None:
        offsets_of_labels = [offsets.get(label) for label in labels]
        columns["head to the right"] = [f"{100 * offset.right:.1f}%" if offset else None for offset in offsets_of_labels]
        columns["words to the head"] = [f"{offset.distances.mean:.1f}" if offset else None for offset in offsets_of_labels]
        columns["usual offset"] = [
            f"{offset.usual:+d} ({100 * offset.share([offset.usual]):.1f}%)" if offset else None for offset in offsets_of_labels
        ]
    return Table.of(columns)


def _frequent(counters: Mapping[str, Counter[str]], words: Mapping[str, int]) -> list[str]:
    """The labels of all corpora, those with the highest rates first."""
    rates: dict[str, float] = {}
    for name, counter in counters.items():
        for label, n in counter.items():
            rates[label] = rates.get(label, 0.0) + n / words[name]
    return sorted(rates, key=lambda label: -rates[label])


def _rate(n: int, words: int) -> str | None:
    return f"{n:,} ({1000 * n / words:.1f})" if n else None


def _direction(offsets: Offsets | None) -> str | None:
    return f"{100 * offsets.right:.1f}% ({offsets.distances.mean:.1f})" if offsets else None


def _columns(head: str, labels: Sequence[str], cells: Mapping[str, Sequence[str | None]]) -> Table:
    return Table.of({head: labels, **{name: [display(cell) for cell in column] for name, column in cells.items()}})
