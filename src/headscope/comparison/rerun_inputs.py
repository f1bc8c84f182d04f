"""What a run or a study was made of, found again: its files where they are now, and refused if they are not what
they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.paths import kind_of
from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.models.model import Model

EMBEDDED = ("sampler", "mini")


def refuse(results: Results) -> None:
    """An error for results that cannot be made again, which says what is missing."""
    identity, where = results.manifest.get("identity", {}), results.path
    if "maps" in identity:
        remedy = "Measure the saved maps again with headscope run --maps, and put both beside each other with headscope compare"
        raise RunError(f"{where} was made of maps, whose files it does not name", remedy)
    if results.study == "replication":
        raise RunError(f"{where} is a replication of several steps", "Rerun those, each in its own folder, or replicate the paper again")
    if results.study is not None:
        REGISTRY[results.study].refuse_rerun(results)
    if not {"model", "corpus", "settings"} <= identity.keys():
        raise RunError(f"{where} does not say what it was made of", "It was written by an older version of headscope; run it anew")


class Places:
    """Where the files are that a run names: as it was started, if that is known, or from here."""

    def __init__(self, results: Results) -> None:
        assert results.path is not None
        self._run = results.path
        started = results.manifest.get("made", {}).get("from")
        self._base = None if started is None else (results.path / started).resolve()

    def find(self, name: str) -> str | None:
        """The path of a file that a run calls by this name; None if it is not there any more."""
        path = Path(name).expanduser()
        places = [path] if path.is_absolute() or self._base is None else [self._base / path, path]
        return next((str(place) for place in places if kind_of(place) in ("file", "folder")), None)

    def corpus(self, names: Sequence[str], option: str, settings: Mapping[str, Any]) -> Corpus:
        """The corpus of these names; an error that says what is not found."""
        found = []
        for name in names:
            if name == "memory":
                problem = f"{self._run} was made of a corpus in memory, which has no name"
                raise RunError(problem, f"Give the corpus itself: headscope.rerun({str(self._run)!r}, {option}=...)")
            place = name if name in EMBEDDED else self.find(name)
            if place is None:
                where = f" in {self._base}" if self._base is not None and not Path(name).is_absolute() else ""
                raise RunError(f"{self._run} was made of {name!r}, which is not there any more{where}", f"Name it with --{option}")
            found.append(place)
        return read(*found, format=settings["format"], on_error=settings["on_error"])


def require_same(results: Results, what: str, then: str | None, now: str, name: str) -> None:
    """Refuse a model or a corpus that is not what it was."""
    if then != now:
        problem = f"{name} is not what {results.path} was made of: its {what} was {str(then)[:16]} and is {now[:16]}"
        remedy = "Name the one that was measured, or run anew and use headscope compare"
        raise RunError(problem, remedy)


def require_model(results: Results, model: Model) -> None:
    """Refuse a model that is not the one that was measured."""
    require_same(results, "fingerprint", results.manifest["identity"]["model"], model.fingerprint, f"the model {model.name}")


def require_corpus(results: Results, corpus: Corpus, option: str) -> None:
    """Refuse a corpus that is not the one that was read; `option` is `corpus`, `dev` or `look`."""
    identity = results.manifest["identity"]
    then = identity.get(option) or identity["settings"].get(option)
    name = ", ".join(map(str, corpus.paths)) or f"the {option} given"
    require_same(results, "sha256", then, corpus.hash(), name)
