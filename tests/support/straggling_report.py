"""A report made by hand in which everybody waits for rank 2, with buckets and advice.

Three ranks, steps 1 to 3 of 100 ms. Rank 2 is late by 5, 6 and 7 ms in the one collective of each step; a step would
be 4, 5 and 6 ms shorter if it worked like the others. DDP has two buckets.
"""

from __future__ import annotations

from rankscope.model.report import (
    Advice,
    BucketRow,
    CapAdvice,
    CausedWaitRow,
    Clock,
    CollectiveRow,
    LayoutBucket,
    LayoutRow,
    Measures,
    Prediction,
    RankRow,
    Report,
    Residual,
    RunFacts,
    StepRow,
    Straggler,
    StragglerEvidence,
    StragglerRank,
    Tool,
    Totals,
    WaitQuantiles,
)

MS = 1_000_000
RANKS = (0, 1, 2)
STEPS = (1, 2, 3)
LATE = 2


def make_straggling() -> Report:
    """The report."""
    run = Measures(
        window_ns=900 * MS, compute_ns=600 * MS, communication_ns=100 * MS, overlap_ns=40 * MS,
        exposed_communication_ns=60 * MS, idle_ns=240 * MS, overlap_ratio=0.4,
    )  # fmt: skip
    return Report(
        tool=Tool(version="0.1.0"),
        run=RunFacts(
            name="straggling", source="runs/straggling", backend="nccl", world_size=3, ranks=list(RANKS),
            steps=list(STEPS), steady_steps=list(STEPS),
            clock=Clock(
                method="collective ends", offsets_ns={0: 0, 1: 12_000, 2: -3_000_000},
                uncertainty_ns={0: 0, 1: 20_000, 2: None}, drift_ppm={1: 4.25},
                residual_ns=Residual(median=7_000, max=31_000),
            ),
        ),
        totals=Totals(run=run, steady=run),
        ranks=[make_rank(rank) for rank in RANKS],
        steps=[make_step(step, rank) for step in STEPS for rank in RANKS],
        collectives=[make_collective(step) for step in STEPS],
        straggler=make_straggler(),
        caused_waits=[
            CausedWaitRow(
                step=step, rank=rank, lateness_ns=(4 + step) * MS if rank == LATE else 0,
                cost_ns=(3 + step) * MS if rank == LATE else 0,
            )
            for step in STEPS
            for rank in RANKS
        ],
        bucket_layouts=[make_layout()],
        buckets=[make_bucket(step, rank, index) for step in STEPS for rank in RANKS for index in (0, 1)],
        advice=make_advice(),
        undefined={"run.clock.uncertainty_ns[2]": "no collective bounds this clock from both sides"},
    )  # fmt: skip


def make_rank(rank: int) -> RankRow:
    """Rank 2 does not wait: its 5 ms of exposed communication are transfer."""
    wait = 0 if rank == LATE else 20 * MS
    exposed = wait + 5 * MS
    return RankRow(
        rank=rank, device=0, window_ns=300 * MS, compute_ns=200 * MS, communication_ns=exposed + 13 * MS,
        overlap_ns=13 * MS, exposed_communication_ns=exposed, idle_ns=100 * MS - exposed,
        overlap_ratio=13 * MS / (exposed + 13 * MS), exposed_wait_ns=wait, exposed_transfer_ns=5 * MS,
    )  # fmt: skip


def make_step(step: int, rank: int) -> StepRow:
    """Every step takes 100 ms."""
    return StepRow(
        step=step, rank=rank, device=0, steady=True, duration_ns=100 * MS, compute_ns=60 * MS,
        communication_ns=10 * MS, overlap_ns=4 * MS, exposed_communication_ns=6 * MS, overlap_ratio=0.4,
    )  # fmt: skip


def make_collective(step: int) -> CollectiveRow:
    """Rank 0 comes at 100 x step ms, rank 1 1 ms later, rank 2 4 + step ms after that."""
    first = 100 * step * MS
    late = (4 + step) * MS
    return CollectiveRow(
        index=step - 1, step=step, group="default_pg [0-2]", op="all_reduce", dtype="float32",
        size_bytes=25 << 20, sequence=step, matched_by="seq", coalesced=False, ranks=3, transfer_ns=2 * MS,
        lateness_ns=late, last_rank=LATE, overlap_ratio=0.4, algorithm_bandwidth_gbps=13.1,
        bus_bandwidth_gbps=17.5, wait_ns=WaitQuantiles(p50=late, max=late + MS), countable=True,
        arrivals_ns={0: first, 1: first + MS, 2: first + MS + late},
    )  # fmt: skip


def make_straggler() -> Straggler:
    """Rank 2 costs 5 ms per step, in its data loader."""
    return Straggler(
        verdict="found", scope="rank", rank=LATE, ranks=[LATE], cause="input", cost_ns_per_step=5 * MS,
        slowdown=1.0526, confidence="medium", reason="with its own work like that of its peers, 100 % of the steps "
        "would be at least 2 % shorter",
        by_rank=[
            StragglerRank(rank=rank, lateness_ns_per_step=6 * MS if rank == LATE else 0,
                          cost_ns_per_step=5 * MS if rank == LATE else 0,
                          last_in=3 if rank == LATE else 0, countable=3)
            for rank in RANKS
        ],
        cause_stage="data loading", cause_name="DataLoader.__next__", cause_ns_per_step=4_800_000,
        cause_reason="the device was idle while the host waited for data",
        evidence=[
            StragglerEvidence(kind="idle", name="data loading", own_ns=6 * MS, peers_ns=1_200_000,
                              excess_ns=4_800_000),
            StragglerEvidence(kind="compute", name="gemm", own_ns=31 * MS, peers_ns=30_900_000, excess_ns=100_000),
        ],
    )  # fmt: skip


def make_layout() -> LayoutRow:
    """Two buckets of a model whose names the collector recorded."""
    buckets = [
        LayoutBucket(index=0, size_bytes=25 << 20, dtype="float32", parameters=["head.bias", "head.weight"]),
        LayoutBucket(index=1, size_bytes=10 << 20, dtype="float32", parameters=["stem.weight"]),
    ]
    return LayoutRow(layout=0, cap_mb=25.0, buckets=buckets, module="model", parameters_from="collector")


def make_bucket(step: int, rank: int, index: int) -> BucketRow:
    """Bucket 0: ready at 60, launched 61, started 62, others waited for until 66, done at 68 ms of the step.

    Bucket 1: ready at 65, launched 65, started 68 behind bucket 0, nobody waited for, done at 70 ms, all exposed.
    """
    ready, launched, started, finished = ((60, 61, 62, 68), (65, 65, 68, 70))[index]
    begin = 100 * step * MS + rank * 1_000
    return BucketRow(
        step=step, steady=True, layout=0, index=index, rank=rank, size_bytes=(25 << 20, 10 << 20)[index],
        ready_ns=begin + ready * MS, launched_ns=begin + launched * MS, host_overhead_ns=60_000,
        started_ns=begin + started * MS, finished_ns=begin + finished * MS,
        queue_ns=(started - launched) * MS, wait_ns=(4 * MS, 0)[index], transfer_ns=2 * MS,
        exposed_ns=(1 * MS, 2 * MS)[index], overlap_ratio=(5 / 6, 0.0)[index],
        bus_bandwidth_gbps=(17.5, 7.0)[index], backward=step,
    )  # fmt: skip


def make_advice() -> Advice:
    """25 MiB are in use; 5 MiB are predicted to save 4 of 100 ms, give or take 1 ms."""
    predictions = [
        Prediction(bucket_cap_mb=cap, step_ns=step * MS, exposed_ns=(step - 90) * MS, overlap_ratio=0.5,
                   step_low_ns=(step - 1) * MS, step_high_ns=(step + 1) * MS)
        for cap, step in ((1.0, 99), (5.0, 96), (25.0, 100))
    ]  # fmt: skip
    return Advice(
        bucket_cap_mb=CapAdvice(current=25.0, best=5.0, predictions=predictions),
        verdict="change",
        reason="smaller buckets let the transfers begin earlier",
        code="bucket_cap_mb=5",
        saving_ns=4 * MS,
        saving_ratio=0.04,
    )
