"""Device rows joined with their launches, and rows with what holds them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.correlate.launches import NO_ROW, ROW_BITS, find_enclosing, find_launches
from rankscope.model import parts
from rankscope.model.categories import Category
from rankscope.model.table import TraceTable, empty_table
from rankscope.readers.byte_stream import DEFAULT_MAX_UNPACKED_BYTES
from support.reading import table_of
from support.trace_text import Row, annotation, cpu_op, kernel, launch

NO_ROWS = np.empty(0, np.int64)


def launch_starts(*events: Row) -> list[int | None]:
    """For each kernel, in order of start, when its launch starts, in us."""
    table = table_of(events)
    found = find_launches(table, table.rows_of_category(Category.KERNEL))
    return [None if row == NO_ROW else int(table.start_ns[row]) // 1000 for row in found]


def holders_of(table: TraceTable, name: str, holders: set[str]) -> list[str | None]:
    """For each row of that name the name of its holder."""
    found = find_enclosing(table, table.rows_named(frozenset(holders)), table.rows_named(frozenset({name})))
    return [None if row == NO_ROW else table.names[table.name[row]] for row in found]


def test_rows_and_launches_of_the_largest_file_fit_into_one_number() -> None:
    """The shortest event that is kept makes a row, and the shortest that is launched a number of its own."""
    row, launched = b'{"ph":"X","ts":1},', b'{"ph":"X","ts":1,"cat":"kernel","args":{"correlation":1}},'
    assert DEFAULT_MAX_UNPACKED_BYTES // len(row) < 1 << ROW_BITS
    assert DEFAULT_MAX_UNPACKED_BYTES // len(launched) < 1 << (63 - ROW_BITS)


def test_nothing() -> None:
    table = empty_table()
    assert find_launches(table, NO_ROWS).tolist() == []
    assert find_enclosing(table, NO_ROWS, NO_ROWS).tolist() == []


def test_a_kernel_finds_its_launch_by_correlation() -> None:
    events = [
        launch(1, 10),
        launch(2, 20),
        kernel("b", 40, 1, correlation=2),
        kernel("a", 30, 1, correlation=1),
    ]
    assert launch_starts(*events) == [10, 20]


def test_without_a_launch_row_there_is_none() -> None:
    """Launched before recording began, without a correlation, or with correlation 0, which joins nothing."""
    events = [
        launch(1, 10),
        launch(0, 11),
        *(kernel("k", 30 + c, 1, correlation=c) for c in (0, 7)),
        kernel("k", 50, 1),
    ]
    assert launch_starts(*events) == [None, None, None]


def test_a_launch_that_was_not_recorded_is_not_another_one() -> None:
    """Ids 3, 5 and 9 are absent, before, between and behind those that are there."""
    events = [launch(4, 10), launch(7, 11), *(kernel("k", 30 + c, 1, correlation=c) for c in (3, 4, 5, 7, 9))]
    assert launch_starts(*events) == [None, 10, None, 11, None]


def test_all_kernels_of_a_graph_replay_share_its_launch() -> None:
    events = [
        launch(5, 10, name="cudaGraphLaunch"),
        *(kernel("k", t, 1, correlation=5) for t in (20, 30, 40)),
    ]
    assert launch_starts(*events) == [10, 10, 10]


def test_of_several_launches_with_one_id_the_last_before_the_kernel_counts() -> None:
    """Merged traces hold an id once per process."""
    events = [
        launch(3, 10),
        launch(3, 50),
        launch(3, 90),
        *(kernel("k", t, 1, correlation=3) for t in (5, 50, 70, 99)),
    ]
    assert launch_starts(*events) == [10, 50, 50, 90]


def test_other_runtime_rows_are_no_launch_of_another_id() -> None:
    events = [launch(1, 10, name="cudaStreamSynchronize"), kernel("k", 30, 1, correlation=2)]
    assert launch_starts(*events) == [None]


times_and_ids = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=12, unique=True)


@settings(max_examples=200, deadline=None, database=None)
@given(times_and_ids, times_and_ids)
def test_launches_are_those_that_a_look_at_every_pair_finds(
    launches: list[tuple[int, int]], kernels: list[tuple[int, int]]
) -> None:
    """In parts of three rows: of the launches with the id the last that starts by then, else the first."""
    launches, kernels = sorted(launches), sorted(kernels)
    events = [launch(id_, t, name="other" if id_ == 4 else "cudaLaunchKernel") for t, id_ in launches]
    with patch.object(parts, "_PART_ROWS", 3):
        found = launch_starts(*events, *(kernel("k", t, 1, correlation=id_) for t, id_ in kernels))
    for (t, id_), start in zip(kernels, found, strict=True):
        starts = [other for other, other_id in launches if other_id == id_ > 0]
        assert start == max((other for other in starts if other <= t), default=min(starts, default=None))


def test_the_innermost_holder_on_the_same_thread() -> None:
    table = table_of(
        [
            annotation("outer", 0, 100),
            annotation("inner", 10, 20),
            annotation("elsewhere", 10, 20, thread=9),
            cpu_op("row", 15, 1),
            cpu_op("row", 50, 1),
            cpu_op("row", 200, 1),
            cpu_op("row", 15, 1, thread=8),
        ]
    )
    assert holders_of(table, "row", {"outer", "inner", "elsewhere"}) == ["inner", None, "outer", None]


def test_of_two_that_start_together_the_shorter_is_inside() -> None:
    for events in (
        [annotation("inner", 0, 10), annotation("outer", 0, 100)],
        [annotation("outer", 0, 100), annotation("inner", 0, 10)],
    ):
        table = table_of([*events, cpu_op("row", 5, 1), cpu_op("row", 50, 1)])
        assert holders_of(table, "row", {"outer", "inner"}) == ["inner", "outer"]


def test_a_holder_with_many_closed_ones_before_the_row() -> None:
    """Twenty short ones end before the row begins; the one that holds it began before all of them."""
    short = [annotation("short", 10 + 2 * i, 1) for i in range(20)]
    table = table_of([annotation("outer", 0, 1000), *short, cpu_op("row", 900, 1)])
    assert holders_of(table, "row", {"outer", "short"}) == ["outer"]


def test_crossing_holders() -> None:
    """[0, 60) and [40, 100): at 50 the later one, at 80 the one that is left; touching [100, 110) takes 100."""
    table = table_of(
        [annotation("a", 0, 60), annotation("b", 40, 60), annotation("c", 100, 10)]
        + [cpu_op("row", t, 1) for t in (20, 50, 80, 100)]
    )
    assert holders_of(table, "row", {"a", "b", "c"}) == ["a", "b", "b", "c"]


def test_rows_without_a_host_row_find_nothing() -> None:
    table = table_of([annotation("a", 0, 60)])
    assert find_enclosing(table, np.array([0]), np.array([NO_ROW, 0])).tolist() == [NO_ROW, 0]


spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 2)), max_size=9)


@settings(max_examples=120, deadline=None, database=None)
@given(spans, st.lists(st.tuples(st.integers(0, 24), st.integers(1, 2)), max_size=5))
def test_enclosing_is_what_a_look_at_every_pair_finds(
    holders: list[tuple[int, int, int]], rows: list[tuple[int, int]]
) -> None:
    table = table_of(
        [annotation("h", start, length, thread=thread) for start, length, thread in holders]
        + [cpu_op("row", start, 1, thread=thread) for start, thread in rows]
    )
    holder_rows, wanted_rows = (table.rows_named(frozenset({name})) for name in ("h", "row"))
    found = find_enclosing(table, holder_rows, wanted_rows)
    for row, holder in zip(wanted_rows, found, strict=True):
        containing = [
            (-int(table.start_ns[h]), int(table.end_ns[h]))
            for h in holder_rows
            if table.lane[h] == table.lane[row]
            and table.start_ns[h] <= table.start_ns[row] <= table.end_ns[h]
        ]
        if not containing:
            assert holder == NO_ROW
        else:
            assert (-int(table.start_ns[holder]), int(table.end_ns[holder])) == min(containing)
