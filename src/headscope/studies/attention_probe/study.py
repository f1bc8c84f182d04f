"""A study of attention probes: trained on some sentences, tried on others, beside what words, a rule and a random model give."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, read
from headscope.engine.checkpoint import Ledger
from headscope.engine.opening import once, require_length, study_folder
from headscope.engine.shards import Progress
from headscope.errors import RunError
from headscope.models.load import load
from headscope.models.model import Model
from headscope.models.random import untrained
from headscope.results.columns import Kept
from headscope.results.folder import Folder
from headscope.results.results import Results
from headscope.results.signature import key
from headscope.results.table import Table
from headscope.studies.attention_probe.lexicon import REMEDY
from headscope.studies.attention_probe.maps import Maps, Store
from headscope.studies.attention_probe.material import Material
from headscope.studies.attention_probe.probes import AttentionProbe, AttentionWordsProbe, Probe, WordsDistancesProbe
from headscope.studies.attention_probe.spec import AttentionProbeSpec, Name
from headscope.studies.attention_probe.tables import Answers, difference_table, head_table, relation_table, seed_table, summary_table
from headscope.studies.attention_probe.testing import put_to_the_test, right_branching
from headscope.studies.attention_probe.training import Sentences, standard_scale, train
from headscope.studies.legacy import begin, finish, study_identity

GPU_BATCH, BATCH = 32768, 2048  # tokens that the model reads at once


def probe_attention(
    spec: AttentionProbeSpec,
    out: Path | None = None,
    *,
    model: Model | None = None,
    corpus: Corpus | None = None,
    dev: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Do what the specification says; write to `out` if given. A loaded `model` or a `corpus` in hand takes the place of its name."""
    folder = study_folder(out, resume, overwrite)
    spec = spec.resolved()
    if corpus is None:
        corpus = read(*spec.corpus, format=spec.format, on_error=spec.on_error)
    if dev is None and spec.dev is not None:
        dev = read(*spec.dev, format=spec.format, on_error=spec.on_error)
    for one, paths in ((corpus, spec.corpus), (dev, spec.dev or ())):
        if one is not None and not one.layers({"trees"}):
            raise RunError(f"probes learn to find governors, and {', '.join(paths)} has no trees", "Use a treebank, in CoNLL-U for example")
    if model is None:
        model = load(spec.model, device, spec.dtype)
    require_length(model, spec.model, spec.max_length)
    material = Material.of(spec, model, corpus, dev)
    fallen_back = spec.words is None and material.lexicon.source == "model" and any("words" in name for name in spec.probes)
    table = material.lexicon.table
    decided = {"dtype": model.dtype, "words": _kind(material.lexicon.source), "epochs": spec.epochs_for(len(material.learned))}
    spec = spec.model_copy(update=decided)
    now = study_identity(spec, model, corpus, dev=dev, vectors=material.lexicon.digest if table is not None else None)
    return once(folder, now, resume, overwrite, lambda: _Study(spec, model, material, progress, fallen_back).run(folder, now, resume))


def _kind(source: str) -> str:
    return source if source in ("learned", "model") else "glove"


class _Study:
    """One study: its parts, one after the other, and what is made of them."""

    def __init__(self, spec: AttentionProbeSpec, model: Model, material: Material, progress: Progress | None, fallen_back: bool) -> None:
        self.spec, self.model, self.material, self.progress = spec, model, material, progress
        self.notes = [f"no GloVe vectors here: the model's own input embeddings stand for words. {REMEDY}"] if fallen_back else []
        self.maps = Maps(model, spec.word_rows or "mean", spec.batch_tokens or (BATCH if model.device.type == "cpu" else GPU_BATCH))
        self.learned, self.stopping, self.tried = (material.trees(texts) for texts in (material.learned, material.stopping, material.tried))
        self.parts = spec.parts()

    def run(self, folder: Folder | None, now: dict[str, Any], resume: bool) -> Results:
        """All parts, and the tables."""
        started = time.monotonic()
        spec = self.spec
        manifest = begin("attention_probe", spec, now, self.model, folder)
        ledger = Ledger(folder, key(now), resume)
        for number, (part, names) in enumerate(self.parts.items()):
            if not ledger.done(number):
                kept = Kept()
                if number == 0:
                    self._words(kept)
                self._part(part, names, kept, number)
                ledger.add(number, {"probe": kept.state})
        assert ledger.merged is not None
        self._remark()
        counts = self.material.counts
        said = {
            "measures": {"attention_probe": {name: manifest["settings"][name] for name in ("probes", "words", "preset")}},
            "seconds": round(time.monotonic() - started, 3),
            "notes": self.notes,
            "sentences": {"learned": len(self.learned), "stopping": len(self.stopping), "tried": len(self.tried)},
        }
        tables = self.tables(Kept(ledger.merged["probe"]))
        return finish(manifest, tables, self.model, counts, ledger, ledger.merged, folder, said)

    def tables(self, kept: Kept) -> dict[str, Table]:
        """What was found."""
        answers = Answers(kept, self.spec.replicates, self.spec.seed)
        found = {
            "summary": summary_table(answers, self.material.lexicon.source),
            "attention_probe": seed_table(answers, self.spec.every_seed),
            "attention_probe_relations": relation_table(answers),
            "attention_probe_differences": difference_table(answers),
            "attention_probe_heads": head_table(kept, self.maps.heads),
        }
        return {name: table for name, table in found.items() if len(table) or name == "attention_probe"}

    def _remark(self) -> None:
        """What a reader should know of how it was done."""
        used = {name for names in self.parts.values() for name in names}
        if any("words" in name for name in used) and self.spec.words == "glove":
            known = self.material.lexicon.known(self.material.tried)
            self.notes.append(f"{known:.1%} of the words that probes are tried on have a vector in {self.material.lexicon.source}")
        if {"trained", "random"} & self.parts.keys() and not all(self.maps.specials) and self.spec.root == "shared":
            where = "before or after" if not any(self.maps.specials) else "after" if self.maps.specials[0] else "before"
            self.notes.append(
                f"{self.spec.model} puts no token {where} a text, where attention would stand for the root: --root separate gives it a "
                "score of its own"
            )

    def _words(self, kept: Kept) -> None:
        """Whose words are scored, and their relations."""
        for text, scored in zip(self.material.tried, self.material.scored(), strict=True):
            kept.say("document", [text.document] * int(scored.sum()))
            kept.say("relation", [word.relation or "" for word, counts in zip(text.words, scored, strict=True) if counts])

    def _part(self, part: str, names: tuple[Name, ...], kept: Kept, number: int) -> None:
        if part == "rules":
            right_branching(self.material, kept)
            return
        model = untrained(self.model, self.spec.seed) if part == "random" else self.model
        maps = None if part == "words" else Maps(model, self.maps.rows, self.maps.batch_tokens)
        learned, stopping, tried = (
            Sentences([text.id for text in texts], trees, self._store(maps, texts, again), model.device)
            for texts, trees, again in (
                (self.material.learned, self.learned, (self.spec.epochs or 1) > 1 or bool(self.spec.standardise)),
                (self.material.stopping, self.stopping, True),
                (self.material.tried, self.tried, False),
            )
        )
        try:
            probes = {name: self._probe(name, learned).to(model.device) for name in names}
            tell = None if self.progress is None else lambda share: self._tell(number, share)
            epochs = train(probes, learned, self.spec.recipe, stopping if self.stopping else None, tell)
            put_to_the_test(probes, tried, self.material, kept, trees=self.spec.decode == "tree")
            for name in names:
                kept.add(f"epochs/{name}", epochs[name])
        finally:
            for some in (learned, stopping, tried):
                if some.store is not None:
                    some.store.close()

    def _store(self, maps: Maps | None, texts: list[Any], again: bool) -> Store | None:
        if maps is None:
            return None
        store = Store(maps, texts, self.spec.cache_bytes, again)
        if again and texts and not store.keeps:
            size = f"{store.bytes / 2**30:.1f} GiB"
            self.notes.append(f"maps of {len(texts):,} sentences take {size}, more than are kept: they are worked out anew in each epoch")
        return store

    def _tell(self, part: int, share: float) -> None:
        assert self.progress is not None
        done = int(share * (self.spec.epochs or 1) * len(self.learned))
        tokens = sum(map(len, self.material.learned)) * done // len(self.learned)
        self.progress((part + 0.95 * share) / len(self.parts), done, tokens)

    def _probe(self, name: Name, learned: Sentences) -> Probe:
        spec, seeds = self.spec, self.spec.every_seed
        alignment = spec.alignment or "fixed"
        if name == "words-distances":
            return WordsDistancesProbe(seeds, self.material.lexicon.vectors(seeds), alignment)
        maps = 2 * len(self.maps.heads)
        scale = standard_scale(learned) if spec.standardise else None
        if "words" not in name:
            return AttentionProbe(seeds, maps, spec.root, scale)
        return AttentionWordsProbe(seeds, maps, self.material.lexicon.vectors(seeds), spec.root, scale, alignment, spec.bias)
