"""The runs that are served, each under a name. Names are looked up here and never become paths."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from headscope.app.errors import missing
from headscope.app.limits import Limits
from headscope.errors import RunError
from headscope.runs.results import Results
from headscope.views.run import corpus_name, flat_heads, model_name

T = TypeVar("T")


@dataclass(frozen=True)
class Inside:
    """What a run's page shows: HTML and its style sheet, and data for the views as JSON."""

    title: str
    style: str
    body: str
    data: str


class Shelf:
    """Runs by name. Pages are made one at a time, apart from the requests that wait for them, and the last few are kept."""

    def __init__(self, runs: Mapping[str, Results], limits: Limits) -> None:
        self._runs = dict(runs)
        self._limits = limits
        self._made: OrderedDict[str, Inside] = OrderedDict()
        self._maker = ThreadPoolExecutor(1, "headscope-pages")

    def __getitem__(self, name: str) -> Results:
        if name not in self._runs:
            raise missing("there is no such run here", f"The runs are {', '.join(self._runs)}" if self._runs else "No run is served")
        return self._runs[name]

    def describe(self) -> list[dict[str, Any]]:
        """The runs as the index lists them."""
        return [{"name": name, **summary(results)} for name, results in self._runs.items()]

    def head(self, name: str, head: str) -> str:
        """The head's name, if the run has such a head."""
        known = heads(self[name])
        if head not in known:
            raise missing("the run has no such head", f"Its heads are {known[0]} to {known[-1]}" if known else "")
        return head

    async def inside(self, name: str) -> Inside:
        """The page of a run."""
        results = self[name]
        return await self.work(lambda: self._inside(name, results))

    async def work(self, function: Callable[[], T]) -> T:
        """The value of a function that takes a while, or that draws: figures are not made in two threads at once."""
        return await asyncio.get_running_loop().run_in_executor(self._maker, function)

    def _inside(self, name: str, results: Results) -> Inside:
        from headscope.report import body, style, title
        from headscope.views.page import encode
        from headscope.views.run import run_data

        if name not in self._made:
            self._made[name] = Inside(title(results), style(), body(results), encode(run_data(results, name)))
            while len(self._made) > self._limits.pages:
                self._made.popitem(last=False)
        self._made.move_to_end(name)
        return self._made[name]

    def close(self) -> None:
        """Begin no more work."""
        self._maker.shutdown(wait=False, cancel_futures=True)


def heads(results: Results) -> list[str]:
    """The names of a run's heads, in the order of its layers."""
    return list(map(str, flat_heads(results.manifest.get("sites", ()))))


def summary(results: Results) -> dict[str, Any]:
    """A run in a few fields."""
    return {
        "model": model_name(results),
        "corpus": corpus_name(results),
        "measures": list(results.measures),
        "texts": results.manifest.get("counts", {}).get("texts"),
        "heads": len(heads(results)),
        "signature": results.signature,
    }


def find_runs(paths: Iterable[Path], say: Callable[[str], None] = lambda line: None) -> dict[str, Results]:
    """The runs in folders, or in folders of folders, by name. A run among others that cannot be opened is passed over, and said."""
    found: dict[str, Results] = {}
    for path in paths:
        if (path / "run.json").exists() or not path.is_dir():
            _add(found, path, open_run(path))
            continue
        children = [child for child in sorted(path.iterdir()) if (child / "run.json").is_file()]
        if not children:
            raise RunError(f"{path} holds no run", "Name run folders, or a folder that holds run folders")
        for child in children:
            try:
                _add(found, child, open_run(child))
            except RunError as error:
                say(f"passed over: {error}")
    return found


def open_run(path: Path) -> Results:
    """The results in a run folder, if the names of its tables are names and not paths."""
    results = Results.open(path)
    for table in results:
        if not re.fullmatch(r"[\w-]+", table):
            raise RunError(f"the run in {path} has a table called {table!r}, which is no name", "Its run.json was changed by hand")
    return results


def _add(found: dict[str, Results], path: Path, results: Results) -> None:
    if any(results.path is not None and other.path is not None and other.path.samefile(results.path) for other in found.values()):
        return
    found[unique(path.resolve().name, found)] = results


def unique(name: str, taken: Iterable[str]) -> str:
    """The name, or the name with a number after it if it is taken: `run`, `run-2`, `run-3`."""
    plain = name.encode("utf-8", "replace").decode() or "run"
    known, number, tried = set(taken), 1, plain
    while tried in known:
        number += 1
        tried = f"{plain}-{number}"
    return tried
