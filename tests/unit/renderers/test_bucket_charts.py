from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankscope.model.categories import EventClass
from rankscope.model.timeline import Timeline, TimelineLane
from rankscope.renderers.bucket_charts import build_bucket_chart, build_cap_chart
from support.straggling_report import MS, make_straggling

from .conftest import MakeReport


def make_timeline(step: int, starts: list[int], lengths: list[int], origin_ns: int = 0) -> Timeline:
    """Kernels of rank 0; the second one communicates."""
    classes = np.full(len(starts), EventClass.COMPUTE, np.uint8)
    classes[1:2] = EventClass.COMMUNICATION
    lane = TimelineLane(
        rank=0, label="GPU 0 stream 7", kind="device", starts_ns=np.array(starts), durations_ns=np.array(lengths),
        names=np.zeros(len(starts), np.int32), classes=classes,
    )  # fmt: skip
    return Timeline(origin_ns=origin_ns, step=step, start_ns=0, end_ns=10**9, lanes=(lane,), names=("k",))


def test_nothing_to_draw(make_report: MakeReport) -> None:
    assert build_bucket_chart(make_report(), None) is None
    assert build_cap_chart(make_report()) is None


def test_the_parts_of_each_bucket() -> None:
    """From 60 ms on: ready at 0, asked for at 1, started at 2, the last there at 6, done at 8; 5, 5, 8, 8, 10."""
    chart = build_bucket_chart(make_straggling(), None)
    assert chart is not None
    host, turn, wait, transfer, ready = chart["data"]
    assert (host["base"], host["x"]) == ([0, pytest.approx(5)], [pytest.approx(1), 0])
    assert turn["y"] == ["bucket 0", "bucket 1"]
    assert [trace["base"] for trace in (turn, wait, transfer)] == [
        [pytest.approx(x) for x in xs] for xs in ((1, 5), (2, 8), (6, 8))
    ]
    assert [trace["x"] for trace in (turn, wait, transfer)] == [
        [pytest.approx(x) for x in xs] for xs in ((1, 3), (4, 0), (2, 2))
    ]
    assert ready["x"] == [0, pytest.approx(5)]
    assert chart["layout"]["xaxis"]["range"] == [0, pytest.approx(10)]
    assert turn["customdata"][0].endswith("25 MiB, exposed 1.00 ms, hidden 83.3 %")


def test_compute_of_the_rank_stands_above_its_buckets() -> None:
    """The report's zero is at 1 s, the timeline's 100 ms later, where step 2 is at 100 ms: kernels of 160 to 165 ms.

    The bucket chart begins at 260 ms of the report. What communicates is not compute, and what ends before the
    first gradients is not drawn; of 150 to 162 ms the last two are.
    """
    report = make_straggling()
    report = replace(report, run=replace(report.run, origin_ns=str(10**9)))
    timeline = make_timeline(2, [150 * MS, 163 * MS, 164 * MS, 20 * MS], [12 * MS, 1 * MS, 2 * MS, MS],
                             origin_ns=10**9 + 100 * MS)  # fmt: skip
    chart = build_bucket_chart(report, timeline)
    assert chart is not None
    compute = chart["data"][0]
    assert compute["name"] == "compute"
    assert compute["base"] == [0, pytest.approx(4)]
    assert compute["x"] == [pytest.approx(2), pytest.approx(2)]


def test_compute_of_another_step_is_left_out() -> None:
    chart = build_bucket_chart(make_straggling(), make_timeline(9, [0], [10**9]))
    assert chart is not None
    assert chart["data"][0]["name"] != "compute"


def test_gaps_that_nobody_could_see_are_closed() -> None:
    """10 ms in 500 pieces: gaps up to 20 us are closed. 10,000 kernels of 900 ns every 1,000 ns become one bar."""
    starts = [260 * MS + 1_000 * number for number in range(10_000)]
    chart = build_bucket_chart(make_straggling(), make_timeline(2, starts, [900] * 10_000))
    assert chart is not None
    assert len(chart["data"][0]["x"]) == 1


def test_predictions_with_their_range() -> None:
    chart = build_cap_chart(make_straggling())
    assert chart is not None
    low, high, line, current, best = chart["data"]
    assert (low["y"], line["y"], high["y"]) == ([98, 95, 99], [99, 96, 100], [100, 97, 101])
    assert line["x"] == [1.0, 5.0, 25.0]
    assert (current["x"], best["x"]) == ([25.0], [5.0])
    assert chart["layout"]["xaxis"]["type"] == "log"
