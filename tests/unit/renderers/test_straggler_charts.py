from __future__ import annotations

from dataclasses import replace

import pytest

from rankscope.renderers.straggler_charts import build_arrival_chart, build_wait_chart
from rankscope.renderers.wait_matrix import WaitMatrix
from support.straggling_report import make_collective, make_straggling

from .conftest import MakeReport


def test_the_heat_map() -> None:
    matrix = WaitMatrix(figure="cost", ranks=(3, 5), steps=("1", "2"), values=((0, None), (4_000_000, 2_000_000)),
                        full_ns=4_000_000, notes=())  # fmt: skip
    (trace,) = build_wait_chart(matrix)["data"]
    assert (trace["x"], trace["y"]) == (["1", "2"], ["rank 3", "rank 5"])
    assert trace["z"] == [[0.0, None], [4.0, 2.0]]
    assert trace["customdata"] == [["0 ns", "unknown"], ["4.00 ms", "2.00 ms"]]
    assert (trace["zmin"], trace["zmax"], trace["colorbar"]["title"]["text"]) == (0, 4.0, "ms")


def test_no_arrivals(make_report: MakeReport) -> None:
    assert build_arrival_chart(make_report()) is None


def test_a_mark_per_arrival_at_the_time_before_the_last() -> None:
    """Step 3: 8 and 7 ms before rank 2, step 2: 7 and 6, step 1: 6 and 5."""
    chart = build_arrival_chart(make_straggling())
    assert chart is not None
    spans, early, last = chart["data"]
    assert early["x"] == [pytest.approx(x) for x in (-8, -7, -7, -6, -6, -5)]
    assert early["customdata"][0] == "rank 0 waited 8.00 ms for the last"
    assert (last["x"], last["text"]) == ([0, 0, 0], ["rank 2"] * 3)
    assert spans["x"][:3] == [pytest.approx(-8), 0, None]
    assert chart["layout"]["xaxis"]["title"]["text"] == "ms before the last rank arrived"


def test_many_ranks_make_no_more_marks_than_can_be_told_apart() -> None:
    row = replace(make_collective(1), arrivals_ns={rank: 1_000 * rank for rank in range(4096)})
    chart = build_arrival_chart(replace(make_straggling(), collectives=[row] * 30))
    assert chart is not None
    _, early, last = chart["data"]
    assert len(early["x"]) + len(last["x"]) <= 12 * 64
