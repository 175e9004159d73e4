"""Union measures per rank, device and window (DESIGN.md section 2), each worked by hand.

Times in the rows are us; figures are ns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankscope.analyses.overlap import (
    WindowOverlap,
    add_measures,
    measure_overlap,
    measure_sets,
    overlap_ratio,
)
from rankscope.correlate.device_events import DeviceEvents
from rankscope.model.intervals import EMPTY
from rankscope.model.report import Measures
from support.reading import events_of
from support.trace_text import Bare, Row, cpu_op, gloo, kernel, memcpy, memset, nccl

BASE_NS = 1_767_225_600_000_000_000
NONE = np.empty(0, np.int64)


def measured(*events: Row) -> WindowOverlap:
    return measure_overlap(events_of(events))


def in_us(measures: Measures) -> dict[str, float]:
    """Figures in us, without those that are zero or undefined."""
    figures = {key: getattr(measures, key) for key in Measures.__slots__}
    return {
        key.removesuffix("_ns"): value / 1000
        for key, value in figures.items()
        if value and key != "overlap_ratio"
    }


def empty_events() -> DeviceEvents:
    return replace(events_of([kernel("gemm", 0, 1)]), compute=NONE, communication=NONE, memory=NONE)


def test_no_events() -> None:
    overlap = measure_overlap(empty_events())
    assert overlap.measures == Measures(window_ns=0, idle_ns=0, overlap_ratio=None)
    assert (overlap.self_overlap_ns, overlap.started_ns) == (0, 0)
    assert (overlap.compute_kernels, overlap.communication_kernels, overlap.memory_operations) == (0, 0, 0)


def test_every_measure_at_once() -> None:
    """Compute [0,100) and [50,150): 150. Communication [100,300) and [250,350): 250, of which [100,150) = 50 lie
    beside compute and 200 do not; two run at once in [250,300) = 50. Memory [340,400) and [500,520): 80, of which
    [350,400) and [500,520) = 70 beside nothing. Window [0,520), nothing runs in [400,500) = 100:
    150 + 200 + 70 + 100 = 520.
    """
    overlap = measured(
        kernel("a", 0, 100),
        kernel("b", 50, 100, stream=8),
        nccl(100, 200),
        nccl(250, 100, stream=21),
        memcpy(340, 60),
        memset(500, 20),
    )
    assert in_us(overlap.measures) == {
        "window": 520,
        "compute": 150,
        "communication": 250,
        "overlap": 50,
        "exposed_communication": 200,
        "memory": 80,
        "exposed_memory": 70,
        "idle": 100,
    }
    assert overlap.measures.overlap_ratio == 0.2  # 50 / 250
    assert overlap.self_overlap_ns == 50_000
    assert (overlap.compute_kernels, overlap.communication_kernels, overlap.memory_operations) == (2, 2, 2)


@pytest.mark.parametrize(
    ("start", "hidden"),
    [
        (0, 100),  # with the compute
        (-50, 50),  # half before
        (100, 0),  # right behind: touching is no overlap
        (250, 50),  # until the second kernel's end
        (120, 20),
    ],
)
def test_overlap_of_100_us_with_compute_in_0_100_and_200_300(start: int, hidden: int) -> None:
    """At 120: [200,220) of the second kernel."""
    measures = measured(kernel("a", 0, 100), kernel("b", 200, 100), nccl(start, 100)).measures
    assert measures.overlap_ns == hidden * 1000
    assert measures.exposed_communication_ns == (100 - hidden) * 1000
    assert measures.overlap_ratio == hidden / 100


def test_a_collective_on_the_compute_stream_counts_by_its_name() -> None:
    """Since 2025 synchronous collectives run there: never by stream."""
    measures = measured(
        kernel("a", 0, 100, stream=7), nccl(100, 50, stream=7), kernel("b", 120, 10, stream=8)
    ).measures
    assert in_us(measures)["communication"] == 50
    assert in_us(measures)["overlap"] == 10


def test_copies_hide_nothing() -> None:
    """A copy beside communication is neither compute nor overlap."""
    measures = measured(kernel("a", 0, 10), nccl(20, 30), memcpy(20, 30)).measures
    assert in_us(measures) == {
        "window": 50, "compute": 10, "communication": 30, "exposed_communication": 30, "memory": 30, "idle": 10,
    }  # fmt: skip
    assert measures.overlap_ratio == 0.0


def test_without_communication_the_ratio_is_undefined() -> None:
    """None, never 0 or 100; the overlap time itself is a true 0."""
    measures = measured(kernel("a", 0, 10)).measures
    assert measures.overlap_ratio is None
    assert measures.overlap_ns == 0


def test_communication_that_took_no_time_has_no_ratio() -> None:
    assert measured(kernel("a", 0, 10), nccl(5, 0)).measures.overlap_ratio is None


def test_without_compute_all_communication_is_exposed() -> None:
    measures = measured(nccl(0, 10)).measures
    assert measures.exposed_communication_ns == 10_000
    assert measures.overlap_ratio == 0.0


def test_window_runs_from_the_first_start_to_the_last_end() -> None:
    """Of device events alone: host rows lie outside; the longest event need not be the last to start."""
    events = [kernel("a", 10, 100), kernel("b", 20, 5, stream=8), cpu_op("aten::mm", 0, 500)]
    overlap = measured(*events)
    assert overlap.measures.window_ns == 100_000
    assert overlap.started_ns == 10_000


def test_an_event_without_duration_may_begin_or_end_the_window() -> None:
    """It is one of the events: first start 0, last end 200; the rest is idle."""
    overlap = measured(memset(0, 0), kernel("a", 100, 50), nccl(200, 0))
    assert in_us(overlap.measures) == {"window": 200, "compute": 50, "idle": 150}
    assert overlap.started_ns == 0
    assert overlap.communication_kernels == 1


def test_nanoseconds_are_not_lost_at_absolute_times() -> None:
    """Compute [.130, 1.130), communication [1.000, 3.007) us after the base: 130 ns beside, 1877 not."""
    at = 1_767_225_600_000_000
    measures = measured(
        kernel("a", Bare(f"{at}.130"), Bare("1.000")), nccl(Bare(f"{at + 1}.000"), Bare("2.007"))
    ).measures
    assert (measures.compute_ns, measures.communication_ns) == (1_000, 2_007)
    assert (measures.overlap_ns, measures.exposed_communication_ns) == (130, 1_877)
    assert (measures.window_ns, measures.idle_ns) == (2_877, 0)


def test_on_the_cpu_gloo_runs_against_outermost_operators() -> None:
    """Operators [0,100) on one thread and [80,150) on another: 150. gloo [120,200): 30 beside, 50 not."""
    events = [
        cpu_op("aten::linear", 0, 100),
        cpu_op("aten::addmm", 10, 80),
        cpu_op("MulBackward0", 80, 70, thread=9),
        gloo("all_reduce", 120, 80),
    ]
    assert in_us(measured(*events).measures) == {
        "window": 200, "compute": 150, "communication": 80, "overlap": 30, "exposed_communication": 50,
    }  # fmt: skip


def test_two_gloo_threads_at_once() -> None:
    overlap = measured(gloo("all_reduce", 0, 60, thread=1), gloo("all_reduce", 40, 40, thread=2))
    assert overlap.measures.communication_ns == 80_000
    assert overlap.self_overlap_ns == 20_000


def test_sets_without_a_window_have_no_idle_time() -> None:
    measures = measure_sets(communication=EMPTY, compute=EMPTY, memory=EMPTY)
    assert (measures.window_ns, measures.idle_ns, measures.overlap_ratio) == (None, None, None)


def test_ratio() -> None:
    assert overlap_ratio(300, 400) == 0.75
    assert overlap_ratio(0, 400) == 0.0
    assert overlap_ratio(0, 0) is None


def test_measures_add_up_and_the_ratio_weighs_by_time() -> None:
    """100 of 400 and 90 of 100: 190 of 500 is 0.38; the mean of 0.25 and 0.9 would be wrong."""
    parts = [
        Measures(
            window_ns=600, communication_ns=400, overlap_ns=100, exposed_communication_ns=300, idle_ns=7
        ),
        Measures(window_ns=500, communication_ns=100, overlap_ns=90, exposed_communication_ns=10, idle_ns=5),
    ]
    total = add_measures(parts)
    assert (total.window_ns, total.idle_ns, total.overlap_ratio) == (1_100, 12, 0.38)
    assert total.exposed_communication_ns == 310


def test_a_window_that_is_undefined_in_one_part_is_undefined_in_the_sum() -> None:
    total = add_measures([Measures(window_ns=600, idle_ns=1), Measures(compute_ns=5)])
    assert (total.window_ns, total.idle_ns, total.compute_ns) == (None, None, 5)


def test_parts_without_communication_do_not_pull_the_ratio() -> None:
    parts = [Measures(), Measures(communication_ns=10, overlap_ns=5)]
    assert add_measures(parts).overlap_ratio == 0.5
    assert add_measures([Measures(), Measures()]).overlap_ratio is None
