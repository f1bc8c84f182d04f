"""The time per section, with a clock that is moved by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

import headscope as hs
from headscope.core.profile import OTHER, Profile, profiling, timed, timing
from headscope.models.model import Model


class Clock:
    """A clock that moves only when `advance` is called."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def test_time_counts_for_the_innermost_section_and_all_sections_sum_to_the_total() -> None:
    clock = Clock()
    waits: list[float] = []
    with profiling(Profile(clock, lambda: waits.append(clock.now))) as profile:
        clock.advance(1)
        with timing("pass"):
            clock.advance(2)
            with timing("measure"):
                clock.advance(4)
            clock.advance(8)
        with timing("measure"):
            clock.advance(16)
        clock.advance(32)
    assert profile.sections() == {"pass": 10, "measure": 20, OTHER: 33}
    assert waits == [101, 103, 107, 115, 115, 131, 163], "the device is synchronised at each start and end of a section"


def test_time_counts_where_items_are_made_and_not_where_they_are_used() -> None:
    clock = Clock()

    def read() -> Iterator[int]:
        for number in range(3):
            clock.advance(1)
            yield number
        clock.advance(5)

    with profiling(Profile(clock, lambda: None)) as profile:
        encoded = (10 * number for number in timed(read(), "reading"))
        found = []
        for number in timed(encoded, "encoding"):
            clock.advance(100)
            found.append(number)
    assert found == [0, 10, 20]
    assert profile.sections() == {"encoding": 0, "reading": 8, OTHER: 300}


def test_a_section_that_fails_is_closed() -> None:
    clock = Clock()
    with profiling(Profile(clock, lambda: None)) as profile:
        with suppress(ValueError), timing("pass"):
            clock.advance(1)
            raise ValueError
        clock.advance(2)
    assert profile.sections() == {"pass": 1, OTHER: 2}


def test_other_threads_are_not_counted() -> None:
    clock = Clock()

    def work() -> None:
        with timing("elsewhere"):
            clock.advance(1)

    with profiling(Profile(clock, lambda: None)) as profile:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert profile.sections() == {OTHER: 1}


def test_nothing_is_counted_without_a_profile() -> None:
    items = [1, 2]
    assert timed(items, "reading") is items
    with timing("pass"):
        pass


def test_the_table_fits_a_terminal_and_ends_with_the_total() -> None:
    clock = Clock()
    with profiling(Profile(clock, lambda: None)) as profile:
        with timing("measure " + "x" * 100):
            clock.advance(3)
        with timing("writing"):
            clock.advance(0.5)
        clock.advance(0.5)
    lines = profile.lines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[-2:] for line in lines] == [
        ["seconds", "share"],
        ["3.000", "75.0%"],
        ["0.500", "12.5%"],
        ["0.500", "12.5%"],
        ["4.000", "100.0%"],
    ]


def test_a_profiled_run_prints_its_sections_and_has_the_same_results(small_model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    plain = hs.run(small_model, "sampler", ["entropy", "relations"], limit=4, replicates=5, gallery=2)
    assert capsys.readouterr().out == ""
    run = hs.run(small_model, "sampler", ["entropy", "relations"], limit=4, replicates=5, gallery=2, profile=True)
    printed = capsys.readouterr().out
    for section in (
        "loading",
        "reading",
        "encoding",
        "the model's pass",
        "measure entropy",
        "measure relations",
        "bootstrap",
        "gallery",
        "total",
    ):
        assert section in printed
    assert run["entropy"].table["value"] == plain["entropy"].table["value"]
