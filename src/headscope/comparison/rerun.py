"""A run made once more: what it was made of is found again, and what came out is held beside what came out then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.comparison.identical import Sameness
from headscope.core.paths import kind_of
from headscope.corpora import Corpus, read
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.results import Results
from headscope.results.signature import differences, versions

EMBEDDED = ("sampler", "mini")


def refuse(results: Results) -> None:
    """An error for results that nothing can be made of again, which says what is missing."""
    identity, where = results.manifest.get("identity", {}), results.path
    if "maps" in identity:
        remedy = "Measure the saved maps again with headscope run --maps, and put both beside each other with headscope compare"
        raise RunError(f"{where} was made of maps, whose files it does not name", remedy)
    if any(part.startswith("joined:") for part in results.signature.split("|")):
        raise RunError(f"{where} was joined of several studies", "Rerun those, each in its own folder")
    if results.study == "replication":
        raise RunError(f"{where} is a replication of several steps", "Rerun those, each in its own folder, or replicate the paper again")
    if results.manifest["settings"].get("score") == "own":
        raise RunError(f"{where} was scored by a function of your own, which is not kept", "Call headscope.ablate with it again")
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


def other_versions(results: Results) -> list[str]:
    """What versions are others than they were."""
    then, now = results.manifest["identity"].get("versions", {}), versions()
    return [f"{name} was {then[name]} and is {now[name]}" for name in now if name in then and then[name] != now[name]]


@contextmanager
def threads_of(results: Results) -> Iterator[None]:
    """Compute with as many threads as the run did, as far as it says so."""
    told = results.manifest.get("made", {}).get("threads") or [torch.get_num_threads()]
    before = torch.get_num_threads()
    torch.set_num_threads(told[0])
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Rerun:
    """What came of making a run again: `same` says what is equal, `circumstances` what was different; `kept` is the new folder, if it
    stays.
    """

    then: Results
    now: Results
    same: Sameness
    circumstances: tuple[str, ...]
    kept: Path | None

    @property
    def identical(self) -> bool:
        """Whether all tables, states and the gallery are the same to the last bit."""
        return self.same.identical

    def lines(self) -> list[str]:
        """What was found, in sentences."""
        same = self.same
        counted = f"{same.tables} tables with {same.numbers:,} numbers, and the states behind them with {same.states:,}"
        if same.identical:
            return [f"identical to the last bit: {counted}{'' if same.gallery is None else ', and the gallery'}"]
        lines = [f"not identical, of {counted}:", *(f"only one has {name}" for name in same.only)]
        cells = sum(one.differing for one in same.differences)
        if cells:
            lines.append(f"{cells:,} numbers or words differ in {len(same.differences)} columns and arrays")
            judged = "no more than the order of floating-point operations explains" if same.noise else "more than floating-point noise"
            lines.append(f"that is {judged}")
        if same.gallery is False:
            lines.append("the galleries differ")
        lines += [f"what was different: {'; '.join(self.circumstances)}"] if self.circumstances else ["nothing that is known was different"]
        return lines

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *([repr(self.same.table())] if self.same.differences else [])])


def circumstances(then: Results, now: Results) -> tuple[str, ...]:
    """What was different about the two times: settings, versions, kind of device, threads."""
    found = differences(then.manifest["identity"], now.manifest["identity"])
    a, b = (results.manifest.get("made", {}) for results in (then, now))
    for name in ("threads", "machine"):
        if a.get(name) != b.get(name):
            found.append(f"{name}: {_told(a.get(name))} then, {_told(b.get(name))} now")
    return tuple(found)


def _told(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value or "not known")
