"""Time left and shares of work, with a clock that is moved by hand."""

from __future__ import annotations

import pytest

from headscope.core.timing import JobProgress, TimeLeft, spelled


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_left_is_by_the_later_half() -> None:
    """A tenth takes 10 s at first and 2 s afterwards: the slow beginning is forgotten."""
    clock = Clock()
    left = TimeLeft(clock)
    left.add(0.0)
    assert left.seconds is None
    clock.now += 10
    left.add(0.1)
    assert left.seconds == pytest.approx(90)
    for share in range(2, 8):
        clock.now += 2
        left.add(share / 10)
    assert left.elapsed == 22
    assert left.seconds == pytest.approx(3 * 2)
    clock.now += 2.5
    assert left.seconds == pytest.approx(3.5), "it goes on falling between two reports"
    clock.now += 60
    assert left.seconds == 0


def test_a_share_that_does_not_grow_is_no_step() -> None:
    clock = Clock()
    left = TimeLeft(clock)
    for share in (0.5, 0.5, 0.4):
        left.add(share)
        clock.now += 1
    assert (left.steps, left.share, left.seconds) == (0, 0.5, None)
    left.add(0.75)
    assert left.seconds == pytest.approx(3), "what was done before is not counted as speed"


def test_shares_are_weighed_by_costs() -> None:
    told: list[tuple[float | None, int, int]] = []
    meter = JobProgress([6, 1, 3], lambda: None, lambda *given: told.append(given))
    meter.begin(0)
    meter.tell(0.5, 4, 40)
    meter.begin(1)
    meter.begin(2)
    meter.tell(1.5, 9, 90)
    meter.begin(3)
    assert told == [(0, 0, 0), (0.3, 4, 40), (0.6, 4, 40), (0.7, 4, 40), (1, 9, 90), (1, 9, 90)]


def test_costs_that_are_not_known() -> None:
    told: list[float | None] = []
    meter = JobProgress(None, iter([0.1, 0.4, None]).__next__, lambda share, *_: told.append(share))
    meter.begin(0)
    meter.tell(0.9, 1, 1)
    meter.begin(1)
    assert told == [0.1, 0.4, None]


def test_what_is_left_is_said_once() -> None:
    """Of ten equal jobs the third ends after 6 s: seven more take 14."""
    clock, said = Clock(), list[str]()
    meter = JobProgress([1.0] * 10, lambda: None, say=said.append, advice="; --norm sum is faster", clock=clock)
    for number in range(6):
        meter.begin(number)
        clock.now += 2
    assert said == ["about 16 s left; --norm sum is faster. Finished work is kept: --resume continues it"]
    short = JobProgress([1.0] * 10, lambda: None, say=said.append, clock=clock)
    for number in range(10):
        short.begin(number)
        clock.now += 1
    assert len(said) == 1, "six seconds are not worth a line"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (150, "2 min"), (7100, "118 min"), (9000, "2.5 h"), (200000, "2.3 days")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert spelled(seconds) == words
