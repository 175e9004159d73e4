"""Wall times of steps, worked by hand."""

from __future__ import annotations

from rankscope.collector.schedule import Window
from rankscope.collector.step_times import describe_steps
from rankscope.model.manifest import ClockSample, StepTime

WINDOW = Window(index=0, first=1, active_from=2, end=4)
CLOCK = ClockSample(unix_ns=1_000_000, monotonic_ns=500)


def test_no_finished_step_has_no_time() -> None:
    assert describe_steps([400], 0, WINDOW, CLOCK) == []


def test_a_step_lasts_until_the_next_begins() -> None:
    assert describe_steps([100, 130, 200], 2, WINDOW, CLOCK) == [
        StepTime(step=0, started_unix_ns=999_600, duration_ns=30, recorded=False),
        StepTime(step=1, started_unix_ns=999_630, duration_ns=70, recorded=False),
    ]


def test_steps_of_the_window_are_marked() -> None:
    steps = describe_steps([0, 10, 20, 30, 40], 5, WINDOW, CLOCK)
    assert [(step.step, step.recorded) for step in steps] == [(1, False), (2, True), (3, True), (4, False)]
