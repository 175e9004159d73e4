"""What counts as time on a device: GPU rows by class, or host operators where there is no device."""

from __future__ import annotations

from itertools import permutations

import pytest

from rankscope.correlate.device_events import NO_TIME, DeviceEvents, device_events
from rankscope.model.categories import BLOCKING_HOST_OPS
from rankscope.model.run import Run
from support.reading import events_of, run_of
from support.trace_text import (
    BACKWARD_THREAD,
    Row,
    annotation,
    cpu_op,
    gloo,
    kernel,
    launch,
    memcpy,
    memset,
    nccl,
    row,
)


def names(events: DeviceEvents, kind: str) -> list[str]:
    return [events.table.names[events.table.name[i]] for i in getattr(events, kind)]


def compute_on_cpu(*rows: Row) -> list[str]:
    return names(events_of(rows), "compute")


def test_empty_run() -> None:
    assert device_events(Run(name="r", source="r", windows=())) == ()
    assert device_events(run_of({0: []})) == ()


def test_rows_of_a_gpu_by_class() -> None:
    """Annotations, their copies on the GPU, synchronisation and host rows are never device time."""
    events = events_of(
        [
            kernel("gemm", 0, 5),
            nccl(1, 5, name="ncclDevKernel_AllReduce"),
            memcpy(2, 5),
            memset(3, 5),
            kernel("__amd_rocclr_copyBuffer", 4, 5),
            cpu_op("aten::mm", 0, 5),
            annotation("nccl:all_reduce", 0, 5),
            {**kernel("nccl:all_reduce", 0, 50), "cat": "gpu_user_annotation"},
            {**kernel("Stream Wait Event", 0, 50), "cat": "cuda_sync"},
            launch(1, 0),
        ]
    )
    assert events.device == 0
    assert names(events, "compute") == ["gemm"]
    assert names(events, "communication") == ["ncclDevKernel_AllReduce"]
    assert len(events.memory) == 3


def test_each_device_of_each_rank_on_its_own() -> None:
    run = run_of({1: [kernel("c", 0, 1)], 0: [kernel("b", 0, 1, device=3), kernel("a", 5, 1, device=1)]})
    found = device_events(run)
    assert [(e.window.rank, e.device, names(e, "compute")) for e in found] == [
        (0, 1, ["a"]),
        (0, 3, ["b"]),
        (1, 0, ["c"]),
    ]


def test_where_one_rank_has_a_gpu_host_operators_of_others_are_no_compute() -> None:
    run = run_of({0: [kernel("a", 0, 1)], 1: [cpu_op("aten::mm", 0, 5), gloo("all_reduce", 0, 5)]})
    assert [e.window.rank for e in device_events(run)] == [0]


def test_on_the_cpu_outermost_operators_compute_and_gloo_communicates() -> None:
    events = events_of(
        [
            cpu_op("aten::linear", 0, 100),
            cpu_op("aten::addmm", 10, 50),
            cpu_op("aten::relu", 100, 10),
            cpu_op("MulBackward0", 20, 30, thread=BACKWARD_THREAD),
            gloo("all_reduce", 30, 40),
            annotation("mine", 0, 500),
        ]
    )
    assert events.device == "cpu"
    assert names(events, "compute") == ["aten::linear", "MulBackward0", "aten::relu"]
    assert names(events, "communication") == ["gloo:all_reduce"]
    assert len(events.memory) == 0


def test_operators_that_touch_are_both_outermost() -> None:
    assert compute_on_cpu(cpu_op("a", 0, 10), cpu_op("b", 10, 10)) == ["a", "b"]


def test_of_operators_that_start_together_the_longer_is_outermost() -> None:
    assert compute_on_cpu(cpu_op("inner", 0, 5), cpu_op("outer", 0, 10), cpu_op("next", 7, 2)) == ["outer"]


def test_an_operator_that_crosses_the_end_of_another_does_not_lie_in_it() -> None:
    assert compute_on_cpu(cpu_op("a", 0, 10), cpu_op("b", 5, 10), cpu_op("c", 6, 9)) == ["a", "b"]


@pytest.mark.parametrize("name", sorted(BLOCKING_HOST_OPS))
def test_an_operator_that_waits_for_a_peer_is_no_compute(name: str) -> None:
    rows = [cpu_op(name, 0, 100), cpu_op("aten::empty", 10, 5), cpu_op("aten::mm", 200, 5)]
    assert compute_on_cpu(*rows) == ["aten::mm"]


def test_asynchronous_operators_of_c10d_are_compute() -> None:
    """They only hand the work to a thread of gloo."""
    assert compute_on_cpu(cpu_op("c10d::allreduce_", 0, 5)) == ["c10d::allreduce_"]


def test_rows_come_in_order_of_start() -> None:
    events = events_of(
        [cpu_op("late", 90, 5, thread=1), cpu_op("early", 0, 5, thread=2), cpu_op("mid", 50, 5, thread=1)]
    )
    assert names(events, "compute") == ["early", "mid", "late"]


def test_communications_that_start_together_come_by_length_then_by_launch_wherever_they_stand() -> None:
    """By start 4 < 10; of those at 10 by length 3 < 5; of those of 5 by correlation 2 < 7."""
    rows = [
        nccl(10, 5, stream=1, correlation=7),
        nccl(10, 5, stream=2, correlation=2),
        nccl(10, 3, stream=3, correlation=9),
        nccl(4, 20, stream=4, correlation=8),
    ]
    for order in permutations(rows):
        events = events_of(order)
        assert events.table.correlation[events.communication].tolist() == [8, 9, 2, 7]


def test_when_the_host_issued_a_row() -> None:
    events = events_of([launch(1, 3), kernel("a", 10, 5, correlation=1), kernel("b", 20, 5)])
    assert events.host_times(events.compute).tolist() == [3_000, NO_TIME]
    on_cpu = events_of([cpu_op("a", 10, 5)])
    assert on_cpu.host_times(on_cpu.compute).tolist() == [10_000]


def test_rows_of_unknown_categories_are_nothing() -> None:
    assert (
        device_events(run_of({0: [row("new_thing", "gemm", 0, 5, pid=0, tid=7, args={"device": 0})]})) == ()
    )
