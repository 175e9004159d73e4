"""Totals per operation and group over all ranks, and shares of communication time that are understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankscope.analyses.communication_totals import (
    CoverageShares,
    GroupTotal,
    measure_coverage,
    total_by_group,
)
from rankscope.correlate.communications import Communications, resolve_communications
from rankscope.correlate.device_events import device_events
from support.reading import run_of
from support.trace_text import Row, collective, job, kernel, nccl

GROUPS = [
    {"pg_name": "0", "pg_desc": "dp", "ranks": [0, 1]},
    {"pg_name": "1", "pg_desc": "tp", "ranks": [0, 1]},
]
ALL_REDUCE_8 = collective("allreduce", 8, 8, group="0")
GENERIC = "ncclDevKernel_Generic(ncclDevComm*)"


def resolved(events_of_rank: Mapping[int, Sequence[Row]]) -> list[Communications]:
    windows = [
        run_of({rank: events}, world_size=2, metadata=job(rank, 2, pg_config=GROUPS))
        for rank, events in events_of_rank.items()
    ]
    return [resolve_communications(events, 2) for run in windows for events in device_events(run)]


def totals(events_of_rank: Mapping[int, Sequence[Row]]) -> list[GroupTotal]:
    return total_by_group(resolved(events_of_rank))


def test_nothing() -> None:
    assert total_by_group([]) == []
    assert measure_coverage([], []) == CoverageShares(sized=None, named=None, in_steps=None)
    assert totals({0: [kernel("gemm", 0, 1)]}) == []


def test_one_operation_over_two_ranks() -> None:
    """Rank 0: [0,100) and [50,150) are 150, beside compute [0,30): 120 exposed. Rank 1: [0,40), nothing beside.
    150 + 40 = 190 and 120 + 40 = 160; two collectives of 32 bytes, which is what rank 0 took part in.
    """
    (total,) = totals(
        {
            0: [
                nccl(0, 100, args=ALL_REDUCE_8),
                nccl(50, 100, stream=21, args=ALL_REDUCE_8),
                kernel("a", 0, 30),
            ],
            1: [nccl(0, 40, args=ALL_REDUCE_8)],
        }
    )
    assert (total.op, total.group.label) == ("all_reduce", "dp [0-1]")
    assert (total.count, total.size_bytes) == (2, 64)
    assert (total.communication_ns, total.exposed_communication_ns) == (190_000, 160_000)


def test_operations_and_groups_apart_the_longest_exposed_first() -> None:
    """Groups 0 and 1 hold the same ranks and are two; sizes are summed within each."""
    found = totals(
        {
            0: [
                nccl(0, 10, args=ALL_REDUCE_8),
                nccl(100, 30, args=collective("allreduce", 100, 100, group="1")),
                nccl(200, 20, args=collective("_allgather_base", 8, 16, group="0")),
                nccl(300, 20, args=ALL_REDUCE_8),
                kernel("a", 200, 20),
            ]
        }
    )
    assert [(t.group.label, t.op, t.count, t.size_bytes, t.exposed_communication_ns) for t in found] == [
        ("dp [0-1]", "all_reduce", 2, 64, 30_000),
        ("tp [0-1] #2", "all_reduce", 1, 400, 30_000),
        ("dp [0-1]", "all_gather", 1, 64, 0),
    ]


def test_one_unknown_size_makes_the_sum_unknown() -> None:
    """Never the sum of the known ones."""
    (total,) = totals(
        {0: [nccl(0, 10, args=ALL_REDUCE_8), nccl(50, 10, args=collective("allreduce", group="0"))]}
    )
    assert (total.count, total.size_bytes) == (2, None)


def test_windows_of_devices_of_one_rank_add_up() -> None:
    (total,) = totals({0: [nccl(0, 10, args=ALL_REDUCE_8), nccl(0, 20, device=1, args=ALL_REDUCE_8)]})
    assert (total.count, total.size_bytes, total.communication_ns) == (2, 64, 30_000)


def test_coverage_weighs_by_time() -> None:
    """100 us: 50 with operation and size, 30 with an operation alone, 20 with nothing; 50 and 20 in steps."""
    communications = resolved(
        {0: [nccl(0, 50, args=ALL_REDUCE_8), nccl(100, 30), nccl(200, 20, name=GENERIC)]}
    )
    shares = measure_coverage(communications, [np.array([4, -1, 5])])
    assert shares == CoverageShares(sized=0.5, named=0.8, in_steps=0.7)


def test_coverage_over_ranks() -> None:
    """Rank 0: 10 us known. Rank 1: 30 us unknown. A quarter."""
    communications = resolved({0: [nccl(0, 10, args=ALL_REDUCE_8)], 1: [nccl(0, 30, name=GENERIC)]})
    shares = measure_coverage(communications, [np.array([1]), np.array([-1])])
    assert shares == CoverageShares(sized=0.25, named=0.25, in_steps=0.25)


def test_communication_without_time_has_no_shares() -> None:
    communications = resolved({0: [nccl(0, 0, args=ALL_REDUCE_8)]})
    assert measure_coverage(communications, [np.array([1])]).named is None
