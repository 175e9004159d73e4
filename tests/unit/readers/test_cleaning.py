"""What only the whole table shows: doubled events, kernels that run over later ones, durations that cannot be."""

from __future__ import annotations

import pytest

from rankscope.model.categories import Category, EventClass
from support.reading import kinds_of, read_text
from support.trace_text import Row, cpu_op, kernel, memcpy, nccl, trace_text


def spans_of(*events: Row) -> list[tuple[str, int, int]]:
    table = read_text(trace_text(events)).table
    rows = (table.device >= 0).nonzero()[0]
    return [(table.names[table.name[i]], int(table.start_ns[i]), int(table.end_ns[i])) for i in rows]


def problems_of(*events: Row) -> list[str]:
    return kinds_of(read_text(trace_text(events)).problems)


def test_empty_table() -> None:
    assert spans_of() == []
    assert problems_of() == []


def test_a_device_event_that_appears_twice_counts_once() -> None:
    """Same stream, start, duration, name and correlation; anywhere in the file."""
    once, other = kernel("a", 1, 5, correlation=3), kernel("b", 2, 2, stream=8)
    file = read_text(trace_text([once, other, once, once]))
    assert (file.table.event_class == EventClass.COMPUTE).sum() == 2
    (problem,) = file.problems
    assert problem.kind == "duplicate-event"
    assert problem.message.startswith("2 device event(s)")


@pytest.mark.parametrize(
    "other",
    [
        kernel("a", 1, 5, correlation=4),
        kernel("a", 1, 5, correlation=3, stream=8),
        kernel("a", 1, 5, correlation=3, device=1),
        kernel("b", 1, 5, correlation=3),
        kernel("a", 6, 5, correlation=3),
        nccl(1, 5, correlation=3),
    ],
)
def test_what_differs_anywhere_is_no_double(other: Row) -> None:
    assert "duplicate-event" not in problems_of(kernel("a", 1, 5, correlation=3), other)
    assert len(spans_of(kernel("a", 1, 5, correlation=3), other)) == 2


def test_host_rows_that_appear_twice_stay() -> None:
    assert problems_of(cpu_op("aten::mm", 1, 5), cpu_op("aten::mm", 1, 5)) == []


def test_a_kernel_over_the_whole_next_one_is_cut_back() -> None:
    """A stream runs one kernel after another: 10 us that both begin before and end after [3, 4) are no duration."""
    events = [kernel("long", 0, 10), kernel("next", 3, 1), kernel("far", 20, 1)]
    assert spans_of(*events) == [("long", 0, 3_000), ("next", 3_000, 4_000), ("far", 20_000, 21_000)]
    file = read_text(trace_text(events))
    (problem,) = file.problems
    assert problem.kind == "overrun"
    assert "'long'" in problem.message
    assert "device 0 stream 7" in problem.message
    assert "by 7.00 us" in problem.message


def test_streams_are_looked_at_apart() -> None:
    """Between the long kernel and the one that it overruns lies one of another stream, which ends before it."""
    events = [kernel("long", 0, 10), kernel("aside", 1, 1, stream=8), kernel("next", 3, 1)]
    assert spans_of(*events) == [("long", 0, 3_000), ("aside", 1_000, 2_000), ("next", 3_000, 4_000)]


@pytest.mark.parametrize(
    "next_",
    [
        kernel("next", 3, 1, stream=8),  # another stream
        kernel("next", 3, 1, device=1),  # another device
        kernel("next", 3, 20),  # programmatic dependent launch: neighbours may overlap
        kernel("next", 3, 7),  # ends together
        kernel("next", 3, 0),  # no time of its own
    ],
)
def test_what_may_overlap_is_left_alone(next_: Row) -> None:
    assert ("long", 0, 10_000) in spans_of(kernel("long", 0, 10), next_)
    assert problems_of(kernel("long", 0, 10), next_) == []


def test_negative_durations_are_left_out_and_said() -> None:
    """Still running when recording stopped (the profiler writes -start or so)."""
    file = read_text(trace_text([kernel("a", 1, 5), kernel("b", 2, -1), kernel("c", 3, -5_000_000)]))
    assert file.table.names == ("a",)
    (problem,) = file.problems
    assert problem.kind == "negative-duration"
    assert problem.message.startswith("2 event(s)")
    assert "'b'" in problem.message


def test_zero_durations_are_kept() -> None:
    assert spans_of(kernel("a", 1, 0), memcpy(2, 0)) == [
        ("a", 1_000, 1_000),
        ("Memcpy DtoD (Device -> Device)", 2_000, 2_000),
    ]
    assert problems_of(kernel("a", 1, 0), memcpy(2, 0)) == []


def test_rows_are_sorted_by_start_and_equal_starts_keep_their_order() -> None:
    table = read_text(
        trace_text([cpu_op("c", 9, 1), cpu_op("a", 1, 1), cpu_op("b", 1, 2), cpu_op("d", 9, 2)])
    ).table
    assert [table.names[i] for i in table.name] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("cat", "category"),
    [
        ("kernel", Category.KERNEL),
        ("Kernel", Category.KERNEL),
        ("KERNEL", Category.KERNEL),
        ("Memcpy", Category.MEMCPY),
        ("gpu_memset", Category.MEMSET),
        ("Operator", Category.CPU_OP),
        ("Runtime", Category.RUNTIME),
        ("cuda_driver", Category.RUNTIME),
        ("gpu_user_annotation", Category.GPU_ANNOTATION),
        ("cuda_sync", Category.SYNC),
        ("something new", Category.OTHER),
    ],
)
def test_category_by_its_text_in_any_case(cat: str, category: Category) -> None:
    table = read_text(trace_text([{**kernel("k", 1, 1), "cat": cat}])).table
    assert table.category.tolist() == [category]


@pytest.mark.parametrize("cat", ["python_function", "Trace"])
def test_rows_that_nothing_needs_are_not_kept(cat: str) -> None:
    file = read_text(trace_text([{**kernel("k", 1, 1), "cat": cat}]))
    assert len(file.table) == 0
    assert file.events == 1


def test_the_copy_of_an_annotation_on_the_gpu_makes_no_device() -> None:
    table = read_text(trace_text([{**kernel("mark", 1, 9, device=1), "cat": "gpu_user_annotation"}])).table
    assert table.gpu_devices() == ()
    assert table.event_class.tolist() == [EventClass.ANNOTATION]
