"""Union measures per step (DESIGN.md section 2, "Per step"), worked by hand. Times are us, figures ns."""

from __future__ import annotations

import numpy as np

from rankscope.analyses.step_overlap import StepOverlap, measure_steps
from rankscope.correlate.steps import find_steps, steps_of
from support.reading import events_of
from support.trace_text import Row, cpu_op, gloo, kernel, launch, memcpy, nccl, step

TWO_STEPS = [step(1, 0, 100), step(2, 100, 100)]


def measured(*events: Row, unsteady: frozenset[int] = frozenset()) -> list[StepOverlap]:
    device = events_of(events)
    spans = find_steps(device.table)
    owners = {
        key: steps_of(device, spans, getattr(device, key)) for key in ("compute", "communication", "memory")
    }
    return measure_steps(device, spans, owners, unsteady)


def figures(result: StepOverlap) -> dict[str, int]:
    """compute, communication, overlap, exposed communication, memory, exposed memory in us."""
    measures = result.measures
    return {
        "compute": measures.compute_ns // 1000,
        "communication": measures.communication_ns // 1000,
        "overlap": measures.overlap_ns // 1000,
        "exposed": measures.exposed_communication_ns // 1000,
        "memory": measures.memory_ns // 1000,
        "exposed_memory": measures.exposed_memory_ns // 1000,
    }


def test_no_steps() -> None:
    assert measured(kernel("a", 0, 10), nccl(5, 10)) == []


def test_steps_without_device_events_are_rows_all_the_same() -> None:
    """Nothing ran: zeros, and a ratio that is undefined."""
    rows = measured(*TWO_STEPS, launch(1, 5), kernel("a", 10, 5, correlation=1))
    assert [row.step for row in rows] == [1, 2]
    assert set(figures(rows[1]).values()) == {0}
    assert rows[1].measures.overlap_ratio is None
    assert rows[1].runs_past_end_ns == 0


def test_a_step_has_what_it_launched_hidden_by_any_compute() -> None:
    """Step 1 launches a [50,150), x [120,220) and the copy m [225,245); step 2 launches b [160,200), y [210,260).
    a kernel [10,50) comes from before the recording.

    Step 1: x has 100, beside a in [120,150) and beside b, of the next step, in [160,200): 70. m runs beside y.
    It ends at 245, 145 after the step. Step 2: y has 50 beside nothing; ends at 260, 60 after.
    """
    rows = measured(
        *TWO_STEPS,
        launch(1, 10), launch(2, 20), launch(3, 30), launch(4, 110), launch(5, 120),
        kernel("before", 10, 40, stream=8),
        kernel("a", 50, 100, correlation=1),
        nccl(120, 100, correlation=2),
        memcpy(225, 20, correlation=3),
        kernel("b", 160, 40, correlation=4),
        nccl(210, 50, stream=21, correlation=5),
    )  # fmt: skip
    assert [row.step for row in rows] == [1, 2, None]
    assert figures(rows[0]) == {
        "compute": 100, "communication": 100, "overlap": 70, "exposed": 30, "memory": 20, "exposed_memory": 0,
    }  # fmt: skip
    assert figures(rows[1]) == {
        "compute": 40, "communication": 50, "overlap": 0, "exposed": 50, "memory": 0, "exposed_memory": 0,
    }  # fmt: skip
    assert figures(rows[2])["compute"] == 40
    assert [row.measures.overlap_ratio for row in rows] == [0.7, 0.0, None]
    assert [row.host_duration_ns for row in rows] == [100_000, 100_000, None]
    assert [row.runs_past_end_ns for row in rows] == [145_000, 60_000, None]


def test_a_step_has_no_window_and_no_idle_time() -> None:
    """Its work overlaps that of its neighbours."""
    rows = measured(*TWO_STEPS, kernel("a", 10, 5))
    assert {row.measures.window_ns for row in rows} == {row.measures.idle_ns for row in rows} == {None}


def test_memory_of_a_step_is_hidden_by_communication_of_another() -> None:
    """The copy [110,150) of step 1 runs beside communication [130,140) of step 2: 30 of 40 beside nothing."""
    rows = measured(
        *TWO_STEPS,
        launch(1, 10),
        launch(2, 110),
        memcpy(110, 40, correlation=1),
        nccl(130, 10, correlation=2),
    )
    assert figures(rows[0])["exposed_memory"] == 30


def test_no_row_outside_steps_where_nothing_ran_outside() -> None:
    rows = measured(*TWO_STEPS, launch(1, 10), kernel("a", 10, 5, correlation=1))
    assert [row.step for row in rows] == [1, 2]


def test_graph_replays_without_launch_rows_are_outside() -> None:
    rows = measured(*TWO_STEPS, kernel("a", 20, 5, correlation=77), nccl(30, 10, correlation=77))
    assert figures(rows[2])["communication"] == 10
    assert not rows[2].steady


def test_unsteady_steps_are_marked() -> None:
    rows = measured(*TWO_STEPS, kernel("a", 20, 5), unsteady=frozenset({1}))
    assert [(row.step, row.steady) for row in rows] == [(1, False), (2, True), (None, False)]


def test_a_step_that_ends_before_its_last_kernel_begins() -> None:
    rows = measured(step(1, 0, 10), launch(1, 9), kernel("a", 500, 5, correlation=1))
    assert rows[0].runs_past_end_ns == 495_000  # 505 - 10


def test_on_the_cpu_by_the_time_of_the_rows_themselves() -> None:
    """Step 1: operator [10,60), gloo [40,120) hidden in [40,60) and, by step 2's operator [110,150), in [110,120)."""
    rows = measured(
        *TWO_STEPS,
        cpu_op("a", 10, 50),
        gloo("all_reduce", 40, 80),
        cpu_op("b", 110, 40),
        gloo("all_reduce", 190, 30),
    )
    assert figures(rows[0]) == {
        "compute": 50, "communication": 80, "overlap": 30, "exposed": 50, "memory": 0, "exposed_memory": 0,
    }  # fmt: skip
    assert rows[0].measures.overlap_ratio == 30 / 80
    assert rows[1].runs_past_end_ns == 20_000
    assert len(rows) == 2


def test_every_event_is_owned_once() -> None:
    events = events_of(
        [
            *TWO_STEPS,
            launch(1, 10),
            launch(2, 150),
            kernel("a", 0, 1),
            kernel("b", 20, 5, correlation=1),
            nccl(400, 9, correlation=2),
        ]
    )
    spans = find_steps(events.table)
    owned = np.concatenate([steps_of(events, spans, rows) for rows in (events.compute, events.communication)])
    assert sorted(owned.tolist()) == [-1, 1, 2]
