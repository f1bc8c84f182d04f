"""A structural probe over a corpus: states read once, probes of all layers trained together, scored, kept, written as tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, read
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import once, study_folder
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.hidden import hidden_shape
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.random import untrained
from headscope.results.columns import Kept
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.studies.hidden_states import States, hidden_states
from headscope.studies.legacy import begin, finish, study_identity
from headscope.studies.structural_probe.baselines import decay, projection
from headscope.studies.structural_probe.examples import table as trees
from headscope.studies.structural_probe.reading import Material, Part, fitted, material
from headscope.studies.structural_probe.scoring import score_chain
from headscope.studies.structural_probe.spec import StructuralSpec
from headscope.studies.structural_probe.summary import summary
from headscope.studies.structural_probe.sweep import Checkpoint, Sweep
from headscope.studies.structural_probe.tables import Tables

SWEEPS = ("layers", "random", "baselines", "ranks")


def probe_structural(
    spec: StructuralSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    dev: Corpus | None = None,
    device: str | None = None,
    cache: Path | None = None,
    limit_bytes: int = 8 * 2**30,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name.

    Probes are trained on `corpus` and scored on `dev`, or on some documents of `corpus` without it. Hidden states are kept in `cache` for
    whoever asks for them next; without it, in `out` or a temporary folder until the study is done.
    """
    folder = study_folder(out, resume, overwrite)
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    if dev is None and spec.dev is not None:
        dev = read(*spec.dev, format=spec.format, on_error=spec.on_error)
    for some in (corpus, *([dev] if dev is not None else [])):
        if not some.layers({"trees"}):
            name = ", ".join(map(str, some.paths)) or "the corpus"
            raise RunError(f"a structural probe needs trees, and {name} has none", "Use a corpus with dependencies, such as a CoNLL-U file")
    if model is None:
        model = load(spec.model, device, spec.dtype)
    spec = fitted(spec.resolved().model_copy(update={"dtype": model.dtype}), model)
    now = study_identity(spec, model, corpus, dev=dev)
    return once(
        folder,
        now,
        resume,
        overwrite,
        lambda: Study(spec, model, material(model, corpus, dev, spec), folder, cache, limit_bytes, progress).run(now, resume),
    )


class Study:
    """One study: its sweeps one after the other."""

    def __init__(
        self,
        spec: StructuralSpec,
        model: Model,
        parts: Material,
        folder: Folder | None,
        cache: Path | None,
        limit_bytes: int,
        progress: Progress | None,
    ) -> None:
        self._limit = limit_bytes
        self.spec, self.model, self.material, self.folder, self.progress = spec, model, parts, folder, progress
        self._cache_given = cache is not None
        self._cache = cache or (folder.path / "states" if folder is not None else None)
        self._states: dict[tuple[str, int], States] = {}

    def run(self, now: dict[str, Any], resume: bool) -> Results:
        """All sweeps, and the tables."""
        started = time.monotonic()
        spec = self.spec
        manifest = begin("structural_probe", spec, now, self.model, self.folder)
        ledger = Ledger(self.folder, key(now), resume)
        wanted = [name for name in SWEEPS if name in ("layers", *spec.baselines) or (name == "baselines" and self._contexts())]
        wanted += ["ranks"] * bool(spec.ranks)
        for number, name in enumerate(wanted):
            if ledger.done(number):
                continue
            best = self._tables(ledger).best() if number else 0
            path = self.folder.path / "partial" / "training.safetensors" if self.folder is not None else None
            checkpoint = Checkpoint(path, f"{key(now)}/{name}", resume)
            tell = self._telling(number, len(wanted))
            kept = self._sweep(name, best).run(self.material, spec, self.model.device, checkpoint, tell)
            if number == 0 and "linear" in spec.baselines:
                self._chain(kept)
            ledger.add(number, {"structural": kept.state})
        assert ledger.merged is not None
        tables = self._tables(ledger)
        found = {"structural": tables.scores("layers", "random", "baselines", "linear")}
        if spec.ranks:
            found["structural_ranks"] = tables.scores("ranks")
        found["structural_training"] = tables.training(*SWEEPS)
        found["structural_trees"] = trees(Kept(ledger.merged["structural"]))
        said = {
            "measures": {"structural_probe": {name: manifest["settings"][name] for name in ("layers", "rank", "ranks", "baselines")}},
            "seconds": round(time.monotonic() - started, 3),
            "best_layer": tables.best(),
            "notes": list(self.material.notes),
        }
        everything = {"summary": summary(found, tables.best(), hidden_shape(self.model)[0] - 1), **found}
        results = finish(manifest, everything, self.model, self.material.counts, ledger, ledger.merged, self.folder, said)
        self._states.clear()
        if self.folder is not None and not self._cache_given:
            self.folder.drop("states")
        return results

    def _contexts(self) -> list[str]:
        """The baselines that are vectors made of layer 0."""
        return [name for name in ("decay", "projection") if name in self.spec.baselines]

    def _tables(self, ledger: Ledger) -> Tables:
        assert ledger.merged is not None
        units = self.material.test.units(self.spec.resample)
        return Tables(Kept(ledger.merged["structural"]), units, self.spec.replicates, self.spec.seed)

    def _chain(self, kept: Kept) -> None:
        """The linear baseline, which nothing is trained for."""
        kept.add("linear/numbers", score_chain(self.material.test.trees, self.spec.reference)[:, None])
        kept.say("linear/source", ["linear"])
        for name, value in (("layer", -1), ("rank", 0), ("seed", 0)):
            kept.add(f"linear/{name}", [value])

    def _sweep(self, name: str, best: int) -> Sweep:
        spec, layers = self.spec, self.spec.layers or ()
        rank = (spec.rank or 1,)
        if name == "ranks":
            chosen = layers.index(best if spec.ranks_layer is None else spec.ranks_layer)
            return Sweep(name, lambda part: (("model", self._read("model", part)),), spec.ranks or (), (chosen,))
        if name == "baselines":
            return Sweep(name, lambda part: tuple(self._made(part)), rank)
        whose = "model" if name == "layers" else name
        return Sweep(name, lambda part: ((whose, self._read(whose, part)),), rank)

    def _made(self, part: Part) -> Iterator[tuple[str, States]]:
        base = self._read("embeddings", part)
        for name in self._contexts():
            yield name, decay(base, twice=self.spec.reference) if name == "decay" else projection(base, self.spec.seed)

    def _read(self, whose: str, part: Part) -> States:
        """The states of a part's words in the layers asked for. The control's layer 0 is the model's own, and is left out."""
        if (whose, id(part)) not in self._states:
            layers: Sequence[int] = (0,) if whose == "embeddings" else self.spec.layers or ()
            model = self.model
            if whose == "random":
                model = self._control
                layers = tuple(layer for layer in layers if layer > 0) or (0,)
            self._states[whose, id(part)] = hidden_states(
                model,
                part.texts,
                self._cache,
                layers=layers,
                level="word",
                dtype=self.spec.store,
                limit_bytes=self._limit,
                progress=self.progress,
            )
        return self._states[whose, id(part)]

    @cached_property
    def _control(self) -> Model:
        return untrained(self.model, self.spec.seed)

    def _telling(self, number: int, sweeps: int) -> Callable[[float], None]:
        texts, words = len(self.material.train), sum(len(text.words) for text in self.material.train.texts)

        def tell(share: float) -> None:
            if self.progress is not None:
                seen = share * self.spec.epochs
                self.progress((number + min(share, 1.0)) / sweeps, int(seen * texts), int(seen * words))

        return tell
