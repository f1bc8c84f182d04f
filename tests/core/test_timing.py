"""The time left and shares of work, with a clock that is moved by hand."""

from __future__ import annotations

import pytest

from headscope.core.timing import JobProgress, TimeLeft, spelled


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_estimated_from_the_later_half() -> None:
    """The first tenth takes 10 s and each later one 2 s: the slow start is ignored."""
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
    assert left.seconds == pytest.approx(3.5), "the time left also falls between two reports"
    clock.now += 60
    assert left.seconds == 0


def test_a_share_that_does_not_grow_is_not_a_step() -> None:
    clock = Clock()
    left = TimeLeft(clock)
    for share in (0.5, 0.5, 0.4):
        left.add(share)
        clock.now += 1
    assert (left.steps, left.share, left.seconds) == (0, 0.5, None)
    left.add(0.75)
    assert left.seconds == pytest.approx(3), "work that was done before the first report does not count for the speed"


def test_shares_are_weighted_by_costs() -> None:
    reported: list[tuple[float | None, int, int]] = []
    meter = JobProgress([6, 1, 3], lambda: None, lambda *given: reported.append(given))
    meter.begin(0)
    meter.update(0.5, 4, 40)
    meter.begin(1)
    meter.begin(2)
    meter.update(1.5, 9, 90)
    meter.begin(3)
    assert reported == [(0, 0, 0), (0.3, 4, 40), (0.6, 4, 40), (0.7, 4, 40), (1, 9, 90), (1, 9, 90)]


def test_the_given_share_is_reported_if_costs_are_unknown() -> None:
    reported: list[float | None] = []
    meter = JobProgress(None, iter([0.1, 0.4, None]).__next__, lambda share, *_: reported.append(share))
    meter.begin(0)
    meter.update(0.9, 1, 1)
    meter.begin(1)
    assert reported == [0.1, 0.4, None]


def test_the_time_left_is_printed_once_and_only_if_it_is_long() -> None:
    """Ten equal jobs take 2 s each. After 4 s, two jobs are done, and the other eight take 16 s."""
    clock, printed = Clock(), list[str]()
    meter = JobProgress([1.0] * 10, lambda: None, notify=printed.append, advice="; --norm sum is faster", clock=clock)
    for number in range(6):
        meter.begin(number)
        clock.now += 2
    assert printed == ["about 16 s left; --norm sum is faster. Finished work is kept: --resume continues it"]
    short = JobProgress([1.0] * 10, lambda: None, notify=printed.append, clock=clock)
    for number in range(10):
        short.begin(number)
        clock.now += 1
    assert len(printed) == 1, "six seconds left are not printed"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (150, "2 min"), (7100, "118 min"), (9000, "2.5 h"), (200000, "2.3 days")]
)
def test_times_are_written_in_a_unit_that_suits_them(seconds: float, words: str) -> None:
    assert spelled(seconds) == words
