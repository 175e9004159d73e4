from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rankscope.model.report import Measures
from rankscope.renderers.palette import ANNOTATION, PARTS, WAITING, split_window

times = st.integers(min_value=0, max_value=1 << 60)


@given(times, times, times, times, times)
def test_the_parts_add_up_to_the_window(
    alone: int, hidden: int, exposed: int, memory: int, idle: int
) -> None:
    measures = Measures(
        window_ns=alone + hidden + exposed + memory + idle,
        compute_ns=alone + hidden,
        communication_ns=hidden + exposed,
        overlap_ns=hidden,
        exposed_communication_ns=exposed,
        memory_ns=memory,
        exposed_memory_ns=memory,
        idle_ns=idle,
    )
    parts = split_window(measures)
    assert [part for part, _ in parts] == list(PARTS)
    assert [ns for _, ns in parts] == [alone, hidden, exposed, memory, idle]


def test_an_unknown_idle_time_takes_no_room() -> None:
    assert [ns for _, ns in split_window(Measures(compute_ns=3))] == [3, 0, 0, 0, 0]


def test_parts_can_be_told_apart_without_color() -> None:
    assert len({part.block for part in PARTS}) == len(PARTS)
    assert len({part.slug for part in (*PARTS, ANNOTATION, WAITING)}) == len(PARTS) + 2


def test_parts_can_be_told_apart_in_grey() -> None:
    """Neighbours in a bar differ in relative luminance (WCAG) by at least a factor of 1.25, light or dark."""
    for colors in ([part.light for part in PARTS], [part.dark for part in PARTS]):
        grey = [read_luminance(color) + 0.05 for color in colors]
        for one, other in itertools.pairwise(grey):
            assert max(one, other) / min(one, other) > 1.25


def read_luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
