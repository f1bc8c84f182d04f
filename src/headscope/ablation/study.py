"""A study of ablation: every text answered by the model as it is and without some of its heads, kept as it goes, written as tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.ablation.answers import answering, scored
from headscope.ablation.importance import foretold_table, importance_table, per_example, replicated
from headscope.ablation.pruning import Curves, ascending, curve_table, prunable_table, shuffled
from headscope.ablation.spec import SCORES, AblationSpec
from headscope.ablation.summary import summary
from headscope.ablation.systems import SINGLE, Systems, removal
from headscope.ablation.tables import Scores, head_table, layer_table, only_table
from headscope.ablation.translating import translating, translation_score
from headscope.corpora import Corpus, read
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.gates import gated, mean_contexts
from headscope.models.importance import importance
from headscope.models.load import load
from headscope.models.model import Model
from headscope.runs.counts import Counts
from headscope.runs.kept import Kept
from headscope.runs.ledger import Ledger
from headscope.runs.opening import look_first, prepare
from headscope.runs.quantities import by_head
from headscope.runs.results import Results
from headscope.runs.signature import key
from headscope.runs.store import Folder
from headscope.runs.studies import begin, finish, picked, study_identity, study_signature
from headscope.runs.table import Table
from headscope.runs.work import Progress
from headscope.stats.bootstrap import group_of
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.ablation.answers import Answering, Cut

_NAMED = ("parts", "score", "how", "unit", "limit", "max_length", "replicates", "seed")
_UNUSUAL = ("run", "by", "reestimate", "mask_share", "test", "abs_over", "normalise", "steps", "orders", "tolerance", "dtype", "on_error")
# Texts that are answered before what was counted is written, and padded tokens of a batch before it is multiplied by systems. On a GPU
# both are larger: it wants to be kept busy.
SHARD, GPU_SHARD = 8, 256
BATCH, GPU_BATCH = 2048, 32768


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
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name."""
    folder = Folder(out) if out is not None else None
    if folder is not None:
        look_first(folder, resume, overwrite)
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    if model is None:
        model = load(spec.model, device, spec.dtype, head=True)
    spec = resolved(spec, model, corpus)
    now = study_identity(spec, model, corpus)
    with folder.locked() if folder is not None else nullcontext():
        if folder is not None and (finished := prepare(folder, now, resume, overwrite)) is not None:
            return finished
        return Study(spec, model, corpus, progress).run(folder, now, resume)


def resolved(spec: AblationSpec, model: Model, corpus: Corpus) -> AblationSpec:
    """The settings with nothing left open, or an error if this model cannot be studied so."""
    if model.objective is None or model.objective not in SCORES:
        raise RunError(f"{spec.model} was loaded without what it predicts with", "Load it with head=True")
    if model.max_length is not None and spec.max_length > model.max_length:
        remedy = f"Use --max-length {model.max_length}"
        raise RunError(f"max_length is {spec.max_length}, but {spec.model} ends at {model.max_length} tokens", remedy)
    return spec.resolved(model.objective, model.encoder_decoder, corpus.pairs).model_copy(update={"dtype": model.dtype})


class Study:
    """One study: its texts, how they are answered, and what is made of that."""

    def __init__(self, spec: AblationSpec, model: Model, corpus: Corpus, progress: Progress | None) -> None:
        self.spec, self.model, self.progress = spec, model, progress
        self.counts = Counts()
        self.systems = Systems(model.layout, spec.parts)
        gpu = model.device.type != "cpu"
        self.shard = GPU_SHARD if gpu else SHARD
        self.batch = spec.batch_tokens or (GPU_BATCH if gpu else BATCH)
        self.texts = self._texts(corpus)
        self.counts.dropped.update(corpus.skipped)
        if not self.texts:
            raise RunError(f"nothing to ablate on: no text is left of {', '.join(spec.corpus)}", "; ".join(self.counts.dropped.lines()))
        self.answer = self._answering()
        self.passes = 1 + ("pruning" in spec.parts)

    @classmethod
    def of(cls, spec: AblationSpec, model: Model, corpus: Corpus, progress: Progress | None = None) -> Study:
        """A study whose settings may be open still."""
        return cls(resolved(spec, model, corpus), model, corpus, progress)

    def _texts(self, corpus: Corpus) -> list[Encoded]:
        spec, model = self.spec, self.model
        encoder = Encoder(
            model.tokenizer,
            unit=spec.unit or "sentence",
            max_length=spec.max_length,
            overlong="truncate" if model.objective == "classes" else "drop",
            decoder_start=model.decoder_start,
            labelled=model.objective == "classes",
        )
        found = []
        for text in picked(encoder.texts(corpus, self.counts.dropped), spec.limit, seed=spec.seed):
            if model.predicts(text):
                self.counts.add(text)
                found.append(text)
            else:
                self.counts.dropped.add("texts in which there is nothing to predict", text.id)
        return found

    def _answering(self) -> Answering:
        replace = mean_contexts(self.model, batches(self.texts, self.batch)) if self.spec.how == "mean" else None
        if self.spec.score in SCORES["translation"]:
            return translating(self.model, self.spec.score or "", self.spec.beams, replace)
        return answering(self.model, self.spec.mask_share, self.spec.seed, replace, 2 * self.batch)

    def statistics(self, table: Float64[np.ndarray, "*system example k"]) -> tuple[Score, Float64[np.ndarray, "*system example s"]]:
        """The score and its statistics."""
        if self.spec.score in SCORES["translation"]:
            return translation_score(self.spec.score or ""), table
        classes = max(self.model.classes.values()) + 1 if self.model.objective == "classes" else 0
        return scored(self.spec.score or "", table, classes)

    def run(self, folder: Folder | None, now: dict[str, Any], resume: bool) -> Results:
        """All passes, and the tables."""
        started = time.monotonic()
        spec = self.spec
        manifest = begin("ablation", spec, now, study_signature(spec, now, _NAMED, _UNUSUAL), self.model, folder)
        ledger = Ledger(folder, key(now), resume)
        shards = [self.texts[start : start + self.shard] for start in range(0, len(self.texts), self.shard)]
        for number, texts in enumerate(shards):
            if not ledger.done(number):
                ledger.add(number, {"single": self._single(texts, Kept()).state, "pruning": Kept().state})
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
        tables = self._tables(scores, curves, Kept(ledger.merged["single"]), Kept(ledger.merged["pruning"]))
        said = {
            "measures": {"ablation": {name: manifest["settings"][name] for name in ("parts", "score", "how")}},
            "seconds": round(time.monotonic() - started, 3),
            "notes": []
            if self._halves
            else ["pruning: orders were found on the texts they were tried on, which flatters: too few documents"],
        }
        return finish(manifest, tables, self.model, self.counts, ledger, ledger.merged, folder, said)

    def _tell(self, turn: int, done: int, shards: Sequence[Sequence[Encoded]]) -> None:
        if self.progress is not None:
            seen = [text for shard in shards[:done] for text in shard]
            self.progress((turn + done / len(shards)) / self.passes, len(seen), sum(map(len, seen)))

    @property
    def _halves(self) -> bool:
        """Whether there are documents in both halves, one to order heads by and one to try the order on."""
        return len({group_of(text.document, 2) for text in self.texts}) == 2

    def tried(self, texts: Sequence[Encoded]) -> list[Encoded]:
        """Those of the half of the documents that an order of heads is tried on, which is not the half that it was found on."""
        return [text for text in texts if not self._halves or group_of(text.document, 2) == 1]

    def _batched(self, texts: Sequence[Encoded]) -> Iterator[list[Encoded]]:
        yield from batches(texts, self.batch)

    def _single(self, texts: Sequence[Encoded], kept: Kept) -> Kept:
        """The texts answered by the model as it is, and by every system that changes one layer; and gradients of their gates."""
        cuts = self.systems.cuts()
        for batch in self._batched(texts):
            found = self.answer(batch, [{}, *cuts])
            kept.say("document", [text.document for text in batch])
            kept.add("base", found[0])
            kept.add("systems", found[1:].swapaxes(0, 1))
            if self._weighs:
                slopes = importance(self.model, batch, self.batch, share=self.spec.mask_share, key=f"{self.spec.seed}/0")
                for name in ("slopes", "sizes", "tokens"):
                    kept.add(name, getattr(slopes, name))
        return kept

    @property
    def _weighs(self) -> bool:
        return bool({"importance", "pruning"} & {*self.spec.parts})

    def weighed(self) -> Kept:
        """The half of the documents that an order is found on, answered and differentiated."""
        some = [text for text in self.texts if not self._halves or group_of(text.document, 2) == 0]
        kept = Kept()
        for start in range(0, len(some), self.shard):
            self._single(some[start : start + self.shard], kept)
            if self.progress is not None:
                seen = some[: start + self.shard]
                self.progress(len(seen) / len(some), len(seen), sum(map(len, seen)))
        return kept

    def answered(self, texts: Sequence[Encoded], cuts: Sequence[Cut]) -> Kept:
        """Texts answered by the model as it is, and under each cut."""
        kept = Kept()
        for batch in self._batched(texts):
            found = self.answer(batch, [{}, *cuts])
            kept.say("document", [text.document for text in batch])
            kept.add("base", found[0])
            kept.add("systems", found[1:].swapaxes(0, 1))
        return kept

    def scores(self, kept: Kept) -> Scores:
        """What was answered, to be scored."""
        return Scores(
            self.systems,
            kept.numbers("base"),
            kept.numbers("systems").swapaxes(0, 1),
            kept.words("document"),
            self.statistics,
            self.spec.test,
            self.spec.replicates,
            self.spec.seed,
        )

    def importance(self, kept: Kept, some: np.ndarray, replicates: int) -> Float64[np.ndarray, "replicate+1 head"]:
        """I_h by some examples, and where their documents are drawn again."""
        slopes, sizes, tokens = (kept.numbers(name)[some] for name in ("slopes", "sizes", "tokens"))
        parts = per_example(slopes, sizes, tokens, self.spec.abs_over)
        names = [name for name, used in zip(kept.words("document"), some, strict=True) if used]
        return replicated(*parts, self.model.layout, names, self.spec.normalise, replicates, self.spec.seed)

    def _curves(self, scores: Scores, kept: Kept) -> Curves:
        """The orders, found on one half of the documents."""
        some = scores.fold == 0 if self._halves else np.ones(len(scores.documents), dtype=bool)
        orders = {"importance": ascending(self.importance(kept, some, 0)[0])}
        if "heads" in self.spec.parts:
            orders["drop"] = ascending(scores.harm("heads", some))
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
        texts = [text for text in self.texts if not self._halves or group_of(text.document, 2) == 0]
        gone: list[int] = []
        for size in Curves(self.model.layout, {}, self.spec.steps).sizes:
            with gated(self.model, {site: torch.from_numpy(gate).float() for site, gate in removal(self.model.layout, gone).items()}):
                slopes = importance(self.model, texts, self.batch, share=self.spec.mask_share, key=f"{self.spec.seed}/0")
            order = ascending(slopes.of(self.spec.abs_over, self.spec.normalise))
            gone += [place for place in order if place not in gone][: size - len(gone)]
        return gone

    def _tables(self, scores: Scores, curves: Curves | None, kept: Kept, pruned: Kept) -> dict[str, Table]:
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
            found["prunable"] = prunable_table(found["pruning"], float(score.of(base)), score, spec.tolerance)
        score, base = self.statistics(scores.base)
        return {"summary": summary(found, score, float(score.of(base)), len(scores.documents)), **found}
