from __future__ import annotations

from typing import Any

import pytest

from rankscope.model.report import CollectiveRow, GroupRow, Report, WaitQuantiles
from rankscope.pipeline.row_limit import limit_rows
from rankscope.renderers.ring_sums import measure_ring

from .conftest import MakeReport

GROUP = GroupRow(
    group="dp",
    ranks=[0, 1, 2, 3],
    op="all_reduce",
    count=6,
    size_bytes=None,
    communication_ns=1,
    exposed_communication_ns=1,
    overlap_ratio=None,
)


def row(
    index: int, size_bytes: int | None, transfer_ns: int | None, wait_ns: int, **changed: Any
) -> CollectiveRow:
    known: dict[str, Any] = {
        "index": index,
        "step": 1,
        "group": "dp",
        "op": "all_reduce",
        "dtype": None,
        "size_bytes": size_bytes,
        "sequence": None,
        "matched_by": "order",
        "coalesced": False,
        "ranks": 4,
        "transfer_ns": transfer_ns,
        "lateness_ns": None,
        "last_rank": None,
        "overlap_ratio": None,
        "algorithm_bandwidth_gbps": None,
        "bus_bandwidth_gbps": None,
        "wait_ns": WaitQuantiles(p50=0, max=wait_ns),
    }
    return CollectiveRow(**{**known, **changed})


@pytest.fixture
def report(make_report: MakeReport) -> Report:
    """Three of 1000 bytes (transfers 10, 20, 60; waits 1, 2, 9), one of 8000 bytes, two of other kinds."""
    rows = [
        row(0, 1000, 10, 1),
        row(1, 1000, 20, 2),
        row(2, 1000, 60, 9),
        row(3, 8000, 500, 100),
        row(4, 1000, 7, 7, op="broadcast"),
        row(5, 1000, 7, 7, group="tp"),
    ]
    return make_report(collectives=rows)


def test_the_usual_size_and_its_medians(report: Report) -> None:
    found = measure_ring(report, GROUP)
    assert found is not None
    assert (found.size_bytes, found.transfer_ns, found.wait_ns) == (1000, 20, 2)
    assert found.ring is not None
    # 2 (4 - 1) steps of a quarter each.
    assert (found.ring.steps, found.ring.step_bytes, found.ring.traffic_bytes) == (6, 250, 1500)


def test_of_equally_many_the_largest(make_report: MakeReport) -> None:
    found = measure_ring(make_report(collectives=[row(0, 1000, 1, 1), row(1, 8000, 2, 2)]), GROUP)
    assert found is not None
    assert (found.size_bytes, found.transfer_ns) == (8000, 2)


def test_a_report_of_the_worst_rows_gives_the_medians_of_all(report: Report) -> None:
    """The two kept are those that wait longest: their own median of transfers would be 500 or 280."""
    limited = limit_rows(report, 2)
    assert [kept.index for kept in limited.collectives] == [2, 3]
    found = measure_ring(limited, GROUP)
    assert found is not None
    assert (found.size_bytes, found.transfer_ns, found.wait_ns) == (1000, 20, 2)


def test_an_unknown_transfer_has_the_reports_reason(make_report: MakeReport) -> None:
    reasons = {"collectives[index=0].transfer_ns": "one rank only"}
    found = measure_ring(make_report(collectives=[row(0, 1000, None, 1)], undefined=reasons), GROUP)
    assert found is not None
    assert (found.transfer_ns, found.transfer_reason) == (None, "one rank only")


def test_without_sizes_there_is_nothing_to_say(make_report: MakeReport) -> None:
    assert measure_ring(make_report(collectives=[row(0, None, 5, 5)]), GROUP) is None
    assert measure_ring(make_report(collectives=[]), GROUP) is None
