"""Steps: where they are, and which step owns what runs on the device."""

from __future__ import annotations

import numpy as np
import pytest

from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.steps import OUTSIDE_STEPS, find_steps, steps_of
from rankscope.model.table import empty_table
from support.reading import events_of, table_of
from support.trace_text import Row, annotation, cpu_op, kernel, launch, step


def owners(*events: Row) -> list[int]:
    """Step of each compute row, in order of start."""
    device = events_of(events)
    steps: list[int] = steps_of(device, find_steps(device.table), device.compute).tolist()
    return steps


def test_no_steps() -> None:
    spans = find_steps(empty_table())
    assert len(spans) == 0
    assert spans.step_at(np.array([5, NO_TIME])).tolist() == [OUTSIDE_STEPS, OUTSIDE_STEPS]


def test_steps_in_order_of_time() -> None:
    spans = find_steps(table_of([step(8, 200, 50), step(7, 100, 60), annotation("train", 0, 500)]))
    assert spans.numbers.tolist() == [7, 8]
    assert spans.starts.tolist() == [100_000, 200_000]
    assert spans.ends.tolist() == [160_000, 250_000]


def test_a_step_holds_its_start_and_not_its_end() -> None:
    spans = find_steps(table_of([step(1, 10, 10), step(2, 20, 10)]))
    times = np.array([9_999, 10_000, 19_999, 20_000, 29_999, 30_000, NO_TIME])
    assert spans.step_at(times).tolist() == [-1, 1, 1, 2, 2, -1, -1]


def test_the_gap_between_steps_belongs_to_none() -> None:
    spans = find_steps(table_of([step(1, 10, 10), step(2, 50, 10)]))
    assert spans.step_at(np.array([30_000])).tolist() == [OUTSIDE_STEPS]


def test_a_step_marked_by_two_threads_spans_both() -> None:
    spans = find_steps(table_of([step(1, 10, 10), annotation("ProfilerStep#1", 12, 20, thread=9)]))
    assert (spans.numbers.tolist(), spans.starts.tolist(), spans.ends.tolist()) == ([1], [10_000], [32_000])


@pytest.mark.parametrize(
    "name", ["ProfilerStep#", "ProfilerStep#x", "xProfilerStep#1", "ProfilerStep#1 ", "ProfilerStep"]
)
def test_names_that_mark_no_step(name: str) -> None:
    assert len(find_steps(table_of([annotation(name, 0, 10)]))) == 0


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 25, "9" * 5000])
def test_a_number_beyond_64_bits_marks_no_step(digits: str) -> None:
    assert len(find_steps(table_of([annotation(f"ProfilerStep#{digits}", 0, 10), step(3, 20, 5)]))) == 1


def test_copies_on_the_gpu_and_operators_mark_no_step() -> None:
    copy = {**kernel("ProfilerStep#1", 0, 10), "cat": "gpu_user_annotation"}
    assert len(find_steps(table_of([copy, cpu_op("ProfilerStep#2", 0, 10)]))) == 0


def test_an_event_belongs_to_the_step_that_launched_it() -> None:
    """The second kernel is launched in step 1 and runs in step 2, the third is launched and runs in step 2."""
    assert owners(
        step(1, 0, 100),
        step(2, 100, 100),
        launch(1, 10),
        launch(2, 90),
        launch(3, 110),
        kernel("a", 50, 20, correlation=1),
        kernel("b", 130, 20, correlation=2),
        kernel("c", 150, 20, correlation=3),
    ) == [1, 1, 2]


def test_what_the_last_step_launched_is_its_own_however_late_it_runs() -> None:
    assert owners(step(1, 0, 100), launch(1, 99), kernel("a", 5_000, 20, correlation=1)) == [1]


def test_a_kernel_that_leaks_in_from_before_belongs_to_no_step() -> None:
    """Launched in the warm-up, so no launch row: it runs within step 1 and is none of its work."""
    assert owners(
        step(1, 0, 100),
        launch(2, 5),
        kernel("leak", 10, 5, correlation=1),
        kernel("own", 20, 5, correlation=2),
    ) == [
        OUTSIDE_STEPS,
        1,
    ]


def test_a_kernel_launched_between_steps_belongs_to_none() -> None:
    assert owners(step(1, 0, 10), step(2, 20, 10), launch(1, 15), kernel("a", 22, 5, correlation=1)) == [
        OUTSIDE_STEPS
    ]


def test_a_launch_on_another_thread_counts_by_its_time() -> None:
    """The backward runs on a thread of its own, where no step is marked."""
    assert owners(step(1, 0, 100), launch(1, 60, thread=9), kernel("a", 200, 5, correlation=1)) == [1]


def test_on_the_cpu_an_operator_belongs_to_the_step_in_which_it_starts() -> None:
    assert owners(
        step(1, 0, 10), step(2, 10, 10), cpu_op("a", 8, 5), cpu_op("b", 15, 20), cpu_op("c", 36, 1)
    ) == [1, 2, -1]
