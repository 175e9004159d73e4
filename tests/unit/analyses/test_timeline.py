from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankscope.analyses.timeline import EXPOSED_NAME, build_timeline
from rankscope.correlate.clocks import Clocks, RankClock
from rankscope.model.categories import Category, Classifier, EventClass
from rankscope.model.run import Run, TraceWindow
from rankscope.model.table import CPU_DEVICE, NO_ID, Lane, TraceTable, empty_arguments, empty_table
from rankscope.model.timeline import MERGED_NAME, Timeline, TimelineLane, merge_short_events

HOST = Lane(pid=1, tid=11)
WORKER = Lane(pid=1, tid=12)
STREAM_7 = Lane(pid=0, tid=7, device=0, stream=7)
STREAM_20 = Lane(pid=0, tid=20, device=0, stream=20)
KERNEL, COPY = Category.KERNEL, Category.MEMCPY
OP, NOTE = Category.CPU_OP, Category.USER_ANNOTATION


@dataclass(frozen=True)
class Row:
    """One event: nanoseconds from start to end."""

    name: str
    category: Category
    lane: Lane
    start: int
    end: int


def make_table(rows: Sequence[Row]) -> TraceTable:
    if not rows:
        return empty_table()
    rows = sorted(rows, key=lambda row: row.start)
    names = tuple(dict.fromkeys(row.name for row in rows))
    lanes = tuple(dict.fromkeys(row.lane for row in rows))
    classifier = Classifier()
    ids = np.full(len(rows), NO_ID, np.int64)
    return TraceTable(
        start_ns=np.array([row.start for row in rows], np.int64),
        duration_ns=np.array([row.end - row.start for row in rows], np.int64),
        category=np.array([row.category for row in rows], np.uint8),
        event_class=np.array([classifier.classify(row.category, row.name) for row in rows], np.uint8),
        name=np.array([names.index(row.name) for row in rows], np.int32),
        lane=np.array([lanes.index(row.lane) for row in rows], np.int32),
        device=np.array(
            [CPU_DEVICE if row.lane.device is None else row.lane.device for row in rows], np.int16
        ),
        correlation=ids,
        external_id=ids,
        names=names,
        lanes=lanes,
        arguments=empty_arguments(),
    )


def make_run(*ranks: Sequence[Row]) -> Run:
    windows = [
        TraceWindow(rank=rank, rank_source="numbered", window=0, file=f"{rank}.json", table=make_table(rows))
        for rank, rows in enumerate(ranks)
    ]
    return Run(name="run", source="run", windows=tuple(windows))


def draw(run: Run, **options: Any) -> Timeline:
    timeline = build_timeline(run, **options)
    assert timeline is not None
    return timeline


def read(timeline: Timeline) -> dict[str, list[tuple[str, int, int, str]]]:
    """Lane -> its events as (name, start, end, class)."""
    return {
        f"{lane.rank} {lane.label}": [
            (timeline.names[name], start, start + duration, EventClass(event_class).name)
            for name, start, duration, event_class in zip(
                lane.names.tolist(), lane.starts_ns.tolist(), lane.durations_ns.tolist(), lane.classes.tolist(),
                strict=True,
            )
        ]
        for lane in timeline.lanes
    }  # fmt: skip


def step(number: int, start: int, end: int) -> Row:
    return Row(f"ProfilerStep#{number}", NOTE, HOST, start, end)


def test_nothing_to_draw() -> None:
    assert build_timeline(Run(name="r", source="r", windows=())) is None
    assert build_timeline(make_run([])) is None
    assert build_timeline(make_run([step(1, 0, 10)])) is None


def test_a_step_without_events_or_unknown_is_none() -> None:
    run = make_run([step(1, 0, 10), Row("gemm", KERNEL, STREAM_7, 2, 4)])
    assert build_timeline(run, step=2) is None


def test_lanes_of_a_gpu_run() -> None:
    """Communication [40, 80) without compute [10, 50) leaves [50, 80) exposed."""
    run = make_run([
        step(5, 0, 100),
        Row("forward", NOTE, HOST, 5, 20),
        Row("aten::mm", OP, HOST, 5, 9),
        Row("gemm", KERNEL, STREAM_7, 10, 50),
        Row("ncclDevKernel_AllReduce", KERNEL, STREAM_20, 40, 80),
        Row("Memcpy", COPY, STREAM_7, 85, 90),
    ])  # fmt: skip
    timeline = draw(run)
    assert timeline.step == 5
    assert (timeline.origin_ns, timeline.start_ns, timeline.end_ns) == (0, 0, 100)
    assert not timeline.merged
    assert read(timeline) == {
        "0 annotations": [("ProfilerStep#5", 0, 100, "ANNOTATION"), ("forward", 5, 20, "ANNOTATION")],
        "0 GPU 0 stream 7": [("gemm", 10, 50, "COMPUTE"), ("Memcpy", 85, 90, "MEMORY")],
        "0 GPU 0 stream 20": [("ncclDevKernel_AllReduce", 40, 80, "COMMUNICATION")],
        "0 GPU 0 exposed": [(EXPOSED_NAME, 50, 80, "COMMUNICATION")],
    }
    assert [lane.kind for lane in timeline.lanes] == ["annotations", "device", "device", "exposed"]


def test_lanes_of_a_cpu_run() -> None:
    """Outermost operators are compute; an operator that waits for a peer is none and is left out."""
    run = make_run([
        step(1, 0, 100),
        Row("aten::linear", OP, HOST, 10, 30),
        Row("aten::addmm", OP, HOST, 12, 20),
        Row("aten::relu", OP, HOST, 30, 35),
        Row("c10d::barrier", OP, HOST, 60, 90),
        Row("gloo:all_reduce", NOTE, WORKER, 32, 50),
    ])  # fmt: skip
    assert read(draw(run)) == {
        "0 annotations": [("ProfilerStep#1", 0, 100, "ANNOTATION")],
        "0 thread 11": [("aten::linear", 10, 30, "COMPUTE"), ("aten::relu", 30, 35, "COMPUTE")],
        "0 thread 12": [("gloo:all_reduce", 32, 50, "COMMUNICATION")],
        "0 exposed": [(EXPOSED_NAME, 35, 50, "COMMUNICATION")],
    }


def test_the_span_goes_on_to_the_end_of_what_began_in_the_step() -> None:
    run = make_run([
        step(1, 0, 100),
        step(2, 100, 200),
        Row("late", KERNEL, STREAM_7, 90, 130),
        Row("beside", KERNEL, STREAM_20, 120, 125),
        Row("after", KERNEL, STREAM_20, 130, 140),
    ])  # fmt: skip
    timeline = draw(run, step=1)
    assert timeline.end_ns == 130
    assert [name for name, *_ in read(timeline)["0 GPU 0 stream 20"]] == ["beside"]


def test_events_that_reach_into_the_step_are_shown_whole() -> None:
    run = make_run([
        step(1, 100, 200),
        Row("before", KERNEL, STREAM_7, 50, 100),
        Row("across", KERNEL, STREAM_20, 80, 120),
    ])  # fmt: skip
    timeline = draw(run)
    assert timeline.origin_ns == 100
    assert read(timeline)["0 GPU 0 stream 20"] == [("across", -20, 20, "COMPUTE")]
    assert "0 GPU 0 stream 7" not in read(timeline)


def test_exposed_communication_is_cut_to_the_step() -> None:
    run = make_run([step(1, 100, 200), Row("ncclAllReduce", KERNEL, STREAM_7, 80, 120)])
    assert read(draw(run))["0 GPU 0 exposed"] == [(EXPOSED_NAME, 0, 20, "COMMUNICATION")]


def test_the_middle_step_that_most_ranks_recorded_is_shown() -> None:
    kernels = [Row("gemm", KERNEL, STREAM_7, 10 * i, 10 * i + 5) for i in range(10)]
    steps = [step(i, 10 * i, 10 * i + 10) for i in range(10)]
    assert draw(make_run(kernels + steps[:3])).step == 1
    assert draw(make_run(kernels + steps[:4])).step == 2
    assert draw(make_run(kernels + steps[:9], kernels + steps[5:8])).step == 6


def test_without_markers_all_of_the_recording_is_shown() -> None:
    timeline = draw(make_run([Row("a", KERNEL, STREAM_7, 30, 40), Row("b", KERNEL, STREAM_7, 70, 90)]))
    assert timeline.step is None
    assert (timeline.origin_ns, timeline.start_ns, timeline.end_ns) == (30, 0, 60)
    assert len(timeline) == 2


def test_ranks_share_one_axis_and_one_list_of_names() -> None:
    first = [step(1, 100, 200), Row("gemm", KERNEL, STREAM_7, 110, 120)]
    second = [
        step(1, 150, 260),
        Row("other", KERNEL, STREAM_7, 155, 156),
        Row("gemm", KERNEL, STREAM_7, 170, 180),
    ]
    timeline = draw(make_run(first, second))
    assert (timeline.origin_ns, timeline.end_ns) == (100, 160)
    assert read(timeline)["1 GPU 0 stream 7"] == [("other", 55, 56, "COMPUTE"), ("gemm", 70, 80, "COMPUTE")]
    assert len(set(timeline.names)) == len(timeline.names)


def test_streams_stand_in_order_of_their_numbers() -> None:
    lanes = [Lane(pid=0, tid=n, device=0, stream=n) for n in (20, 7, 100)]
    timeline = draw(make_run([Row("k", KERNEL, lane, i, i + 1) for i, lane in enumerate(lanes)]))
    assert [lane.label for lane in timeline.lanes] == [
        "GPU 0 stream 7",
        "GPU 0 stream 20",
        "GPU 0 stream 100",
    ]


def test_windows_of_a_rank_stand_on_one_lane() -> None:
    run = make_run([Row("a", KERNEL, STREAM_7, 50, 60)], [Row("b", KERNEL, STREAM_7, 10, 20)])
    windows = tuple(
        TraceWindow(rank=0, rank_source="numbered", window=i, file="f", table=window.table)
        for i, window in enumerate(run.windows)
    )
    timeline = draw(Run(name="r", source="r", windows=windows))
    assert read(timeline) == {"0 GPU 0 stream 7": [("b", 0, 10, "COMPUTE"), ("a", 40, 50, "COMPUTE")]}


@given(shift=st.integers(-(1 << 60), 1 << 60))
def test_shifting_all_clocks_moves_only_the_origin(shift: int) -> None:
    run = make_run(
        [step(1, 0, 100), Row("ncclAllReduce", KERNEL, STREAM_7, 10, 50), Row("g", KERNEL, STREAM_20, 20, 30)]
    )
    shifted = Run(
        name="r", source="r", windows=tuple(w.with_table(w.table.shifted(shift)) for w in run.windows)
    )
    assert draw(shifted).origin_ns == draw(run).origin_ns + shift
    assert read(draw(shifted)) == read(draw(run))


# --- merging ---------------------------------------------------------------------------------------------


def make_timeline(end: int, *events: tuple[int, int, EventClass]) -> Timeline:
    """A timeline of one lane with events (start, duration, class), each with a name of its own."""
    lane = TimelineLane(
        rank=0,
        label="lane",
        kind="device",
        starts_ns=np.array([start for start, _, _ in events], np.int64),
        durations_ns=np.array([duration for _, duration, _ in events], np.int64),
        names=np.arange(len(events), dtype=np.int32),
        classes=np.array([event_class for *_, event_class in events], np.uint8),
    )
    names = tuple(f"event {i}" for i in range(len(events)))
    return Timeline(origin_ns=0, step=1, start_ns=0, end_ns=end, lanes=(lane,), names=names)


C, X = EventClass.COMPUTE, EventClass.COMMUNICATION


def test_few_events_are_left_alone() -> None:
    timeline = make_timeline(100, (0, 1, C), (2, 1, C))
    assert merge_short_events(timeline, 2) is timeline


def test_short_neighbours_of_a_class_become_one() -> None:
    """Span 65,536 ns = parts of 1 ns, then 2, 4, 8: in [0, 8) lie three of C (2 + 1 + 1 ns) and one of X."""
    timeline = make_timeline(65_536, (0, 2, C), (3, 1, C), (4, 1, X), (5, 1, C), (100, 50, C))
    merged = merge_short_events(timeline, 3)
    assert merged.merged
    assert read(merged) == {
        "0 lane": [
            (MERGED_NAME, 0, 4, "COMPUTE"),
            ("event 2", 4, 5, "COMMUNICATION"),
            ("event 4", 100, 150, "COMPUTE"),
        ]
    }


def test_nested_events_become_no_longer_than_they_reach() -> None:
    """[0, 6) holds [1, 6): 11 ns of events in 6 ns."""
    merged = merge_short_events(make_timeline(65_536, (0, 6, C), (1, 5, C)), 1)
    assert read(merged) == {"0 lane": [(MERGED_NAME, 0, 6, "COMPUTE")]}


def test_an_empty_lane_stays() -> None:
    timeline = make_timeline(100)
    full = make_timeline(100, (0, 1, C), (1, 1, C))
    both = Timeline(
        origin_ns=0, step=1, start_ns=0, end_ns=100, lanes=(*timeline.lanes, *full.lanes), names=full.names
    )
    merged = merge_short_events(both, 1)
    assert [len(lane) for lane in merged.lanes] == [0, 1]


def test_merging_ends_where_no_less_can_be_drawn() -> None:
    """One event of each class is the least; asking for none must not run for ever."""
    merged = merge_short_events(make_timeline(100, (0, 1, C), (1, 1, X)), 0)
    assert len(merged) == 2


@pytest.mark.parametrize("limit", [1_000, 20_000])
def test_a_large_timeline_gets_below_the_limit_and_keeps_its_busy_time(limit: int) -> None:
    generator = np.random.default_rng(1)
    durations = generator.integers(1, 2_000, 200_000)
    starts = np.cumsum(durations + generator.integers(0, 500, len(durations))) - durations
    lane = TimelineLane(
        rank=0, label="lane", kind="device", starts_ns=starts.astype(np.int64), durations_ns=durations,
        names=np.zeros(len(starts), np.int32), classes=generator.integers(0, 3, len(starts)).astype(np.uint8),
    )  # fmt: skip
    timeline = Timeline(
        origin_ns=0, step=1, start_ns=0, end_ns=int(starts[-1] + 2_000), lanes=(lane,), names=("k",)
    )
    merged = merge_short_events(timeline, limit)
    (drawn,) = merged.lanes
    assert limit / 4 < len(drawn) <= limit
    assert int(drawn.durations_ns.sum()) == int(durations.sum())
    assert (np.diff(drawn.starts_ns) >= 0).all()


def test_the_limit_is_kept_while_building() -> None:
    rows = [Row("k", KERNEL, STREAM_7, 10 * i, 10 * i + 5) for i in range(1_000)]
    timeline = draw(make_run(rows), max_events=100)
    assert timeline.merged
    assert len(timeline) <= 100
    assert not draw(make_run(rows)).merged


def test_clocks_put_the_ranks_on_one_axis() -> None:
    """Rank 1's clock is 1000 ns ahead: its kernel of 1105 to 1140 ran from 105 to 140 by the clock of rank 0.

    The recording runs from 100 to 150, so rank 0's kernel stands at 0 to 50 and rank 1's at 5 to 40.
    """
    run = make_run([Row("a", KERNEL, STREAM_7, 100, 150)], [Row("b", KERNEL, STREAM_7, 1105, 1140)])
    clocks = Clocks(
        method="collective ends", reference=0, of_rank={0: RankClock(), 1: RankClock(offset_ns=1000)}
    )
    timeline = draw(run, clocks=clocks)
    assert (timeline.origin_ns, timeline.start_ns, timeline.end_ns) == (100, 0, 50)
    assert read(timeline) == {
        "0 GPU 0 stream 7": [("a", 0, 50, "COMPUTE")],
        "1 GPU 0 stream 7": [("b", 5, 40, "COMPUTE")],
    }
    assert draw(run).end_ns == 1040


def test_on_one_clock_all_ranks_show_the_same_time() -> None:
    """Step 1 is at 0 to 50 on rank 0 and, its host being late, at 40 to 90 on rank 1: both show 0 to 90."""
    run = make_run(
        [step(1, 0, 50), Row("a", KERNEL, STREAM_7, 5, 50), Row("next", KERNEL, STREAM_7, 60, 80)],
        [Row("before", KERNEL, STREAM_7, 5, 30), step(1, 40, 90), Row("b", KERNEL, STREAM_7, 45, 90)],
    )
    clocks = Clocks(method="collective ends", reference=0, of_rank={0: RankClock(), 1: RankClock()})
    lanes = read(draw(run, clocks=clocks, step=1))
    assert lanes["0 GPU 0 stream 7"] == [("a", 5, 50, "COMPUTE"), ("next", 60, 80, "COMPUTE")]
    assert lanes["1 GPU 0 stream 7"] == [("before", 5, 30, "COMPUTE"), ("b", 45, 90, "COMPUTE")]
    assert read(draw(run, step=1))["0 GPU 0 stream 7"] == [("a", 5, 50, "COMPUTE")]
