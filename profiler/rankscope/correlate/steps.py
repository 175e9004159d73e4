"""Steps: where `ProfilerStep#N` puts them, which event belongs to which, and which steps are steady."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.device_events import NO_TIME, DeviceEvents
from rankscope.model.categories import Category
from rankscope.model.intervals import Int64
from rankscope.model.table import TraceTable

OUTSIDE_STEPS = -1
"""Step number of events that were launched outside every step."""

_STEP_NAME = re.compile(r"ProfilerStep#(\d{1,18})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpans:
    """The steps of one window on the host, in time order.

    Attributes:
        numbers: int64[s], step numbers.
        starts, ends: int64[s], nanoseconds.
    """

    numbers: Int64
    starts: Int64
    ends: Int64

    def __len__(self) -> int:
        return len(self.numbers)

    def step_at(self, times: Int64) -> Int64:
        """Step number at each time, int64[k]; OUTSIDE_STEPS where there is none."""
        if len(self) == 0:
            return np.full(len(times), OUTSIDE_STEPS, np.int64)
        index = np.searchsorted(self.starts, times, side="right") - 1
        inside = (index >= 0) & (times < self.ends[np.maximum(index, 0)]) & (times != NO_TIME)
        steps: Int64 = np.where(inside, self.numbers[np.maximum(index, 0)], OUTSIDE_STEPS)
        return steps


def find_steps(table: TraceTable) -> StepSpans:
    """Steps of one window, from its `ProfilerStep#N` annotations on the host.

    A step that is annotated twice (several threads) spans both.
    """
    number_of_name = {
        i: int(m.group(1)) for i, name in enumerate(table.names) if (m := _STEP_NAME.match(name))
    }
    spans: dict[int, tuple[int, int]] = {}
    if number_of_name:
        is_step = [i in number_of_name for i in range(len(table.names))]
        for row in table.rows_of_category(Category.USER_ANNOTATION, is_step):
            number = number_of_name[int(table.name[row])]
            start = int(table.start_ns[row])
            end = start + int(table.duration_ns[row])
            known = spans.get(number, (start, end))
            spans[number] = (min(start, known[0]), max(end, known[1]))
    ordered = sorted(spans.items(), key=lambda item: item[1])
    return StepSpans(
        numbers=np.array([number for number, _ in ordered], np.int64),
        starts=np.array([start for _, (start, _) in ordered], np.int64),
        ends=np.array([end for _, (_, end) in ordered], np.int64),
    )


def steps_of(events: DeviceEvents, spans: StepSpans, rows: Int64) -> Int64:
    """Step in which each device row was launched, int64[k]; OUTSIDE_STEPS without a launch in a step."""
    return spans.step_at(events.host_times(rows))
