from __future__ import annotations

import pytest

from rankscope.renderers.charts import build_step_chart, build_window_chart

from .conftest import MakeRank, MakeReport, MakeStep


def test_nothing_to_draw(make_report: MakeReport, make_rank: MakeRank, make_step: MakeStep) -> None:
    assert build_window_chart(make_report(ranks=[])) is None
    assert build_window_chart(make_report(ranks=[make_rank(0, window_ns=0)])) is None
    assert build_step_chart(make_report()) is None
    silent = make_step(1, communication_ns=0, overlap_ns=0, overlap_ratio=None)
    assert build_step_chart(make_report(steps=[silent, make_step(None)])) is None


def test_a_bar_is_stacked_from_the_parts_of_the_window(make_report: MakeReport, make_rank: MakeRank) -> None:
    """Compute of 600 us is 400 us alone and 200 us with communication beside it."""
    chart = build_window_chart(make_report(ranks=[make_rank(0), make_rank(1)]))
    assert chart is not None
    assert [(trace["meta"]["part"], trace["x"]) for trace in chart["data"]] == [
        ("compute", [0.4, 0.4]),
        ("hidden", [0.2, 0.2]),
        ("exposed", [0.2, 0.2]),
        ("memory", [0.05, 0.05]),
        ("idle", [0.15, 0.15]),
    ]
    assert chart["data"][0]["y"] == ["rank 0", "rank 1"]
    assert chart["data"][2]["customdata"] == ["200 us (20.0 %)"] * 2
    assert chart["layout"]["xaxis"]["title"]["text"] == "ms"


@pytest.mark.parametrize(
    ("window_ns", "unit", "idle"),
    [
        (999_999, "us", 150.0),
        (1_000_000, "ms", 0.15),
        (9_999_999_999, "ms", 0.15),
        (10_000_000_000, "s", 0.00015),
    ],
)
def test_the_unit_fits_the_longest_window(
    window_ns: int, unit: str, idle: float, make_report: MakeReport, make_rank: MakeRank
) -> None:
    chart = build_window_chart(make_report(ranks=[make_rank(0, window_ns=window_ns)]))
    assert chart is not None
    assert chart["layout"]["xaxis"]["title"]["text"] == unit
    assert chart["data"][-1]["x"] == [pytest.approx(idle)]


def test_many_ranks_stand_upright(make_report: MakeReport, make_rank: MakeRank) -> None:
    chart = build_window_chart(make_report(ranks=[make_rank(rank) for rank in range(41)]))
    assert chart is not None
    assert chart["data"][0]["orientation"] == "v"
    assert chart["data"][0]["x"][:2] == ["0", "1"]
    assert chart["layout"]["yaxis"]["title"]["text"] == "ms"


def test_the_line_of_steps(make_report: MakeReport, make_step: MakeStep) -> None:
    steps = [
        make_step(4, 0, steady=False, overlap_ns=100_000, overlap_ratio=0.25),
        make_step(4, 1, steady=False, overlap_ns=200_000, overlap_ratio=0.5),
        make_step(5, 0),
        make_step(5, 1),
        make_step(None, 0),
    ]
    chart = build_step_chart(make_report(steps=steps))
    assert chart is not None
    low, high, line = chart["data"]
    assert line["x"] == [4, 5]
    assert line["y"] == [37.5, 50.0]
    assert line["marker"]["symbol"] == ["circle-open", "circle"]
    assert line["customdata"][0] == "hidden: 37.5 %<br>exposed: 200 us (median rank)<br>not a steady step"
    assert (low["y"], high["y"]) == ([25.0, 50.0], [50.0, 50.0])


def test_one_rank_has_no_range(make_report: MakeReport, make_step: MakeStep) -> None:
    chart = build_step_chart(make_report(steps=[make_step(1)]))
    assert chart is not None
    assert len(chart["data"]) == 1
