"""Laws that hold for any run, from rows through text to the report (STYLE.md, habit 12)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from rankscope.model.report import Measures, Report
from rankscope.pipeline import AnalyzeOptions
from support.programs import FIRST_STEP, KINDS, STEP_NS, Program, microseconds, programs, rows_of, split
from support.reading import report_of
from support.trace_text import Bare, Row, annotation, cpu_op, kernel, row

# A law that breaks is shown by the first example that breaks it, a few rows long: making it smaller took minutes.
LAW = settings(
    max_examples=100, deadline=None, database=None, phases=(Phase.explicit, Phase.generate, Phase.target)
)
FULL = AnalyzeOptions(detail="full")
FIGURES = [field.name for field in fields(Measures)]


def measured(report: Report) -> list[tuple[Any, ...]]:
    """Every row of union measures of a report, with what says where it is."""
    found: list[tuple[Any, ...]] = [("totals", *figures(report.totals.run))]
    found += [("rank", r.rank, r.device, *figures(r), r.communication_self_overlap_ns) for r in report.ranks]
    found += [("window", w.rank, w.window, w.device, *figures(w)) for w in report.windows]
    found += [("step", s.step, s.rank, s.device, *figures(s)) for s in report.steps]
    return found


def figures(measures: Measures) -> list[Any]:
    return [getattr(measures, name) for name in FIGURES]


def without_dates(report: Report) -> Report:
    """The report as it is, except for when the run took place."""
    return replace(report, run=replace(report.run, origin_ns="", started_at=None))


def all_measures(report: Report) -> Iterator[Measures]:
    yield from report.ranks
    yield from report.windows
    yield from report.steps
    yield report.totals.run
    yield from (m for m in (report.totals.steady, report.totals.outside_steps) if m is not None)


@LAW
@given(programs(), programs(), st.integers(-(10**9), 2 * 10**18))
def test_shifting_all_times_changes_no_figure(a: Program, b: Program, shift_ns: int) -> None:
    """To any date: absolute times of today need 19 digits."""
    plain = report_of({0: rows_of(a), 1: rows_of(b)}, options=FULL)
    shifted = report_of({0: rows_of(a, shift_ns=shift_ns), 1: rows_of(b, shift_ns=shift_ns)}, options=FULL)
    assert without_dates(shifted) == without_dates(plain)


@LAW
@given(programs(), programs(), st.randoms(use_true_random=False))
def test_the_order_of_events_changes_nothing(a: Program, b: Program, order: random.Random) -> None:
    rows = {0: rows_of(a), 1: rows_of(b)}
    plain = report_of(rows)
    for events in rows.values():
        order.shuffle(events)
    shuffled = report_of({1: rows[1], 0: rows[0]})
    assert measured(shuffled) == measured(plain)
    assert shuffled.groups == plain.groups
    assert shuffled.undefined == plain.undefined


@LAW
@given(programs(), st.sampled_from([2, 3, 7, 1000]))
def test_slower_by_k_scales_every_time_and_no_ratio(program: Program, k: int) -> None:
    plain, slower = report_of({0: rows_of(program)}), report_of({0: rows_of(program, scale=k)})
    ratio = FIGURES.index("overlap_ratio")
    for before, after in zip(all_measures(plain), all_measures(slower), strict=True):
        for index, (one, other) in enumerate(zip(figures(before), figures(after), strict=True)):
            if index == ratio or one is None:
                assert other == one
            else:
                assert other == one * k
    assert [g.overlap_ratio for g in slower.groups] == [g.overlap_ratio for g in plain.groups]
    assert slower.coverage == plain.coverage
    assert [(s.duration_ns, s.runs_past_end_ns) for s in slower.steps] == [
        (
            None if s.duration_ns is None else s.duration_ns * k,
            None if s.runs_past_end_ns is None else s.runs_past_end_ns * k,
        )
        for s in plain.steps
    ]


@LAW
@given(programs(), programs())
def test_what_adds_up_adds_up_to_the_nanosecond(a: Program, b: Program) -> None:
    report = report_of({0: rows_of(a), 1: rows_of(b)})
    for m in all_measures(report):
        assert m.overlap_ns + m.exposed_communication_ns == m.communication_ns
        assert 0 <= m.overlap_ns <= m.communication_ns
        assert 0 <= m.exposed_memory_ns <= m.memory_ns
        assert m.overlap_ratio == (m.overlap_ns / m.communication_ns if m.communication_ns else None)
        if m.window_ns is not None and m.idle_ns is not None:
            busy = m.compute_ns + m.exposed_communication_ns + m.exposed_memory_ns
            assert busy + m.idle_ns == m.window_ns
            assert m.idle_ns >= 0
    for field in ("window_ns", "compute_ns", "communication_ns", "overlap_ns", "memory_ns", "idle_ns"):
        assert getattr(report.totals.run, field) == sum(getattr(row, field) for row in report.ranks)


@LAW
@given(programs(), st.data())
def test_an_event_in_two_pieces_that_touch_is_the_same_time(program: Program, data: st.DataObject) -> None:
    long = [i for i, event in enumerate(program.events) if event.duration_ns > 1]
    assume(long)
    chosen = data.draw(st.sampled_from(long))
    event = program.events[chosen]
    pieces = split(event, data.draw(st.integers(1, event.duration_ns - 1)))
    events = (*program.events[:chosen], *pieces, *program.events[chosen + 1 :])
    whole, cut = report_of({0: rows_of(program)}), report_of({0: rows_of(replace(program, events=events))})
    assert measured(cut) == measured(whole)


@LAW
@given(programs(), st.integers(0, 60), st.integers(0, 500))
def test_rows_that_are_no_device_time_change_nothing(
    program: Program, start_ns: int, duration_ns: int
) -> None:
    """From where the first row begins on: an earlier one would be the run's first event."""
    rows = [*rows_of(program), annotation("first", microseconds(-200), 1)]
    ts, dur = microseconds(start_ns), microseconds(duration_ns)
    more = [
        annotation("forward", ts, dur),
        {**kernel("forward", ts, dur), "cat": "gpu_user_annotation"},
        {**kernel("Event Sync", ts, dur), "cat": "cuda_sync"},
        row("python_function", "train.py(5): step", ts, dur, pid=1, tid=1, args={}),
        row("cuda_runtime", "cudaDeviceSynchronize", ts, dur, pid=1, tid=1, args={}),
        cpu_op("aten::mm", ts, dur),
        {"ph": "i", "name": "Iteration Start", "ts": ts, "s": "g"},
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    ]
    assume(any(program.events))
    assert report_of({0: [*rows, *more]}, options=FULL) == report_of({0: rows}, options=FULL)


@LAW
@given(programs(streams=1, longest=9))
def test_every_event_is_owned_by_one_step_or_by_none(program: Program) -> None:
    """On one stream nothing runs at once, so the rows per step add up to the whole."""
    report = report_of({0: rows_of(program)}, options=FULL)
    counts = {kind: sum(event.kind == kind for event in program.events) for kind in KINDS}
    assert len(report.communications) == counts["communication"]
    steps = {
        program.step_of(e) if program.steps else None for e in program.events if e.kind == "communication"
    }
    assert {row.step for row in report.communications} == steps
    if program.steps and report.ranks:
        (rank,) = report.ranks
        assert (rank.compute_kernels, rank.communication_kernels, rank.memory_operations) == tuple(
            counts.values()
        )
        for field in ("compute_ns", "communication_ns", "memory_ns"):
            assert sum(getattr(s, field) for s in report.steps) == getattr(rank, field)


@LAW
@given(programs())
def test_measures_are_what_counting_nanoseconds_gives(program: Program) -> None:
    """Each set as a Python set of nanoseconds, per rank and per step."""
    assume(program.events)
    report = report_of({0: rows_of(program)})
    everything = units_by_kind(program, None)
    (rank,) = report.ranks
    check(rank, everything, everything)
    last = max(event.start_ns + event.duration_ns for event in program.events)
    assert rank.window_ns == last - min(event.start_ns for event in program.events)
    numbers: list[int | None] = [FIRST_STEP + n for n in range(program.steps)]
    if program.steps and any(program.step_of(event) is None for event in program.events):
        numbers.append(None)
    assert [step.step for step in report.steps] == numbers
    for step in report.steps:
        check(step, units_by_kind(program, {step.step}), everything)
        if step.step is not None:
            assert step.runs_past_end_ns == runs_past(program, step.step)


def units_by_kind(program: Program, steps: set[int | None] | None) -> dict[str, set[int]]:
    """Nanoseconds of each kind, of the events that some steps own; of all if None."""
    return {
        kind: set().union(
            *(
                e.units
                for e in program.events
                if e.kind == kind and (steps is None or program.step_of(e) in steps)
            )
        )
        for kind in KINDS
    }


def check(measures: Measures, owned: dict[str, set[int]], everything: dict[str, set[int]]) -> None:
    compute, communication, memory = (owned[kind] for kind in KINDS)
    assert measures.compute_ns == len(compute)
    assert measures.communication_ns == len(communication)
    assert measures.memory_ns == len(memory)
    assert measures.overlap_ns == len(communication & everything["compute"])
    assert measures.exposed_memory_ns == len(memory - everything["compute"] - everything["communication"])


def runs_past(program: Program, number: int) -> int:
    end = (number - FIRST_STEP + 1) * STEP_NS
    ends = [e.start_ns + e.duration_ns for e in program.events if program.step_of(e) == number]
    return max([0, *(last - end for last in ends)])


@LAW
@given(
    st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 40), st.integers(1, 3), st.booleans()),
        min_size=1,
        max_size=9,
    )
)
def test_measures_of_a_cpu_run_are_what_counting_gives(items: list[tuple[int, int, int, bool]]) -> None:
    """Operators and gloo annotations on any threads: nesting and crossing change no union."""
    rows: list[Row] = []
    compute: set[int] = set()
    communication: set[int] = set()
    for start, duration, thread, communicates in items:
        ts, dur = microseconds(start), microseconds(duration)
        (communication if communicates else compute).update(range(start, start + duration))
        rows.append(
            annotation("gloo:all_reduce", ts, dur, thread=thread)
            if communicates
            else cpu_op("op", ts, dur, thread=thread)
        )
    report = report_of({0: rows})
    (rank,) = report.ranks
    assert rank.communication_ns == len(communication)
    assert rank.compute_ns == len(compute)
    assert rank.overlap_ns == len(communication & compute)


@LAW
@given(st.integers(-(10**18), 2 * 10**18))
def test_a_time_is_written_as_it_is_read(ns: int) -> None:
    (rank,) = report_of({0: [kernel("a", microseconds(ns), Bare("0.001"))]}).ranks
    assert rank.window_ns == 1
