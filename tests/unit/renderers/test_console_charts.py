from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import RenderableType

from rankscope.model.report import CausedWaitRow
from rankscope.renderers.console_charts import draw_arrivals, draw_bucket_strip, draw_caps, draw_heat_map
from rankscope.renderers.console_drawing import NOTHING, print_sections
from rankscope.renderers.to_console import render_console
from support.straggling_report import MS, make_collective, make_straggling

from .conftest import MakeReport


def lines(section: RenderableType, width: int = 80) -> list[str]:
    return print_sections([section], width=width, color=False).splitlines()


def test_nothing_to_draw(make_report: MakeReport) -> None:
    report = make_report()
    assert draw_heat_map(report, 80, 9) is NOTHING
    assert draw_arrivals(report, 80, 9, 9) is NOTHING
    assert draw_bucket_strip(report, 80) is NOTHING
    assert draw_caps(report, 80) is NOTHING


def test_shades_stand_for_shares_of_the_greatest_cost() -> None:
    """Of 8 ms: 0.05 ms, which is less than a hundredth, 0.1 ms, 2, 4, 6 and 8 ms; 1 % | 25 | 50 | 75 | 100 %."""
    costs = [50_000, 100_000, 2 * MS, 4 * MS, 6 * MS, 8 * MS]
    rows = [CausedWaitRow(step=step, rank=0, lateness_ns=0, cost_ns=ns) for step, ns in enumerate(costs)]
    rows += [CausedWaitRow(step=step, rank=1, lateness_ns=0, cost_ns=0) for step in (0, 1, 2, 4, 5)]
    drawn = lines(draw_heat_map(replace(make_straggling(), caused_waits=rows), 80, 9))
    assert drawn[1] == "  step   0   1   2   3   4   5"
    assert drawn[2] == "  rank 0 ····░░░░▒▒▒▒▓▓▓▓████████  8.00 ms"
    assert drawn[3] == "  rank 1 ············    ········  0 ns"


def test_a_line_per_rank_from_its_arrival_to_the_last_one() -> None:
    """Step 3: rank 0 came 8 ms before rank 2, rank 1 7 ms: 52 columns and 7/8 of them, 46 to the nearest even."""
    drawn = lines(draw_arrivals(make_straggling(), 80, 1, 9))
    assert drawn[0] == "Who arrived when"
    bars = [line for line in drawn if "▌" in line][:3]
    space = 80 - len("    rank 0  ") + 1 - 18
    assert [line.count("▒") for line in bars] == [space, round(space * 7 / 8), 0]
    assert bars[0].endswith("▌ waits 8.00 ms")
    assert bars[2].endswith("▌ last")
    assert len({line.index("▌") for line in bars}) == 1


def test_ranks_that_are_left_out_are_counted() -> None:
    row = replace(make_collective(1), arrivals_ns={rank: 10 * rank for rank in range(1000)})
    drawn = lines(draw_arrivals(replace(make_straggling(), collectives=[row]), 80, 9, 12))
    assert sum("▌" in line for line in drawn) == 12 + 1  # and the legend
    assert "    (988 more ranks between them)" in drawn


def test_buckets_over_time() -> None:
    """10 ms in 68 columns, 6.8 each ms: bucket 0 ready at 0, asked for at 1, started 2, last there at 6, done at 8."""
    drawn = lines(draw_bucket_strip(make_straggling(), 80))
    first, second = drawn[1:3]
    space = 80 - len("  bucket 0") - 1 - 2
    column = [round(space * ms / 10) for ms in (1, 2, 6, 8)]
    assert first == "  bucket 0 " + "·" * column[0] + "░" * (column[1] - column[0]) + "▒" * (
        column[2] - column[1]
    ) + "█" * (column[3] - column[2])
    assert "▒" not in second


def test_predictions_from_the_fastest_to_the_slowest() -> None:
    drawn = lines(draw_caps(make_straggling(), 80))
    assert [line.split()[:4] for line in drawn[1:4]] == [
        ["1", "MiB", "99.0", "ms"],
        ["5", "MiB", "96.0", "ms"],
        ["25", "MiB", "100", "ms"],
    ]
    assert drawn[2].endswith("best")
    assert drawn[3].endswith("in use")
    dots = [line.index("●") for line in drawn[1:4]]
    assert dots[1] < dots[0] < dots[2]


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize("view", ["summary", "ranks"])
def test_no_line_is_longer_than_the_terminal(width: int, view: str) -> None:
    report = make_straggling()
    steps = [
        CausedWaitRow(step=step, rank=rank, lateness_ns=0, cost_ns=step)
        for step in range(500)
        for rank in (0, 1023)
    ]
    row = replace(make_collective(1), arrivals_ns={rank: 10**9 * rank for rank in range(1024)}, op="x" * 100)
    report = replace(report, caused_waits=steps, collectives=[row])
    text = render_console(report, width=width, view="ranks" if view == "ranks" else "summary")
    assert max(len(line) for line in text.splitlines()) <= width
