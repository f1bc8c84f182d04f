"""The work of a study of attention probes: they are trained and tested on different sentences, with baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headscope.core.state import States
from headscope.encoding.texts import Encoded
from headscope.models.loading.random import untrained
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.attention_probe.evaluation import right_branching, score_probes
from headscope.studies.attention_probe.lexicon import REMEDY
from headscope.studies.attention_probe.maps import Maps, Store
from headscope.studies.attention_probe.material import AttentionProbeData
from headscope.studies.attention_probe.probes import AttentionProbe, AttentionWordsProbe, Probe, WordsDistancesProbe
from headscope.studies.attention_probe.spec import AttentionProbeSpec, Name
from headscope.studies.attention_probe.tables import Answers, difference_table, head_table, relation_table, seed_table, summary_table
from headscope.studies.attention_probe.training import SentenceMaps, standard_scale, train
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length

GPU_BATCH, BATCH = 32768, 2048  # tokens that the model reads at once
# The cost of a pair of words in a step, as the number of multiplications that a pass of the model does in the same
# time: for each head's map, and for probes that know words.
EACH_MAP = 40
EACH_WORDS: dict[str, float] = {"attention-words": 14_000, "words-distances": 43_000}


class ProbeGroup(NamedTuple):
    """Probes that are trained together, and what they are trained on: the model, a random control, words or nothing."""

    number: int
    trained_on: str
    probes: tuple[Name, ...]


class AttentionProbeWork(Work):
    """One study of attention probes. A job is a group of probes that are trained together."""

    spec: AttentionProbeSpec

    def __init__(self, spec: AttentionProbeSpec, context: StudyContext) -> None:
        super().__init__(spec, context)
        require_length(self.model, spec)
        self.material = AttentionProbeData.of(spec, self.model, context.corpus, context.corpora["dev"])
        self.counts = self.material.counts
        lexicon = self.material.lexicon
        if spec.words is None and lexicon.source == "model" and any("words" in name for name in spec.probes):
            self.notes.append(f"no GloVe vectors were found: words are represented by the model's input embeddings. {REMEDY}")
        self.contents = {"vectors": lexicon.digest if lexicon.table is not None else None}
        words = lexicon.source if lexicon.source in ("learned", "model") else "glove"
        self.spec = spec.model_copy(update={"words": words, "epochs": spec.epochs_for(len(self.material.learned))})
        batch_tokens = spec.batch_tokens or (BATCH if self.model.device.type == "cpu" else GPU_BATCH)
        self.maps = Maps(self.model, spec.word_rows or "mean", batch_tokens)
        self.parts = [ProbeGroup(number, *part) for number, part in enumerate(spec.parts().items())]

    def prepare(self) -> None:
        """Make tensors of the trees."""
        material = self.material
        self.learned, self.stopping, self.tried = (material.trees(texts) for texts in (material.learned, material.stopping, material.tried))

    def jobs(self, merged: Callable[[], States]) -> list[ProbeGroup]:
        """The parts of the study."""
        return self.parts

    def costs(self) -> list[float]:
        """Multiplications of each part: all passes of the model, and all epochs of training."""
        return [sum(self._cost(part)) or 1.0 for part in self.parts]

    def _cost(self, part: ProbeGroup) -> tuple[float, float, float]:
        """The costs of a part: reading the sentences to learn from, training, and reading the sentences to test on."""
        pairs = sum(len(tree) ** 2 for tree in self.learned)
        reading, tried = (self.reading_cost(texts) for texts in (self.material.learned, self.material.tried))
        if part.trained_on not in ("trained", "random"):
            reading = tried = 0.0
        each = {"attention": EACH_MAP * len(self.maps.heads), **EACH_WORDS}
        training = [each[name.removeprefix("random-")] for name in part.probes if part.trained_on != "rules"]
        return reading, (self.spec.epochs or 1) * self.spec.seeds * pairs * sum(training), tried

    def do(self, job: ProbeGroup) -> States:
        """Which words the probes of a part get right, and the weights of heads; for the first part also the scored
        words.
        """
        kept = StateColumns()
        if job.number == 0:
            for text, scored in zip(self.material.tried, self.material.scored(), strict=True):
                kept.add_words("document", [text.document] * int(scored.sum()))
                kept.add_words("relation", [word.relation or "" for word, counts in zip(text.words, scored, strict=True) if counts])
        if job.trained_on == "rules":
            right_branching(self.material, kept)
        else:
            self._train(job, kept)
        return {"probe": kept.state}

    def tables(self, states: States) -> dict[str, Table]:
        """The tables that have rows."""
        self._remark()
        kept = StateColumns(states["probe"])
        answers = Answers(kept, self.spec.replicates, self.spec.seed)
        tables = {
            "summary": summary_table(answers, self.material.lexicon.source),
            "attention_probe": seed_table(answers, self.spec.every_seed),
            "attention_probe_relations": relation_table(answers),
            "attention_probe_differences": difference_table(answers),
            "attention_probe_heads": head_table(kept, self.maps.heads),
        }
        return {name: table for name, table in tables.items() if len(table) or name == "attention_probe"}

    def measured(self) -> dict[str, Any]:
        """The probes, and the source of their word vectors."""
        return self.spec.model_dump(mode="json", include={"probes", "words", "preset"})

    def further(self) -> dict[str, Any]:
        """How many sentences there are for each use."""
        return {"sentences": {"learned": len(self.learned), "stopping": len(self.stopping), "tried": len(self.tried)}}

    def _remark(self) -> None:
        """Add notes for the reader on how the study was done."""
        if any("words" in name for name in self.spec.probes) and self.spec.words == "glove":
            known = self.material.lexicon.known(self.material.tried)
            self.notes.append(f"{known:.1%} of the words of the test sentences have a vector in {self.material.lexicon.source}")
        looks = any(part.trained_on in ("trained", "random") for part in self.parts)
        if looks and not all(self.maps.specials) and self.spec.root == "shared":
            where = "before or after" if not any(self.maps.specials) else "after" if self.maps.specials[0] else "before"
            self.notes.append(
                f"{self.spec.model} puts no token {where} a text, to which attention could represent the root: --root separate gives the "
                "root a separate score"
            )

    def _train(self, part: ProbeGroup, kept: StateColumns) -> None:
        """Train the probes of a part, test them, and keep the results."""
        model = untrained(self.model, self.spec.seed) if part.trained_on == "random" else self.model
        maps = None if part.trained_on == "words" else Maps(model, self.maps.rows, self.maps.batch_tokens)
        learned, stopping, tried = (
            SentenceMaps([text.id for text in texts], trees, self._store(maps, texts, again), model.device)
            for texts, trees, again in (
                (self.material.learned, self.learned, (self.spec.epochs or 1) > 1 or bool(self.spec.standardise)),
                (self.material.stopping, self.stopping, True),
                (self.material.tried, self.tried, False),
            )
        )
        try:
            probes = {name: self._probe(name, learned).to(model.device) for name in part.probes}
            epochs = train(probes, learned, self.spec.recipe, stopping if self.stopping else None, lambda share: self._tell(part, share))
            score_probes(probes, tried, self.material, kept, trees=self.spec.decode == "tree")
            for name in part.probes:
                kept.add(f"epochs/{name}", epochs[name])
        finally:
            for sentences in (learned, stopping, tried):
                if sentences.store is not None:
                    sentences.store.close()

    def _store(self, maps: Maps | None, texts: list[Encoded], again: bool) -> Store | None:
        if maps is None:
            return None
        store = Store(maps, texts, int(self.spec.cache_limit * 2**30), again)
        if again and texts and not store.keeps:
            size = f"{store.bytes / 2**30:.1f} GiB"
            self.notes.append(f"maps of {len(texts):,} sentences take {size}, more than the limit: they are computed again in each epoch")
        return store

    def _tell(self, part: ProbeGroup, share: float) -> None:
        """Report how much of a part is done; in the first epoch the model reads the texts."""
        epochs = share * (self.spec.epochs or 1)
        reading, training, tried = self._cost(part)
        done = int(epochs * len(self.learned))
        tokens = sum(map(len, self.material.learned)) * done // len(self.learned)
        self.meter.update((min(epochs, 1.0) * reading + share * training) / (reading + training + tried), done, tokens)

    def _probe(self, name: Name, learned: SentenceMaps) -> Probe:
        spec, seeds = self.spec, self.spec.every_seed
        alignment = spec.alignment or "fixed"
        if name == "words-distances":
            return WordsDistancesProbe(seeds, self.material.lexicon.vectors(seeds), alignment)
        maps = 2 * len(self.maps.heads)
        scale = standard_scale(learned) if spec.standardise else None
        if "words" not in name:
            return AttentionProbe(seeds, maps, spec.root, scale)
        return AttentionWordsProbe(seeds, maps, self.material.lexicon.vectors(seeds), spec.root, scale, alignment, spec.bias)
