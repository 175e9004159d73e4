"""Where the host really computes, and when it waits: leaf operators, long runtime rows, long pauses in operators."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.correlate.device_events import leaf_operators
from rankscope.correlate.host_path import host_waits
from rankscope.model import parts
from support.reading import events_of, table_of
from support.trace_text import BACKWARD_THREAD, Row, cpu_op, kernel, launch


def leaves_of(*events: Row) -> list[str]:
    table = table_of(events)
    return [table.names[table.name[row]] for row in leaf_operators(table)]


def waits_of(*events: Row) -> list[tuple[int, int]]:
    """Start and end of each wait in us, of a run with a kernel at 90 ms."""
    waits = host_waits(events_of([*events, kernel("k", 90_000, 1)]))
    return [(a // 1000, b // 1000) for a, b in zip(waits.starts.tolist(), waits.ends.tolist(), strict=True)]


def test_an_operator_that_holds_another_is_no_leaf() -> None:
    outer, inner, after = cpu_op("outer", 0, 10), cpu_op("inner", 2, 3), cpu_op("after", 10, 5)
    assert leaves_of(outer, inner, after) == ["inner", "after"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_those_that_start_together_the_shortest_is_the_leaf(order: tuple[int, ...]) -> None:
    events = [cpu_op("long", 5, 9), cpu_op("middle", 5, 6), cpu_op("short", 5, 2)]
    assert leaves_of(cpu_op("before", 0, 1), *(events[i] for i in order)) == ["before", "short"]


def test_operators_of_other_threads_are_not_inside() -> None:
    there = [cpu_op("a", 0, 10), cpu_op("c", 12, 1)]
    assert leaves_of(*there, cpu_op("b", 2, 3, thread=BACKWARD_THREAD)) == ["a", "b", "c"]
    assert leaves_of() == []


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 1)), max_size=12))
def test_leaves_are_what_each_thread_alone_shows(operators: list[tuple[int, int, int]]) -> None:
    """In parts of three rows: a row is one if the next does not start in it; of rows that start together the longest
    comes first.
    """
    rows = [(thread, start, -length) for start, length, thread in operators]
    rows.sort()
    pairs = zip(rows, [*rows[1:], None], strict=False)
    wanted = [
        (start, -minus)
        for (thread, start, minus), then in pairs
        if then is None or then[0] != thread or then[1] >= start - minus
    ]
    with patch.object(parts, "_PART_ROWS", 3):
        table = table_of([cpu_op("op", a, b, thread=1 + thread) for a, b, thread in operators])
        leaves = leaf_operators(table)
    found = zip(table.start_ns[leaves].tolist(), table.duration_ns[leaves].tolist(), strict=True)
    assert sorted((a // 1000, b // 1000) for a, b in found) == sorted(wanted)


def test_what_waits_are_made_of_is_looked_at_in_parts() -> None:
    """Calls at 0.5, 1, ... 9.5 ms of 10 us, in parts of three rows: no pause is long, and then one is."""
    calls = [launch(i, 500 * i, 10) for i in range(1, 20)]
    with patch.object(parts, "_PART_ROWS", 3):
        assert waits_of(cpu_op("op", 0, 10_000), *calls) == []
        assert waits_of(cpu_op("op", 0, 10_000), *calls[:12], *calls[15:]) == [(6_010, 8_000)]


def test_long_rows_of_the_runtime_are_waits() -> None:
    """From 20 us on."""
    calls = [launch(i, 100 * i, us) for i, us in enumerate((19, 20, 50), start=1)]
    assert waits_of(*calls) == [(200, 220), (300, 350)]


def test_an_operator_waits_where_it_calls_nothing_for_long() -> None:
    """5 ms with calls at 1.5 and 3.5 ms: pauses of 1.5, 1.9 and 1.4 ms around them; from 1 ms on they count."""
    calls = [launch(1, 1_500, 10), launch(2, 3_410, 190)]
    assert waits_of(cpu_op("op", 0, 5_000), *calls) == [(0, 1_500), (1_510, 5_000)]
    calls = [launch(1, 1_500, 10), launch(2, 3_400, 10)]
    assert waits_of(cpu_op("op", 0, 5_000), *calls) == [(0, 1_500), (1_510, 3_400), (3_410, 5_000)]


def test_calls_at_the_edges_of_an_operator_cut_it_and_others_do_not() -> None:
    """Calls that reach 10 us into it count, and ones that only touch it do not matter."""
    before, after = launch(1, 990, 15), launch(2, 2_990, 15)
    assert waits_of(cpu_op("op", 995, 2_000), before, after) == [(1_005, 2_990)]
    assert waits_of(cpu_op("op", 1_005, 1_985), before, after) == [(1_005, 2_990)]


def test_short_operators_and_short_pauses_are_no_waits() -> None:
    assert waits_of(cpu_op("op", 0, 999)) == []
    assert waits_of(cpu_op("op", 0, 1_900), launch(1, 950, 10)) == []


def test_a_cpu_run_has_no_waits() -> None:
    assert len(host_waits(events_of([cpu_op("op", 0, 5_000)]))) == 0
