from __future__ import annotations

from dataclasses import replace

from rankscope.model.late_collectives import pick_late
from rankscope.renderers.arrivals import describe_arrivals, list_arrivals
from support.straggling_report import MS, make_collective, make_straggling

from .conftest import MakeReport


def test_no_collectives(make_report: MakeReport) -> None:
    assert list_arrivals(make_report(), collectives=9, ranks=9) == ()


def test_the_latest_collective_comes_first_and_its_ranks_in_order_of_arrival() -> None:
    """Step 3: rank 0 at 300 ms, rank 1 at 301, rank 2 7 ms after it."""
    first, *others = list_arrivals(make_straggling(), collectives=9, ranks=9)
    assert first.name == "#2, step 3, all_reduce of 25 MiB"
    assert [(a.rank, a.before_last_ns) for a in first.ranks] == [(0, 8 * MS), (1, 7 * MS), (2, 0)]
    assert (first.span_ns, first.left_out, len(others)) == (8 * MS, 0, 2)
    assert describe_arrivals(first) == (
        "rank 2 came 7.00 ms after the second last; the transfer itself took 2.00 ms"
    )


def test_of_many_ranks_the_last_ones_are_kept() -> None:
    """Of 100 ranks 8 are shown: 98 and 99, and six spread over the other 98: 0, 16, 32, 49, 65 and 81."""
    row = replace(make_collective(1), arrivals_ns={rank: 10 * rank for rank in range(100)})
    report = replace(make_straggling(), collectives=[row])
    (arrivals,) = list_arrivals(report, collectives=9, ranks=8)
    assert [arrival.rank for arrival in arrivals.ranks] == [0, 16, 32, 49, 65, 81, 98, 99]
    assert (arrivals.left_out, arrivals.span_ns) == (92, 990)


def test_hostile_names_are_inert() -> None:
    row = replace(make_collective(1), op="a\n\u202eb", group="\x1b[31m", size_bytes=None)
    (arrivals,) = list_arrivals(replace(make_straggling(), collectives=[row]), collectives=1, ranks=9)
    assert arrivals.name == "#0, step 1, a\\n\\u202eb"
    assert arrivals.group == "\\x1b[31m"


def test_only_collectives_that_count_are_late() -> None:
    rows = [make_collective(1), replace(make_collective(2), countable=False),
            replace(make_collective(3), lateness_ns=0)]  # fmt: skip
    assert [row.index for row in pick_late(rows)] == [0]
    assert [row.index for row in pick_late([make_collective(step) for step in (1, 2, 3)], 2)] == [2, 1]
