"""The texts that probes are trained, selected and scored on, with their targets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from headscope.core.document import Edge
from headscope.core.hashing import digest
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.edge_probe.spec import EdgeSpec
from headscope.studies.edge_probe.tasks import Choices, inside, targets, tasks_in
from headscope.studies.picking import picked

SEEN = 200  # documents that are searched for tasks
Read = tuple[Encoded, dict[str, list[Edge]]]


@dataclass(frozen=True)
class Texts:
    """All texts: those to train on, then those for early stopping, those to score on, and those to show. `edges` has
    the targets of each text by task, in words of the text.
    """

    texts: Sequence[Encoded]
    edges: Sequence[dict[str, list[Edge]]]
    train: range
    held: range
    dev: range
    look: range
    counts: Counts


def found_tasks(corpus: Corpus, choices: Choices, wanted: Sequence[str] | None, name: str) -> tuple[str, ...]:
    """The requested tasks, or all that a corpus has; an error if it lacks a requested one."""
    if wanted is not None:
        missing = {*wanted}
        for document in corpus:
            missing = {task for task in missing if not targets(document, task, choices)}
            if not missing:
                return tuple(wanted)
        has = tasks_in(islice(iter(corpus), SEEN), choices)
        remedy = f"It has {', '.join(has)}" if has else "It is annotated for no task: see docs/edge-probing.md"
        raise RunError(f"{name} has nothing to label for {', '.join(sorted(missing))}", remedy)
    tasks = tuple(tasks_in(islice(iter(corpus), SEEN), choices))
    if not tasks:
        raise RunError(
            f"{name} has nothing to label", "Use a corpus with tags, trees, mentions or labelled spans: see docs/edge-probing.md"
        )
    return tasks


def gather(spec: EdgeSpec, model: Model, corpus: Corpus, dev: Corpus | None, look: Corpus | None) -> Texts:
    """Texts and targets of all corpora, and the counts of what is skipped."""
    counts = Counts()
    train = list(_read(spec, model, corpus, spec.limit, counts, spec.corpus))
    if dev is not None:
        scored = list(_read(spec, model, dev, spec.limit_dev, counts, spec.dev))
    else:
        train, scored = _divided(train, spec.test, f"test {spec.seed}")
        scored = _some(scored, spec.limit_dev, spec.seed)
    held: list[Read] = []
    if spec.select == "held_out":
        train, held = _divided(train, spec.held_out, f"held out {spec.seed}")
    shown = list(_read(spec, model, look, None, counts, spec.look)) if look is not None else []
    parts = {"train": train, "held": held, "dev": scored, "look": shown}
    every = [pair for part in parts.values() for pair in part]
    for text, _ in every:
        counts.add(text)
    bounds = pairwise([0, *accumulate(map(len, parts.values()))])
    ranges = {part: range(*ends) for part, ends in zip(parts, bounds, strict=True)}
    return Texts([text for text, _ in every], [edges for _, edges in every], **ranges, counts=counts)


def _divided(texts: list[Read], share: float, key: str) -> tuple[list[Read], list[Read]]:
    """The texts without a share of them, and that share."""
    chosen = apart([text for text, _ in texts], share, key)
    return [texts[n] for n in range(len(texts)) if n not in chosen], [texts[n] for n in sorted(chosen)]


def _some(texts: list[Read], limit: int | None, seed: int) -> list[Read]:
    """At most `limit` of the texts, drawn by name."""
    chosen = {text.id for text in picked((text for text, _ in texts), limit, seed=seed)}
    return [pair for pair in texts if pair[0].id in chosen]


def apart(texts: Sequence[Encoded], share: float, key: str) -> set[int]:
    """The numbers of about a share of the texts: whole documents by name; if there is one document, single texts."""
    names = {text.document for text in texts}
    unit = [text.document if len(names) > 1 else text.id for text in texts]
    if len(set(unit)) < 2:
        raise RunError("there are too few texts to train on some and test on others", "Use a larger corpus, or name one with --dev")
    sizes = Counter(unit)
    chosen: set[str] = set()
    size = 0
    for name in sorted(sizes, key=lambda name: digest(key, name))[:-1]:
        if size >= share * len(texts):
            break
        chosen.add(name)
        size += sizes[name]
    return {number for number, name in enumerate(unit) if name in chosen}


def _inside(edges: Sequence[Edge], positions: Sequence[int]) -> list[Edge]:
    """`inside` for edges sorted by start: only those that begin in the text are checked."""
    start = bisect_left(edges, positions[0], key=lambda edge: edge.first[0])
    stop = bisect_right(edges, positions[-1], key=lambda edge: edge.first[0])
    return inside(edges[start:stop], positions)


def _read(spec: EdgeSpec, model: Model, corpus: Corpus, limit: int | None, counts: Counts, named: Sequence[str]) -> Iterator[Read]:
    """Texts that have targets, with these targets."""
    encoder = Encoder(
        model.tokenizer,
        unit=spec.unit or "sentence",
        max_length=spec.max_length,
        overlong="window" if spec.unit == "document" else "drop",
        decoder_start=model.decoder_start,
    )
    edges: dict[str, dict[str, list[Edge]]] = {}
    tally = counts.dropped

    def texts() -> Iterator[Encoded]:
        for document in corpus:
            of_document = {task: targets(document, task, spec.choices) for task in spec.tasks or ()}
            left = {task: len(edges_of_task) for task, edges_of_task in of_document.items()}
            for text in encoder.texts([document], tally):
                of_text = {task: _inside(edges_of_task, text.annotation.positions) for task, edges_of_task in of_document.items()}
                left = {task: number - len(of_text[task]) for task, number in left.items()}
                if any(of_text.values()):
                    edges[text.id] = of_text
                    yield text
            for task, number in left.items():
                if number > 0:
                    tally.add(f"targets of {task} that do not lie within one text", document.id, number)

    chosen = list(picked(texts(), limit, seed=spec.seed, tally=tally, corpus=corpus))
    tally.update(corpus.skipped)
    if not chosen:
        problem = f"nothing to probe: no text of {', '.join(named)} has a target"
        raise RunError(problem, "; ".join(tally.lines()))
    yield from ((text, edges[text.id]) for text in chosen)
