"""The runs that are served, each under a name. Names are looked up here and never become paths."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from headscope.app.errors import Refusal, missing
from headscope.app.limits import Limits
from headscope.core.heads import HeadId, find_head
from headscope.core.maps import WEIGHTS
from headscope.core.paths import kind_of
from headscope.errors import RunError, StaleError
from headscope.results.results import Results, blame_folder
from headscope.views.known import EXAMPLES, KnownHead, SeenText, known_heads, seen_texts
from headscope.views.run import corpus_name, model_name

T = TypeVar("T")


@dataclass(frozen=True)
class PageContent:
    """What a page of runs shows: HTML and its style sheet, and data for the views as JSON."""

    title: str
    style: str
    body: str
    data: str


class RunCache(Generic[T]):
    """Values by the names of runs. A value is valid as long as the names belong to the runs that it was made from."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[tuple[str, ...], tuple[tuple[Results, ...], T]] = OrderedDict()

    def get(self, names: tuple[str, ...], runs: tuple[Results, ...]) -> T | None:
        """The value, or None if there is no valid one. Any thread may call this."""
        held, value = self._held.get(names, ((), None))
        if len(held) != len(runs) or any(old is not new for old, new in zip(held, runs, strict=True)):
            return None
        with suppress(KeyError):  # the thread that puts may just have dropped it
            self._held.move_to_end(names)
        return value

    def put(self, names: tuple[str, ...], runs: tuple[Results, ...], value: T) -> None:
        """Keep a value, and drop the least recently used ones. Only one thread may call this."""
        self._held[names] = runs, value
        self._held.move_to_end(names)
        while len(self._held) > self._most:
            self._held.popitem(last=False)


class ServedRuns:
    """Runs by name, opened again when their folder was rewritten.

    Pages are made one at a time in a separate thread, and the last few are kept.
    """

    def __init__(self, runs: Mapping[str, Results], limits: Limits) -> None:
        self._runs = dict(runs)
        self._limits = limits
        self._pages: RunCache[PageContent] = RunCache(limits.pages)
        self._comparisons: RunCache[PageContent] = RunCache(limits.pages)
        self._known: RunCache[tuple[list[KnownHead], list[SeenText]]] = RunCache(limits.pages)
        self._comparing: Counter[tuple[str, str]] = Counter()  # those that wait
        self._waiting = 0
        self._maker = ThreadPoolExecutor(1, "headscope-pages")

    def __getitem__(self, name: str) -> Results:
        if name not in self._runs:
            raise missing("there is no such run", f"The runs are {', '.join(self._runs)}" if self._runs else "No run is served")
        results = self._runs[name]
        try:
            results.check()
        except StaleError:
            results = self._runs[name] = _again(results)
        return results

    def describe(self) -> list[dict[str, Any]]:
        """The runs as the index lists them; one that is being rewritten is listed as it was."""
        for name in self._runs:
            with suppress(Refusal):
                self[name]
        return [{"name": name, **summary(results)} for name, results in self._runs.items()]

    def places(self) -> dict[str, str]:
        """The name of each run on this server, by the path of its folder."""
        return {str(results.path): name for name, results in self._runs.items() if results.path is not None}

    def head(self, name: str, head: str) -> HeadId:
        """The head of that name, if the run has it."""
        return known_head(head, self[name].layout.ids(), "run")

    async def inside(self, name: str) -> PageContent:
        """The page of a run."""
        results = self[name]
        return await self._made(self._pages, (name,), (results,), lambda: _run_page(results, name))

    async def compared(self, a: str, b: str) -> PageContent:
        """The page of two runs."""
        pair, runs = (a, b), (self[a], self[b])
        if pair not in self._comparing and len(self._comparing) >= self._limits.comparing and self._comparisons.get(pair, runs) is None:
            raise _busy("comparisons")
        self._comparing[pair] += 1
        try:
            return await self._made(self._comparisons, pair, runs, lambda: _comparison_page(runs, pair))
        finally:
            self._comparing -= Counter([pair])

    async def known(self, fingerprint: str) -> tuple[list[KnownHead], list[SeenText]]:
        """What the runs of a model say about its heads (for each head the first run that does), and texts of their
        galleries.
        """
        heads: dict[str, KnownHead] = {}
        texts: list[SeenText] = []
        for name in self._runs:
            try:
                results = self[name]
                if not of_model(results, fingerprint):
                    continue
                found = await self._made(self._known, (name,), (results,), partial(_known, results, name))
            except (Refusal, RunError):  # a run that cannot be read now is omitted
                continue
            heads = {head.head: head for head in found[0]} | heads
            texts += found[1]
        return list(heads.values()), texts[:EXAMPLES]

    async def work(self, function: Callable[[], T]) -> T:
        """The value of a function that takes a while, or that draws: figures are not made in two threads at once."""
        if self._waiting >= self._limits.waiting:
            raise _busy("pages")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._maker, function)
        finally:
            self._waiting -= 1

    async def _made(self, kept: RunCache[T], names: tuple[str, ...], runs: tuple[Results, ...], make: Callable[[], T]) -> T:

        def once() -> T:
            made = kept.get(names, runs)  # while this request waited for its turn
            if made is None:
                made = make()
                kept.put(names, runs, made)
            return made

        made = kept.get(names, runs)
        return made if made is not None else await self.work(once)

    def close(self) -> None:
        """Begin no new work."""
        self._maker.shutdown(wait=False, cancel_futures=True)


def _run_page(results: Results, name: str) -> PageContent:
    from headscope.report import body, style, title
    from headscope.views.page import encode
    from headscope.views.run import run_data

    return PageContent(title(results), style(), body(results), encode(run_data(results, name)))


def of_model(results: Results, fingerprint: str) -> bool:
    """Whether a run measured the attention weights of a model with its trained weights."""
    settings, identity = results.manifest.get("settings", {}), results.manifest.get("identity", {})
    return identity.get("model") == fingerprint and settings.get("weights", "trained") == "trained" and results.map == WEIGHTS


def _known(results: Results, name: str) -> tuple[list[KnownHead], list[SeenText]]:
    heads = known_heads(results, name)
    return heads, seen_texts(results, heads, name)


def _comparison_page(runs: tuple[Results, Results], names: tuple[str, str]) -> PageContent:
    from headscope.comparison.runs import compare
    from headscope.report import style
    from headscope.report.comparison import body, data
    from headscope.views.page import encode

    # A run that is compared with itself gets two names.
    comparison = compare(runs, names=names if names[0] != names[1] else (f"{names[0]} (1)", f"{names[1]} (2)"))
    return PageContent(f"headscope: {names[0]} and {names[1]}", style(), body(comparison), encode(data(comparison, names)))


def _again(results: Results) -> Results:
    """The results that are now in the folder of a run that has changed."""
    assert results.path is not None
    try:
        return open_run(results.path)
    except RunError:
        raise Refusal(409, "the run is being rewritten, or was removed", "Try again when it is finished") from None


def _busy(what: str) -> Refusal:
    return Refusal(429, f"too many requests for {what} at the same time", "Try again in a moment")


def known_head(name: str, heads: Sequence[HeadId], owner: str) -> HeadId:
    """The head of that name, with or without its kind, among those of a run or a model; a refusal if there is none."""
    head = None
    with suppress(ValueError):  # it is not the name of a head
        head = find_head(name, heads)
    if head is None:
        raise missing(f"the {owner} has no such head", f"Its heads are {heads[0]} to {heads[-1]}" if heads else "")
    return head


@blame_folder
def summary(results: Results) -> dict[str, Any]:
    """A run in a few fields."""
    return {
        "model": model_name(results),
        "corpus": corpus_name(results),
        "measures": list(results.measures),
        "texts": results.manifest.get("counts", {}).get("texts"),
        "heads": results.layout.size,
        "signature": results.signature,
    }


def find_runs(paths: Iterable[Path], notify: Callable[[str], None] = lambda line: None) -> dict[str, Results]:
    """The runs in folders, or in folders of folders, by name. One that cannot be opened is skipped and reported."""
    runs: dict[str, Results] = {}
    for path in paths:
        if kind_of(path / "run.json") == "file" or kind_of(path) != "folder":
            _add(runs, path, open_run(path))
            continue
        children = [child for child in sorted(path.iterdir()) if (child / "run.json").is_file()]
        if not children:
            raise RunError(f"{path} contains no run", "Name run folders, or a folder that holds run folders")
        for child in children:
            try:
                _add(runs, child, open_run(child))
            except RunError as error:
                notify(f"skipped: {error}")
    return runs


def open_run(path: Path) -> Results:
    """The results in a run folder, if the names of its tables are names and not paths."""
    results = Results.open_run(path)
    for table in results:
        if not re.fullmatch(r"[\w-]+", table):
            raise RunError(
                f"the run in {path} has a table {table!r}, which is not a valid name", "Its run.json was edited: run again with --overwrite"
            )
    return results


def _add(runs: dict[str, Results], path: Path, results: Results) -> None:
    if any(results.path is not None and other.path is not None and other.path.samefile(results.path) for other in runs.values()):
        return
    runs[unique(path.resolve().name, runs)] = results


def unique(name: str, taken: Iterable[str]) -> str:
    """The name, or the name with a number after it if it is taken: `run`, `run-2`, `run-3`."""
    plain = name.encode("utf-8", "replace").decode() or "run"
    known, number, tried = set(taken), 1, plain
    while tried in known:
        number += 1
        tried = f"{plain}-{number}"
    return tried
