"""How much of the work is done, and an estimate of the time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

WAITED, TOLD = 3.0, 10.0  # seconds of work before the time left is estimated, and seconds left from which it is printed


class TimeLeft:
    """An estimate of the time left, from the shares of the work done at some times.

    The speed is that of the later half of the time so far, so that a slow start is ignored and a change of speed is
    followed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self._began: float | None = None
        self.steps = 0  # times that the share has grown

    def add(self, share: float) -> None:
        """Record the share that is done now."""
        now = self._clock()
        if self._began is None:
            self._began = now
        elif share > self._seen[-1][1]:
            self.steps += 1
        else:
            return
        self._seen.append((now, share))
        while len(self._seen) > 2 and self._seen[1][0] <= (self._began + now) / 2:
            self._seen.popleft()

    @property
    def share(self) -> float:
        """The share that is done."""
        return self._seen[-1][1] if self._seen else 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the first share was seen."""
        return 0.0 if self._began is None else self._clock() - self._began

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None while the share has not grown."""
        if not self.steps:
            return None
        (first, before), (last, share) = self._seen[0], self._seen[-1]
        return max(0.0, (1 - share) * (last - first) / (share - before) - (self._clock() - last))


class JobProgress:
    """Progress of jobs of unequal costs. `progress` receives the share that is done, and `notify` receives one line
    with the time left.

    `costs` are those of all jobs in order, in a unit of any size; where they are None, `share` gives the share of all
    work. `notify` is called if the study takes long; its line ends with the `advice` on how to make it shorter.
    """

    def __init__(
        self,
        costs: Sequence[float] | None,
        share: Callable[[], float | None],
        progress: Callable[[float | None, int, int], None] | None = None,
        notify: Callable[[str], None] | None = None,
        advice: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ends = None if costs is None else list(accumulate(costs, initial=0.0))
        self._share, self._progress, self._notify, self._advice = share, progress, notify, advice
        self._left = TimeLeft(clock)
        self._number, self._read = 0, (0, 0)

    def begin(self, number: int) -> None:
        """Record that all jobs before this one are done."""
        self._number = number
        self.update(0.0, *self._read)

    def update(self, of_job: float, texts: int, tokens: int) -> None:
        """Record the share of the current job that is done, and the texts and tokens read so far."""
        self._read = texts, tokens
        share = self._share() if self._ends is None else self._weighed(self._ends, of_job)
        if share is not None:
            self._left.add(share)
        if self._progress is not None:
            self._progress(share, texts, tokens)
        left = self._left
        if self._notify is not None and left.steps > 1 and left.elapsed > WAITED:
            if (seconds := left.seconds) is not None and seconds > TOLD:
                self._notify(f"about {spelled(seconds)} left{self._advice}. Finished work is kept: --resume continues it")
            self._notify = None

    def _weighed(self, ends: Sequence[float], of_job: float) -> float:
        before, after = (ends[min(number, len(ends) - 1)] for number in (self._number, self._number + 1))
        return (before + (after - before) * min(of_job, 1.0)) / (ends[-1] or 1.0)


def spelled(seconds: float) -> str:
    """A time in words, in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
