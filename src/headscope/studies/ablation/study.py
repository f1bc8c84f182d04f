"""A study of ablation: every text answered by the model as it is and without some of its heads, kept as it goes, written as tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.corpora import Corpus, read
from headscope.encoding.texts import Encoded
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import once, study_folder
from headscope.engine.shards import Progress
from headscope.models.gates import gated
from headscope.models.importance import importance
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.restart import why_not
from headscope.results.columns import Kept
from headscope.results.folder import Folder
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.results.table import Table
from headscope.studies.ablation.floor import nothing_to_lose
from headscope.studies.ablation.importance import foretold_table, importance_table
from headscope.studies.ablation.pruning import MOST_FIRST, Curves, ascending, curve_table, prunable_table, shuffled
from headscope.studies.ablation.spec import SCORES, AblationSpec
from headscope.studies.ablation.summary import summary
from headscope.studies.ablation.systems import SINGLE, removal
from headscope.studies.ablation.tables import Scores, head_table, layer_table, only_table
from headscope.studies.ablation.trial import Trial, resolved
from headscope.studies.legacy import begin, finish, study_identity

if TYPE_CHECKING:
    from headscope.studies.ablation.trial import Own


def ablate(
    spec: AblationSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    function: Own | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name.

    With `score = "own"`, `function` is the score: from an array [example, number] of what `answers.columns_of` names to one number, of
    which more is better.
    """
    folder = study_folder(out, resume, overwrite)
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    if model is None:
        model = load(spec.model, device, spec.dtype, head=True)
    spec = resolved(spec, model, corpus)
    run = None if spec.run is None else key(Results.open_run(Path(spec.run)).manifest["identity"])
    now = study_identity(spec, model, corpus, run=run)
    return once(folder, now, resume, overwrite, lambda: Study(spec, model, corpus, progress, function).run(folder, now, resume))


class Study(Trial):
    """One study: its passes over the texts, and what is made of them."""

    def run(self, folder: Folder | None, now: dict[str, Any], resume: bool) -> Results:
        """All passes, and the tables."""
        started = time.monotonic()
        spec = self.spec
        manifest = begin("ablation", spec, now, self.model, folder)
        ledger = Ledger(folder, key(now), resume)
        shards = [self.texts[start : start + self.shard] for start in range(0, len(self.texts), self.shard)]
        for number, texts in enumerate(shards):
            if not ledger.done(number):
                ledger.add(number, {"single": self.single(texts, Kept()).state, "pruning": Kept().state})
            self._tell(0, number + 1, shards)
        assert ledger.merged is not None
        scores = self.scores(Kept(ledger.merged["single"]))
        curves = None
        if "pruning" in spec.parts:
            curves = self._curves(scores, Kept(ledger.merged["single"]))
            for number, texts in enumerate(shards, len(shards)):
                if not ledger.done(number):
                    ledger.add(number, {"single": Kept().state, "pruning": self.answered(self.tried(texts), curves.cuts()).state})
                self._tell(1, number + 1 - len(shards), shards)
        score, statistics = self.statistics(scores.base)
        warning = nothing_to_lose(score, float(score.of(statistics)), scores.base, self.model) if {*spec.parts} - {"importance"} else None
        tables = self._tables(scores, curves, Kept(ledger.merged["single"]), Kept(ledger.merged["pruning"]), warning is None)
        said: dict[str, Any] = {
            "measures": {"ablation": {name: manifest["settings"][name] for name in ("parts", "score", "how")}},
            "seconds": round(time.monotonic() - started, 3),
            "notes": self._notes(),
            **({} if warning is None else {"warnings": [warning], "findings": []}),
        }
        return finish(manifest, tables, self.model, self.counts, ledger, ledger.merged, folder, said)

    def _notes(self) -> list[str]:
        """What a reader should know of how it was done."""
        notes = []
        if "pruning" in self.spec.parts and not self.halves:
            notes.append("pruning: orders were found on the texts they were tried on, which flatters: too few documents")
        if self.spec.score not in SCORES["translation"] and (reason := why_not(self.model)) is not None:
            notes.append(f"each set of heads took a full pass: {reason}")
        return notes

    def _tell(self, turn: int, done: int, shards: Sequence[Sequence[Encoded]]) -> None:
        if self.progress is not None:
            seen = [text for shard in shards[:done] for text in shard]
            self.progress((turn + done / len(shards)) / (1 + ("pruning" in self.spec.parts)), len(seen), sum(map(len, seen)))

    def _curves(self, scores: Scores, kept: Kept) -> Curves:
        """The orders, found on one half of the documents."""
        some = scores.fold == 0 if self.halves else np.ones(len(scores.documents), dtype=bool)
        orders = {"importance": ascending(self.importance(kept, some, 0)[0])}
        if "heads" in self.spec.parts:
            orders["drop"] = ascending(scores.harm("heads", some))
        if self.spec.most_first:
            orders |= {f"{name}{MOST_FIRST}": order[::-1] for name, order in orders.items()}
        if self.spec.reestimate:
            orders["importance, estimated anew"] = self._anew()
        orders |= self._measured()
        orders |= {f"random {number + 1}": shuffled(self.model.layout, self.spec.seed + number) for number in range(self.spec.orders)}
        return Curves(self.model.layout, orders, self.spec.steps)

    def _measured(self) -> dict[str, list[int]]:
        """The orders by quantities of a run; those that begin with - go from the highest down. Heads that have none go last."""
        if self.spec.run is None:
            return {}
        results = Results.open_run(Path(self.spec.run))
        found = {}
        for name in self.spec.by:
            values = by_head(results, name.removeprefix("-"), self.model.layout)
            found[name] = ascending(np.nan_to_num(-values if name.startswith("-") else values, nan=np.inf))
        return found

    def _anew(self) -> list[int]:
        """Heads by an importance that is estimated anew after each step, with the heads gone that are gone already."""
        texts = self.found_on()
        gone: list[int] = []
        for size in Curves(self.model.layout, {}, self.spec.steps).sizes:
            with gated(self.model, {site: torch.from_numpy(gate).float() for site, gate in removal(self.model.layout, gone).items()}):
                slopes = importance(self.model, texts, self.batch, share=self.spec.mask_share, key=f"{self.spec.seed}/0")
            order = ascending(slopes.of(self.spec.abs_over, self.spec.normalise, self.spec.batch_texts))
            gone += [place for place in order if place not in gone][: size - len(gone)]
        return gone

    def _tables(self, scores: Scores, curves: Curves | None, kept: Kept, pruned: Kept, losing: bool) -> dict[str, Table]:
        """All tables. Unless the model has something to lose (`losing`), the summary has no value but its score."""
        spec = self.spec
        makers = {
            "heads": ("ablation", head_table),
            "all_but_one": ("ablation_all_but_one", only_table),
            "layers": ("ablation_layers", layer_table),
        }
        found = {name: make(scores) for part, (name, make) in makers.items() if part in spec.parts and part in SINGLE}
        if "importance" in spec.parts:
            everything = np.ones(len(scores.documents), dtype=bool)
            weights = self.importance(kept, everything, spec.replicates)
            found["importance"] = importance_table(weights, self.model.layout, len(scores.documents), len(set(scores.documents)))
            if "heads" in spec.parts:
                found["importance_foretells"] = foretold_table(weights[0], scores)
        if curves is not None:
            tried = self.scores(pruned)
            found["pruning"] = curve_table(curves, tried, tried.table)
            score, base = self.statistics(tried.base)
            found["prunable"] = prunable_table(found["pruning"], float(score.of(base)), score, spec.tolerance, losing)
        score, base = self.statistics(scores.base)
        n, documents = len(scores.documents), len(set(scores.documents))
        return {"summary": summary(found, score, float(score.of(base)), n, documents, losing), **found}
