"""Wall times of steps, from the moments at which they began."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rankscope.collector.schedule import Window
from rankscope.model.manifest import ClockSample, StepTime


def describe_steps(
    starts_ns: Sequence[int], running: int, window: Window, clock: ClockSample
) -> list[StepTime]:
    """The wall time of every finished step.

    Args:
        starts_ns: monotonic ns at which steps began, in order; the last one is that of the running step.
        running: number of the running step.
        window: the recorded steps.
        clock: both clocks at one moment near these steps.

    Returns:
        One entry per step before `running`, as far back as `starts_ns` reaches.

    >>> clock = ClockSample(unix_ns=1_000, monotonic_ns=100)
    >>> describe_steps([40, 90], 8, Window(index=0, first=6, active_from=7, end=9), clock)
    [StepTime(step=7, started_unix_ns=940, duration_ns=50, recorded=True)]
    """
    first = running - len(starts_ns) + 1
    return [
        StepTime(
            step=step,
            started_unix_ns=clock.unix_ns + start - clock.monotonic_ns,
            duration_ns=end - start,
            recorded=window.active_from <= step < window.end,
        )
        for step, (start, end) in enumerate(pairwise(starts_ns), start=first)
    ]
