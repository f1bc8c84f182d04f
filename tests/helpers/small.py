"""Studies that are so small that each takes about a second: a model of two layers of two heads, and a few sentences of
several documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from headscope.results.results import Results
from headscope.studies.execute import execute
from headscope.studies.registry import REGISTRY
from helpers.recipe_material import save_slice, save_small, save_small_decoder
from helpers.toy import ToyStudy

# The settings of each study, by its name in the registry. They should lead to at least two jobs and, if possible, to
# every table that is compared or drawn.
SMALL: Mapping[str, Mapping[str, Any]] = {
    "toy": {"least": 3, "without": "words.txt"},
    "flow": {"measures": ["A", "G"], "norm": "sum", "limit": 9, "items": 6, "context": 16, "max_length": 32},
    "ablation": {"limit": 6, "orders": 1, "steps": 2, "max_length": 64},
    "attention_probe": {"limit": 24, "epochs": 1, "seeds": 1, "max_length": 64, "held_out": 0.4},
    "structural_probe": {"limit": 24, "epochs": 1, "layers": [0, 2], "ranks": [1, 2], "max_length": 64},
    "edge_probe": {
        "tasks": ["pos"], "limit": 24, "checks": 1, "seeds": 2, "hidden": 8, "test": 0.4, "max_length": 64, "searched": 20,
    },
    "keywords": {"folds": 2, "max_length": 64},
    "in_context": {
        "model": "decoder", "chosen_on": ["repeats:8x6@1"], "heads": [1, 2], "draws": 2, "max_length": 32, "limit": 12,
    },
    "twins": {"other": "other", "limit": 12, "batch_tokens": 64, "shard_tokens": 128},
    "retrieval": {"model": "decoder", "corpus": ["needles:32x9"], "top": [1, 2], "draws": 2, "max_length": 96},
}  # fmt: skip
REPLICATES = 10
# Settings with which a study needs annotation that plain text does not have, for studies that do not always need it.
NEEDY: Mapping[str, Mapping[str, Any]] = {"flow": {"parts": ["trees"]}, "edge_probe": {"tasks": ["pos"]}}
# Studies that need no annotation, whatever their settings are, and studies that cut each text to what the model can
# read.
PLAIN, CUT = ("toy", "ablation", "twins", "in_context"), ("keywords",)
# Settings that must be given together with a file.
BESIDE: Mapping[str, Mapping[str, Any]] = {"run": {"by": ["next"]}}
_RECIPE = """
name = "Small"
title = "T"
authors = "A"
venue = "V"
about = "B"
[[steps]]
name = "first"
title = "First"
verb = "run"
corpus = "text"
settings = { measures = ["positions"], replicates = 10, max_length = 64 }
theirs = { model = "bert-base", data = "Wikipedia" }
[[claims]]
id = "next"
place = "§1"
says = "One head at least"
published = 4
expect = "above"
threshold = 0
where = { step = "first", table = "positions", rows = { quantity = "next" }, column = "value", take = "count", more_than = 0.5 }
"""


TOY = ToyStudy()


@contextmanager
def registered_toy() -> Iterator[ToyStudy]:
    """Register the toy study within the context."""
    REGISTRY.add(TOY)
    try:
        yield TOY
    finally:
        REGISTRY.remove(TOY.name)


@cache
def small_studies(place: Path) -> SmallStudies:
    """The object that makes the folders of small studies: the same one for all tests of a session, which share one
    temporary folder.
    """
    (place / "studies").mkdir()
    return SmallStudies(place / "studies")


class SmallStudies:
    """Makes the folders of small results, each once. All are in one folder, and refer to files by relative paths."""

    def __init__(self, root: Path) -> None:
        self.root, self.material = root, root / "material"
        self._finished: set[Path] = set()
        self.material.mkdir()
        save_small(self.material / "model", layers=2)
        save_small(self.material / "other", layers=3)
        save_small_decoder(self.material / "decoder")
        save_slice(self.material).rename(self.material / "excerpt.conllu")
        (self.material / "plain.txt").write_text("The dog barked at it.\n\nIt ran away.\n")
        (self.material / "words.txt").write_text("voted purchase\n")
        (self.material / "small.toml").write_text(_RECIPE)

    def settings(self, study: str) -> dict[str, Any]:
        """The settings of a small study."""
        assert study in SMALL, f"{study} has no small settings: add an entry to SMALL in tests/helpers/small.py"
        return {"model": "model", "corpus": ["excerpt.conllu"], "replicates": REPLICATES, **SMALL[study]}

    def execute(self, study: str, out: Path, changes: Mapping[str, Any] | None = None, **how: Any) -> Results:
        """Execute a small study with some settings changed."""
        settings = {**self.settings(study), **(changes or {})}
        with chdir(self.material):
            return execute(study, settings, out, **how)

    def folder(self, study: str, **changes: Any) -> Path:
        """The folder of a finished small study, which no test may change."""
        out = self.root / "-".join([study, *map(str, changes.values())])
        if out not in self._finished:
            self.execute(study, out, changes, overwrite=True)
            self._finished.add(out)
        return out

    def run(self) -> Path:
        """The folder of a small run."""
        from headscope.engine.spec import make_spec
        from headscope.runs.execute import execute

        out = self.root / "run"
        if not out.exists():
            settings = {"model": "model", "corpus": "excerpt.conllu", "measures": ["positions"], "replicates": REPLICATES, "limit": 9}
            with chdir(self.material):
                execute(make_spec(settings), out, gallery=2)
        return out

    def replication(self) -> Path:
        """The folder of a replication of one step."""
        from headscope.replication.study import replicate

        out = self.root / "replication"
        if not out.exists():
            with chdir(self.material):
                replicate("small.toml", out, model="model", corpora={"": ["excerpt.conllu"]})
        return out

    def joined(self) -> Path:
        """The folder of two joined edge probing studies."""
        from headscope.studies.edge_probe.join import joined

        out = self.root / "joined"
        if not out.exists():
            joined([Results.open(self.folder("edge_probe", tasks=[task])) for task in ("pos", "deps")], out)
        return out
