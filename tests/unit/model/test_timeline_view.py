"""Cutting a part out of a timeline, with small events drawn together. All numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankscope.model.timeline import MERGED_NAME, Timeline, TimelineLane
from rankscope.model.timeline_view import cut, split_tracks

COMPUTE, COMMUNICATION = 1, 2


def lane(
    spans: Sequence[tuple[int, int]], *, rank: int = 0, classes: Sequence[int] | None = None
) -> TimelineLane:
    """A lane of (start, end) spans, named 0, 1, ..."""
    return TimelineLane(
        rank=rank,
        label="GPU 0 stream 7",
        kind="device",
        starts_ns=np.array([start for start, _ in spans], np.int64),
        durations_ns=np.array([end - start for start, end in spans], np.int64),
        names=np.arange(len(spans), dtype=np.int32),
        classes=np.array(classes or [COMPUTE] * len(spans), np.uint8),
    )


def timeline(*lanes: TimelineLane) -> Timeline:
    longest = max((len(one) for one in lanes), default=0)
    return Timeline(
        origin_ns=0,
        step=None,
        start_ns=0,
        end_ns=1000,
        lanes=lanes,
        names=tuple(f"k{i}" for i in range(longest)),
    )


def spans_of(one: TimelineLane) -> list[tuple[int, int]]:
    return list(zip(one.starts_ns.tolist(), (one.starts_ns + one.durations_ns).tolist(), strict=True))


def test_an_empty_timeline_is_cut_to_an_empty_one() -> None:
    shown = cut(timeline(), 0, 100, parts=10)
    assert (len(shown.timeline), shown.counts) == (0, ())
    assert split_tracks(timeline()).lanes == ()


def test_events_that_reach_into_the_view_are_kept_and_those_that_touch_it_are_not() -> None:
    shown = cut(timeline(lane([(0, 10), (5, 30), (20, 21), (29, 40), (40, 50)])), 10, 40, parts=30)
    assert spans_of(shown.timeline.lanes[0]) == [(5, 30), (20, 21), (29, 40)]


def test_an_event_that_began_long_before_is_found_behind_shorter_ones() -> None:
    shown = cut(timeline(lane([(0, 100), (1, 2), (3, 4)])), 50, 60, parts=10)
    assert spans_of(shown.timeline.lanes[0]) == [(0, 100)]


def test_short_events_of_a_part_become_one_as_long_as_all_of_them() -> None:
    """Parts of 10 ns: (0,2), (4,7) and (8,9) lie in the first: 2 + 3 + 1 = 6 from 0; (12,13) is alone in the second."""
    shown = cut(timeline(lane([(0, 2), (4, 7), (8, 9), (12, 13), (20, 40)])), 0, 100, parts=10)
    assert shown.part_ns == 10
    assert spans_of(shown.timeline.lanes[0]) == [(0, 6), (12, 13), (20, 40)]
    assert shown.counts[0].tolist() == [3, 1, 1]
    names = [shown.timeline.names[i] for i in shown.timeline.lanes[0].names]
    assert names == [MERGED_NAME, "k3", "k4"]
    assert shown.timeline.merged


def test_events_of_different_classes_are_not_drawn_together() -> None:
    spans = [(0, 2), (2, 4), (4, 6), (6, 8)]
    classes = [COMPUTE, COMMUNICATION, COMPUTE, COMMUNICATION]
    shown = cut(timeline(lane(spans, classes=classes)), 0, 100, parts=10)
    one = shown.timeline.lanes[0]
    assert spans_of(one) == [(0, 4), (2, 6)]
    assert one.classes.tolist() == [COMPUTE, COMMUNICATION]


def test_nested_events_are_together_no_longer_than_their_span() -> None:
    """(0,8) with (1,4) and (2,3) inside: busy 8 + 3 + 1 = 12, but they span 8."""
    shown = cut(timeline(lane([(0, 8), (1, 4), (2, 3)])), 0, 100, parts=10)
    assert spans_of(shown.timeline.lanes[0]) == [(0, 8)]
    assert shown.counts[0].tolist() == [3]


def test_nothing_is_drawn_together_when_zoomed_in() -> None:
    shown = cut(timeline(lane([(0, 2), (4, 7), (8, 9)])), 0, 10, parts=10)
    assert spans_of(shown.timeline.lanes[0]) == [(0, 2), (4, 7), (8, 9)]
    assert not shown.timeline.merged


def test_only_the_ranks_and_names_in_view_are_kept() -> None:
    shown = cut(timeline(lane([(0, 10)]), lane([(0, 10), (20, 30)], rank=1)), 15, 40, parts=25, ranks=[1])
    assert [one.rank for one in shown.timeline.lanes] == [1]
    assert shown.timeline.names == ("k1",)
    assert shown.timeline.lanes[0].names.tolist() == [0]


def test_parts_grow_until_few_enough_events_remain() -> None:
    """50 events of 1 ns every 2 ns: parts of 1 ns keep all 50, and doubling to 16 ns leaves ceil(100 / 16) = 7."""
    shown = cut(timeline(lane([(2 * i, 2 * i + 1) for i in range(50)])), 0, 100, parts=100, most_events=10)
    assert shown.part_ns == 16
    assert len(shown.timeline) == 7
    assert shown.counts[0].sum() == 50


def test_time_is_neither_lost_nor_invented() -> None:
    rng = np.random.default_rng(7)
    gaps, lengths = rng.integers(0, 9, 4000), rng.integers(1, 40, 4000)
    ends = np.cumsum(gaps + lengths)
    spans = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
    one = lane(spans, classes=rng.integers(1, 4, 4000).tolist())
    for parts in (10, 333, 5000):
        shown = cut(timeline(one), 0, int(ends[-1]), parts=parts)
        drawn = shown.timeline.lanes[0]
        for event_class in (1, 2, 3):
            before = int(one.durations_ns[one.classes == event_class].sum())
            assert int(drawn.durations_ns[drawn.classes == event_class].sum()) == before
        assert (np.diff(drawn.starts_ns) >= 0).all()
        assert int(shown.counts[0].sum()) == 4000


def test_nested_events_are_split_into_tracks_without_overlap() -> None:
    tracks = split_tracks(timeline(lane([(0, 100), (10, 40), (12, 20), (50, 60), (100, 110)]))).lanes
    assert [spans_of(track) for track in tracks] == [[(0, 100), (100, 110)], [(10, 40), (50, 60)], [(12, 20)]]
    assert {(track.rank, track.label) for track in tracks} == {(0, "GPU 0 stream 7")}


def test_crossing_events_are_split_too_and_the_deepest_share_a_track() -> None:
    tracks = split_tracks(timeline(lane([(i, 100 + i) for i in range(8)]))).lanes
    assert len(tracks) == 6
    assert [len(track) for track in tracks] == [1, 1, 1, 1, 1, 3]


def test_a_lane_without_overlap_stays_as_it_is() -> None:
    one = lane([(0, 10), (10, 20)])
    assert split_tracks(timeline(one)).lanes[0] is one
