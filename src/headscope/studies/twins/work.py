"""The work of a comparison of two models: both read the same texts, and all heads are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from headscope.core.heads import Kind
from headscope.core.paths import title
from headscope.core.state import States
from headscope.encoding.texts import Encoder
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.loading.random import untrained
from headscope.models.model import Model
from headscope.results.counts import warning
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length
from headscope.studies.twins.heads import LETTERS, TABLES, Heads, Twins
from headscope.studies.twins.spec import TwinsSpec
from headscope.studies.twins.states import Sums
from headscope.studies.twins.sums import SideBySide, Watched
from headscope.studies.twins.texts import Matcher, Names, Shared

BATCH, GPU_BATCH = 2048, 32768  # tokens. On a CPU the maps of a batch should fit into the cache; a GPU should be kept busy.
BATCHES = 8  # per shard


class TwinsWork(Work):
    """One comparison of two models. A job is a shard of texts that both models read."""

    spec: TwinsSpec

    def __init__(self, spec: TwinsSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        self.models = self.model, self._other()
        kinds = _kinds(self.models, spec.kind)
        batch = spec.batch_tokens or (BATCH if self.model.device.type == "cpu" else GPU_BATCH)
        sizes = {"batch_tokens": batch, "shard_tokens": self._begun_with() or spec.shard_tokens or BATCHES * batch}
        self.spec = spec.model_copy(update={"kind": kinds, **sizes})
        require_length(self.models[0], spec)
        require_length(self.models[1], spec.model_copy(update={"model": spec.other}))
        self.contents = {"other": self.models[1].fingerprint}
        self.names = _names(self.models)
        self.model_name = self.names.a
        self._watched = Watched(self.models[0], kinds[0], 0), Watched(self.models[1], kinds[1], 1)
        self._merged: Callable[[], States] | None = None
        self._skipped = False
        self._texts = self._tokens = 0
        self._before = self._within = 0.0  # shares that are done: of the corpus in earlier shards, and of this shard

    def _other(self) -> Model:
        """The second model: the given one, the first model if both have the same name, or a model that is loaded."""
        in_hand: Model | None = self.context.options.get("other_model")
        if in_hand is not None:
            return in_hand
        if self.spec.other == self.spec.model:
            return self.model
        return load(self.spec.other, str(self.model.device), self.spec.dtype)

    def _begun_with(self) -> int | None:
        """The shard size of a study to resume, because shards are numbered; batches may have another size."""
        folder = self.context.folder
        if folder is None or not self.context.resume:
            return None
        try:
            begun: int | None = folder.read_manifest()["settings"]["shard_tokens"]
        except (RunError, KeyError):
            return None
        return begun

    def prepare(self) -> None:
        """Draw the untrained copies, if requested, and prepare to read texts with both models."""
        spec, (first, second) = self.spec, self._watched
        copies = None
        if spec.control:
            drawn = (untrained(model, spec.seed) for model in self.models)
            copies = Watched(next(drawn), first.kind, 0), Watched(next(drawn), second.kind, 1)
        assert spec.batch_tokens is not None
        self._sums = SideBySide(first, second, spec.level, spec.word_rows, spec.batch_tokens, copies)
        encoders = [
            Encoder(model.tokenizer, spec.unit or "sentence", spec.max_length, seed=spec.seed, decoder_start=model.decoder_start)
            for model in self.models
        ]
        self._matcher = Matcher((encoders[0], encoders[1]), (first.kind, second.kind), spec.level, self.names)
        self.counts = self._matcher.counts[0]

    def jobs(self, merged: Callable[[], States]) -> Iterator[list[Shared]]:
        """The texts that both models read, shard by shard."""
        self._merged = merged
        corpus, dropped = self.context.corpus, self._matcher.dropped
        shard: list[Shared] = []
        tokens = 0
        for text in islice(self._matcher.texts(corpus), self.spec.limit):
            shard.append(text)
            tokens += text.cost
            if tokens >= (self.spec.shard_tokens or 1):
                yield shard
                shard, tokens = [], 0
        if shard:
            yield shard
        dropped.update(corpus.skipped)
        if not self.counts.texts:
            problem = f"nothing to compare: no text of {', '.join(self.spec.corpus)} is left that both models read"
            raise RunError(problem, "; ".join(dropped.lines(read=False)))

    def do(self, job: list[Shared]) -> States:
        """The sums of all texts up to the end of the shard."""
        if self._skipped:
            assert self._merged is not None
            self._sums.sums = Sums.of(self._merged()["twins"])
            self._skipped = False
        self._sums.add(job, self._tell)
        self._count(job)
        return {"twins": self._sums.sums.state()}

    def skip(self, job: list[Shared]) -> None:
        """Skip a shard; the next job continues with the saved sums."""
        self._skipped = True
        self._count(job)

    def _tell(self, within: float) -> None:
        self._within = within
        self.meter.update(within, self._texts, self._tokens)

    def _count(self, job: list[Shared]) -> None:
        self._texts += len(job)
        self._tokens += sum(text.cost for text in job)
        self._tell(1.0)
        self._before, self._within = self.share() or 0.0, 0.0

    def share(self) -> float | None:
        """The share of the texts that is done: of the corpus as far as it is read, or of the limit."""
        shares = [super().share(), self._texts / self.spec.limit if self.spec.limit is not None else None]
        reached = max((share for share in shares if share is not None), default=None)
        return None if reached is None else self._before + (reached - self._before) * self._within

    def tables(self, states: States) -> dict[str, Table]:
        """All tables of twins, and a summary with quantities in words."""
        self.warnings += warning(self._matcher.counts[1], self.names.b)
        spec = self.spec
        a, b = (
            Heads(name, watched.kind, tuple(watched.plan.layout.ids())) for name, watched in zip(self.names, self._watched, strict=True)
        )
        twins = Twins(
            a,
            b,
            Sums.of(states["twins"]),
            spec.level,
            spec.epsilons,
            spec.least,
            spec.replicates,
            spec.seed,
            self.counts.texts,
            self.counts.documents,
            signature="",
        )
        tables = {name: twins.table(name) for name in TABLES}
        return {"summary": summary(tables["twins_summary"]), **tables}

    def measured(self) -> dict[str, Any]:
        """What was compared, and how."""
        return self.spec.model_dump(mode="json", include={"level", "kind", "control", "epsilons", "least", "word_rows"})


def _names(models: tuple[Model, Model]) -> Names:
    first, second = (title(_path(model.name)) or "model" for model in models)
    return Names(first, second) if first != second else Names(f"{first} (a)", f"{second} (b)")


def _path(name: str) -> str:
    """The resolved path of a model's folder, which is the same wherever the study starts; other names unchanged."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def _kinds(models: tuple[Model, Model], asked: tuple[Kind, ...] | None) -> tuple[Kind, Kind]:
    """The requested kinds of self-attention, or those with the most heads; never cross-attention."""
    kinds: list[Kind] = []
    for model, wanted in zip(models, (asked[0], asked[-1]) if asked is not None else (None, None), strict=True):
        heads: dict[Kind, int] = {name: number for name, number in model.layout.heads().items() if name != "cross"}
        if wanted is not None and wanted not in heads:
            raise RunError(f"{model.name} has no {wanted} self-attention", f"It has {' and '.join(heads)} attention")
        kinds.append(wanted if wanted is not None else max(heads, key=lambda name: heads[name]))
    return kinds[0], kinds[1]


_WORDS = {
    "twin": "mean distance to the twin in the other model",
    "own": "mean distance to the nearest neighbour in the own model",
    "untrained": "mean distance to the nearest head of the untrained other",
    "nearer_than_untrained": "heads whose twin is nearer than any head of the untrained other",
    "mutual": "heads that are their twin's twin",
    "depth": "correlation of a head's depth with its twin's",
    "words": "mean share of attention that goes to words",
    "faint": "faint heads, which give little of their attention to words",
}
_CLOSER = {
    "twin": "heads with a twin closer than {}",
    "own": "heads with a neighbour in the own model closer than {}",
    "untrained": "heads with a head of the untrained other closer than {}",
}


def summary(table: Table) -> Table:
    """One row per quantity of `twins_summary`, with the numbers of `a` and of `b`; heads are shares."""
    rows: dict[str, dict[str, Any]] = {}
    for row in table:
        if row["side"] in LETTERS and (what := _what(row["quantity"])) is not None:
            numbers = {row["side"]: row["value"], f"{row['side']}_low": row["low"], f"{row['side']}_high": row["high"]}
            rows.setdefault(what, {"what": what, "n": row["n"], "documents": row["documents"]}).update(numbers)
    columns = ("what", *(letter + bound for letter in LETTERS for bound in ("", "_low", "_high")), "n", "documents")
    return Table.of({name: [row.get(name, math.nan) for row in rows.values()] for name in columns})


def _what(quantity: str) -> str | None:
    """A quantity in words; None for differences between quantities."""
    name, _, epsilon = quantity.partition("_")
    return _CLOSER[name].format(epsilon) if epsilon and name in _CLOSER else _WORDS.get(quantity)
