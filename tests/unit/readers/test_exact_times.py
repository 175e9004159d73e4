"""Times to the nanosecond, however a file writes them: never through a float that cannot hold them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.reading import read_text
from support.trace_text import Bare, kernel, trace_text

EXACT = settings(max_examples=150, deadline=None, database=None)

BASE_NS = 1_767_225_600_000_000_000  # 2026-01-01 00:00:00 UTC


def starts_of(values: list[Any], *, block_bytes: int | None = None) -> list[int]:
    text = trace_text([kernel("k", value, 1) for value in values])
    starts: list[int] = read_text(text, block_bytes=block_bytes).table.start_ns.tolist()
    return starts


def microseconds(ns: int) -> Bare:
    """Three decimals, as torch >= 2.4 writes them."""
    return Bare(f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}")


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        (0, 0),
        (7, 7_000),
        (Bare("0.001"), 1),
        (Bare("12.345"), 12_345),
        (Bare("-3.250"), -3_250),
        (1_767_225_600_000_000, BASE_NS),
        (Bare("1767225600000000.130"), BASE_NS + 130),
        (Bare("1767225600000000.999"), BASE_NS + 999),
        (Bare("8796093022207.999"), 8_796_093_022_207_999),  # the last below 2^43 us
        (Bare("8796093022208.001"), 8_796_093_022_208_001),  # and beyond it
        ("12.345", 12_345),
        (" 12.345 ", 12_345),
        ("1767225600000000.130", BASE_NS + 130),
        (Bare("1.5e3"), 1_500_000),
        (Bare("1.2346"), 1_235),  # a tenth of a nanosecond is rounded to the nearest
        (Bare("-0.0"), 0),
    ],
)
def test_start(written: Any, ns: int) -> None:
    assert starts_of([written]) == [ns]


def test_a_product_with_1000_would_be_rounded_twice() -> None:
    """4458676422880.181 us, found in a real trace: the double nearest to it, times 1000, is not nearest to ...181."""
    assert round(4458676422880.181 * 1000) != 4_458_676_422_880_181
    assert starts_of([Bare("4458676422880.181")]) == [4_458_676_422_880_181]


def test_duration_is_as_exact_as_the_start() -> None:
    """The kernel begins 130 ns after the microsecond and lasts 1,000,000,000,000.007 us."""
    event = kernel("k", Bare("1767225600000000.130"), Bare("1000000000000.007"))
    table = read_text(trace_text([event])).table
    assert table.start_ns.tolist() == [BASE_NS + 130]
    assert table.duration_ns.tolist() == [1_000_000_000_000_007]


def test_all_spellings_in_one_block() -> None:
    written = [1, Bare("2.002"), "3.003", Bare("1767225600000000.130"), 1_767_225_600_000_001, Bare("1e-3")]
    assert starts_of(written) == [
        1,  # 1e-3 us; the table is sorted by start
        1_000,
        2_002,
        3_003,
        BASE_NS + 130,
        BASE_NS + 1_000,
    ]


@pytest.mark.parametrize(
    "stray", [Bare('{"ph":5,"ts":1}'), Bare("5"), Bare("null"), Bare('{"ph":"X","ts":[1]}')]
)
def test_an_odd_neighbour_costs_no_digit(stray: Bare) -> None:
    """One event of an impossible type in a block must not send the others through floats."""
    text = trace_text([kernel("k", Bare("1767225600000000.130"), Bare("0.007")), stray])
    table = read_text(text).table
    assert table.start_ns.tolist() == [BASE_NS + 130]
    assert table.duration_ns.tolist() == [7]


@EXACT
@given(st.lists(st.integers(-(10**12), 2**43 * 1000), min_size=1, max_size=5))
def test_every_time_with_three_decimals(times: list[int]) -> None:
    assert starts_of([microseconds(ns) for ns in times]) == sorted(times)


@EXACT
@given(st.lists(st.integers(BASE_NS, BASE_NS + 10**17), min_size=1, max_size=5))
def test_every_absolute_time_with_three_decimals(times: list[int]) -> None:
    assert starts_of([microseconds(ns) for ns in times]) == sorted(times)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("block_bytes", [None, 16, 64])
def test_base_time_before_or_after_the_events(first: bool, block_bytes: int | None) -> None:
    """Up to torch 2.7 it stands after the events, from 2.8 before them."""
    text = trace_text(
        [kernel("k", Bare("5.250"), 1)], {"baseTimeNanoseconds": BASE_NS + 3}, metadata_first=first
    )
    assert read_text(text, block_bytes=block_bytes).table.start_ns.tolist() == [BASE_NS + 3 + 5_250]


@pytest.mark.parametrize(
    "base", ["1767225600000000000", 1.5, True, None, [1], Bare("NaN"), 10**30, -(10**30)], ids=repr
)
def test_a_base_time_that_is_none_is_said(base: Any) -> None:
    file = read_text(trace_text([kernel("k", 5, 1)], {"baseTimeNanoseconds": base}))
    assert file.table.start_ns.tolist() == [5_000]
    assert "base-time" in [problem.kind for problem in file.problems]


@pytest.mark.parametrize(
    "written",
    ["soon", "", "nan", "Infinity", "1e999999999", "0x10", Bare("1e400"), Bare("9" * 30), Bare("9" * 5000)],
    ids=lambda value: str(value)[:12],
)
def test_what_is_no_time_or_out_of_range_is_left_out_and_said(written: Any) -> None:
    text = trace_text([kernel("bad", written, 1), kernel("good", 5, 1), kernel("bad too", 5, written)])
    file = read_text(text)
    assert file.table.names == ("good",)
    (problem,) = file.problems
    assert problem.kind == "bad-event"
    assert problem.message.startswith("2 event(s)")


def test_no_sum_of_times_leaves_64_bits() -> None:
    """Start, duration and base may each be huge; an end that wrapped round would be a negative time."""
    events = [kernel("k", 10**15, 10**15), kernel("huge", 4 * 10**15, 4 * 10**15)]
    table = read_text(trace_text(events, {"baseTimeNanoseconds": BASE_NS})).table
    assert table.names == ("k",)
    assert (table.end_ns > table.start_ns).all()
