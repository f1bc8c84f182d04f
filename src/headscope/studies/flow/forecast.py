"""How long a study will take, by what its second text took: the work of a text grows with its tokens, and G* with
their square.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from headscope.studies.flow.jobs import FlowText
from headscope.studies.flow.spec import FlowSpec

TOLD = 10.0  # seconds below which nothing is said


def work(job: FlowText, spec: FlowSpec) -> float:
    """The work of a text in units that hold for one model and one study, by counts of operations: passes of a token
    through a layer.
    """
    tokens = len(job.text)
    pairs = job.pairs()
    sources, targets = (tokens, tokens) if pairs is None else (len(pairs.sources), len(pairs.targets))
    found = 2.0 * tokens
    if "G" in spec.measures:
        found += targets * (60 if spec.norm in ("frobenius", None) else 4)
    if "G*" in spec.measures:
        rows = sources * spec.probes if spec.norm in ("frobenius", None) else tokens
        found += rows * tokens * (2 if rows > 200 else 6) / 10
    if "maxflow" in spec.measures:
        found += tokens**4 / 1e4
    return found


class Clock:
    """How much of the work of a study is done, and how long the rest will take: told once, by what the second text
    took.

    The first text takes longer than it should, since much is done for the first time then. Texts that an earlier
    study has done are counted by `skip`.
    """

    def __init__(self, jobs: Sequence[FlowText], spec: FlowSpec, say: Callable[[str], None]) -> None:
        self._spec, self._say = spec, say
        self._total, self._done, self._left = sum(work(job, spec) for job in jobs), 0.0, len(jobs)
        self._last, self._timed = time.monotonic(), 0
        self.texts, self.tokens = 0, 0

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return self._done / self._total

    def skip(self, job: FlowText) -> None:
        """Count a text that was done before."""
        self._done, self._left = self._done + work(job, self._spec), self._left - 1
        self.texts, self.tokens = self.texts + 1, self.tokens + len(job.text)

    def tick(self, job: FlowText) -> None:
        """Count a text that is done now."""
        now = time.monotonic()
        seconds, self._last, self._timed = now - self._last, now, self._timed + 1
        self.skip(job)
        if self._timed == 2 and (rest := (self._total - self._done) * seconds / work(job, self._spec)) > TOLD:
            self._say(sentence(rest, self._left, self._spec))


def sentence(seconds: float, texts: int, spec: FlowSpec) -> str:
    """The estimate in words, with what makes the study shorter."""
    cheaper = "; --measures A,G or --norm sum is faster" if "G*" in spec.measures and spec.norm in ("frobenius", None) else ""
    return f"about {_spelled(seconds)} for {texts} more texts{cheaper}. What is done is kept: --resume goes on with it"


def _spelled(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds / 10) * 10} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
