"""Reports and snapshots made by hand for tests of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rankscope.model.report import (
    BucketRow,
    GroupRow,
    Measures,
    Quantiles,
    RankRow,
    Report,
    RunFacts,
    StepRow,
    Straggler,
    StragglerRank,
    Tool,
    Totals,
)
from rankscope.model.snapshot import Baseline, Part, Parts, Snapshot

MS = 1_000_000


def straggler(verdict: str = "none") -> Straggler:
    """Nobody is late; or rank 1 costs 2 ms per step; or it cannot be told."""
    found = verdict == "found"
    return Straggler(
        verdict="found" if found else "inconclusive" if verdict == "inconclusive" else "none",
        scope="rank" if found else None,
        rank=1 if found else None,
        ranks=[1] if found else [],
        cause=None,
        cost_ns_per_step=2 * MS if found else None,
        slowdown=1.25 if found else None,
        confidence="high" if found else None,
        reason="no file of rank 2",
        by_rank=[
            StragglerRank(rank=1, lateness_ns_per_step=0, cost_ns_per_step=2 * MS, last_in=2, countable=2)
        ],
    )


def two_rank_report() -> Report:
    """Two ranks, steps 4 (not steady), 5 and 6.

    Rank 0: 60 compute, 30 communication of which 20 hidden, window 100; rank 1: 62, 28, 21, window 100 (ms).
    Step 5: 8 ms communication on rank 0, 6 hidden; 8 on rank 1, 4 hidden. Step 6: 8 and 7; 8 and 7.
    """
    ranks = [
        RankRow(rank=0, device=0, window_ns=100 * MS, compute_ns=60 * MS, communication_ns=30 * MS,
                overlap_ns=20 * MS, exposed_communication_ns=10 * MS, exposed_memory_ns=5 * MS, idle_ns=25 * MS,
                overlap_ratio=2 / 3),
        RankRow(rank=1, device=0, window_ns=100 * MS, compute_ns=62 * MS, communication_ns=28 * MS,
                overlap_ns=21 * MS, exposed_communication_ns=7 * MS, exposed_memory_ns=5 * MS, idle_ns=26 * MS,
                overlap_ratio=0.75),
    ]  # fmt: skip
    steps = [
        step_row(4, 0, 8, 0, steady=False),
        step_row(4, 1, 8, 0, steady=False),
        step_row(5, 0, 8, 6),
        step_row(5, 1, 8, 4),
        step_row(6, 0, 8, 7),
        step_row(6, 1, 8, 7),
        replace(step_row(0, 0, 6, 2), step=None, steady=False, duration_ns=None),
        replace(step_row(0, 1, 4, 2), step=None, steady=False, duration_ns=None),
    ]
    return Report(
        tool=Tool(version="0.1.0"),
        run=RunFacts(
            name="two",
            source="runs/two",
            world_size=3,
            ranks=[0, 1],
            missing_ranks=[2],
            steps=[4, 5, 6],
            steady_steps=[5, 6],
        ),
        totals=Totals(
            run=Measures(communication_ns=58 * MS, overlap_ns=41 * MS, overlap_ratio=41 / 58),
            steady=Measures(communication_ns=32 * MS, overlap_ns=24 * MS, overlap_ratio=0.75),
            outside_steps=Measures(
                communication_ns=10 * MS, overlap_ns=4 * MS, exposed_communication_ns=6 * MS, overlap_ratio=0.4
            ),
        ),
        ranks=ranks,
        steps=steps,
        groups=[
            GroupRow(group="dp [0-2]", ranks=[0, 1, 2], op="all_reduce", count=20, size_bytes=1 << 20,
                     communication_ns=54 * MS, exposed_communication_ns=14 * MS, overlap_ratio=40 / 54,
                     bus_bandwidth_gbps=212.5, transfer_ns=Quantiles(p50=2 * MS, p95=3 * MS)),
            GroupRow(group="dp [0-2]", ranks=[0, 1, 2], op="broadcast", count=2, size_bytes=None,
                     communication_ns=4 * MS, exposed_communication_ns=3 * MS, overlap_ratio=0.25),
        ],
        straggler=straggler(),
        undefined={"groups[group=dp [0-2],op=broadcast].bus_bandwidth_gbps": "broadcasts are not matched"},
    )  # fmt: skip


def step_row(step: int, rank: int, communication: int, hidden: int, *, steady: bool = True) -> StepRow:
    """A step of 25 ms (rank 0) or 27 ms (rank 1) with its communication in ms."""
    return StepRow(
        step=step,
        rank=rank,
        device=0,
        steady=steady,
        duration_ns=(25 + 2 * rank) * MS,
        compute_ns=15 * MS,
        communication_ns=communication * MS,
        overlap_ns=hidden * MS,
        exposed_communication_ns=(communication - hidden) * MS,
        overlap_ratio=hidden / communication if communication else None,
    )


def bucket_row(step: int, index: int, *, exposed: int, lasted: int = 10, steady: bool = True) -> BucketRow:
    """A bucket that lasts 10 ms unless told otherwise; times in ms."""
    return BucketRow(
        step=step,
        steady=steady,
        layout=0,
        index=index,
        rank=0,
        size_bytes=25 << 20,
        ready_ns=0,
        launched_ns=0,
        host_overhead_ns=50_000,
        started_ns=step * 100 * MS,
        finished_ns=(step * 100 + lasted) * MS,
        queue_ns=None,
        wait_ns=MS,
        transfer_ns=(lasted - 1) * MS,
        exposed_ns=exposed * MS,
        overlap_ratio=1 - exposed / lasted,
        bus_bandwidth_gbps=100.0 + step,
    )


def make_snapshot(
    ratios: Sequence[float | None],
    *,
    name: str = "run",
    communication: float = 10 * MS,
    durations: Sequence[float] | None = None,
    steps: float | None = None,
    ranks: int = 2,
) -> Snapshot:
    """A run whose steady steps hide these shares of 10 ms of communication each, and nothing else."""
    known = [ratio for ratio in ratios if ratio is not None]
    mean = sum(known) / len(known) if known else None
    exposed = [None if ratio is None else (1 - ratio) * communication for ratio in ratios]
    lasted: list[float | None] = [*durations] if durations is not None else [100.0 * MS] * len(ratios)
    number = len(ratios) if steps is None else steps
    figures: dict[str, float | None] = {
        "overlap_ratio": mean,
        "exposed_communication": None if mean is None else (1 - mean) * communication * number,
        "communication": communication * number,
        "steady.overlap_ratio": mean,
        "steady.exposed_communication": None if mean is None else (1 - mean) * communication,
        "steady.duration": sum(lasts) / len(lasts)
        if (lasts := [x for x in lasted if x is not None])
        else None,
    }
    return Snapshot(
        name=name,
        world_size=ranks,
        ranks=ranks,
        rows=ranks,
        steps=number,
        figures={key: value for key, value in figures.items() if value is not None},
        samples={
            "overlap_ratio": list(ratios),
            "exposed_communication": exposed,
            "communication": [communication] * len(ratios),
            "duration": lasted,
        }
        if ratios
        else {},
    )


def make_side(*runs: Snapshot, parts: Sequence[Part] = (), has_kernels: bool = True) -> Baseline:
    """Runs to compare, with parts."""
    return Baseline(
        tool_version="0.1.0", runs=list(runs), parts=Parts(rows=list(parts), has_kernels=has_kernels)
    )
